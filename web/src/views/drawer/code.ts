// Code that ran in an interval: functions of guests, the host's kernel and the VMM, by time.

import { timestampOf } from "../../clock";
import { hasVcpus, slicesOf } from "../../data/profile";
import type { FunctionTime, Stacks, Wanted } from "../../data/stacks";
import type { Report } from "../../data/report";
import { el, rowsTable } from "../../dom";
import type { Focus } from "../../focus";
import { count, share, time } from "../../format";
import { TITLES } from "../profile/layers";
import type { Range } from "../timeline/range";
import { command } from "./exits";

/** Max functions in the list: those with most self time. */
const MOST_FUNCTIONS = 40;

export interface AskedCode {
  report: Report;
  range: Range;
  focus: Focus;
  stacks: Stacks | null;
  /** Shows a function between its callers and callees. */
  open: (key: string) => void;
}

export function code(asked: AskedCode): HTMLElement[] {
  const { report, range, focus, stacks } = asked;
  if (!stacks) return [el("p", {}, "This recording does not show which code ran: it has no vCPU.")];
  const { info } = stacks.profile;
  if (!info.slices) return [el("p", { class: "note" }, `The page holds code of the whole recording only. That of the selection: ${command("profile", report, range)}`)];
  const slices = slicesOf(info, range);
  const ofVcpus = hasVcpus(info);
  const wanted: Wanted = { vm: focus.vm, owner: null, level: focus.level, reason: focus.reason, idle: false, threads: !ofVcpus, without: [], slices };
  const sums = stacks.sums(stacks.times(wanted));
  const whole = sums.total[0]!;
  const functions = stacks.functions(sums).sort((a, b) => b.own - a.own || b.total - a.total || a.name.localeCompare(b.name));
  const known = functions.reduce((sum, one) => sum + one.own, 0);
  const of = slices ?? { from: 0, to: report.length_ns };
  const [from, to] = [Math.max(0, of.from), Math.min(of.to, report.length_ns)];
  const which = slices ? `Of the slices of ${time(info.slices.slice_ns, report.nanoseconds)} that hold the selection, from ${timestampOf(report, from)} to ${timestampOf(report, to)}` : "Of the whole recording";
  const note = `${which}: ${time(whole, report.nanoseconds)} ${ofVcpus ? "of vCPUs’ time, idle time left out" : "of threads’ time, by samples"}; for ${share(known, whole)} of it the function is known. The same: ${command("profile", report, { from, to })}`;
  return [el("p", { class: "note" }, note), functions.length > 0 ? table(asked, functions, whole) : el("p", {}, "No functions are known for this code.")];
}

function table({ report, open }: AskedCode, all: FunctionTime[], whole: number): HTMLElement {
  const ns = report.nanoseconds;
  const number = (key: string, value: number, words: string) => el("td", { class: "number", "data-key": key, "data-value": value }, words);
  const rows = all.slice(0, MOST_FUNCTIONS).map((one) =>
    el(
      "tr",
      { "data-function": one.key },
      el("th", { scope: "row" }, el("button", { type: "button", class: "reason", title: "Its callers and callees", onclick: () => open(one.key) }, one.name)),
      el("td", {}, TITLES[one.layer]),
      number("own", one.own, time(one.own, ns)),
      number("own-share", one.own, share(one.own, whole)),
      number("total", one.total, time(one.total, ns)),
      number("total-share", one.total, share(one.total, whole)),
    ),
  );
  const titles = ["function", "whose", "self", "self%", "total", "total%"];
  const caption = `Functions near the selection: ${all.length > MOST_FUNCTIONS ? `the first ${MOST_FUNCTIONS} of ${count(all.length)}` : count(all.length)}`;
  return rowsTable(caption, titles, rows, 2, "picked");
}
