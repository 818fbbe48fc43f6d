// A span with all its details: for an exit, its detail, the guest's position, and its parts.

import { timestampOf } from "../../clock";
import { firstFrom, handlerOf, isPaired, type EachExit } from "../../data/each_exit";
import { MERGED } from "../../data/lane";
import type { ExitGroupInfo, Report } from "../../data/report";
import { el, plainTable } from "../../dom";
import { count, share, time } from "../../format";
import { describeArrow, type ShownArrows } from "../timeline/arrows";
import { describeCall } from "../timeline/call_words";
import type { Match } from "../timeline/search";
import { describeSpan, laneTitle, stateTitle } from "../timeline/words";

export interface FoundExit {
  list: EachExit;
  group: ExitGroupInfo;
  at: number;
}

/** The exit of a vCPU at `time`, including the host's work before it. */
export function exitAt(lists: EachExit[], vm: string | null, lane: string, reason: string, time: number): FoundExit | null {
  for (const list of lists) {
    for (const [of, group] of list.info.groups.entries()) {
      if (group.vm !== vm || `vCPU ${group.vcpu}` !== lane || group.reason !== reason) continue;
      const next = firstFrom(list, of, time);
      const holds = (at: number) => at >= list.begins[of]! && at < list.begins[of + 1]! && list.start[at]! - list.before[at]! <= time && time <= list.start[at]! + list.length[at]!;
      const at = [next - 1, next].find(holds);
      if (at !== undefined) return { list, group, at };
    }
  }
  return null;
}

type Line = [string, string];

/** The description of a span, line by line. */
export function linesOf(report: Report, { row, at }: Match, lists: EachExit[]): { of: Line[]; exit: Line[]; parts: Line[] } {
  const { info } = row;
  const lane = row.lane!;
  const ns = report.nanoseconds;
  const [from, to, state] = [lane.from[at]!, lane.to[at]!, lane.state[at]!];
  const label = state === MERGED ? "" : (report.timeline.labels[lane.label[at]!] ?? "");
  const key = report.timeline.states[state]?.key ?? "";
  const ofExit = info.kind === "vcpu" && label !== "" && !/guest/.test(key);
  const of: Line[] = [
    ["lane", laneTitle(info)],
    ["state", state === MERGED ? "several spans, merged" : stateTitle(report, state)],
    ["from", timestampOf(report, from)],
    ["to", timestampOf(report, to)],
    ["length", time(to - from, ns)],
  ];
  if (state === MERGED) return { of: [...of, ["in it", describeSpan(report, info, lane, at).slice(0, -2).join(" · ")]], exit: [], parts: [] };
  if (info.kind === "call") return { of: [...of, ["call", describeCall(report, row, at).slice(0, 3).join(" · ")]], exit: [], parts: [] };
  if (!ofExit) return { of: label ? [...of, ["thread", label]] : of, exit: [], parts: [] };
  const found = exitAt(lists, info.vm, info.name, label, (from + to) / 2);
  if (!found) return { of: [...of, ["exit", label]], exit: [["exit", "not in this page by itself"]], parts: [] };
  return { of, exit: exitLines(report, found), parts: partsOf(report, found) };
}

function exitLines(report: Report, { list, group, at }: FoundExit): Line[] {
  const value = (place: number) => list.info.values[place - 1];
  const [about, pc] = [value(list.about[at]!), value(list.pc[at]!)];
  const lines: Line[] = [
    ["reason", group.reason],
    ["code", `${group.code ?? "not recorded"} (${group.isa})`],
    ["level", String(group.level)],
    ["about", about ?? "not recorded"],
    ["the guest was at", pc ?? "not recorded"],
    ["exit event", timestampOf(report, list.start[at]!)],
  ];
  if (!isPaired(list, at)) return [...lines, ["entry", "not seen"]];
  return [...lines, ["entry", timestampOf(report, list.start[at]! + list.length[at]!)], ["handled by", handlerOf(list, at)]];
}

function partsOf(report: Report, { list, at }: FoundExit): Line[] {
  if (!isPaired(list, at)) return [];
  const [user, runnable, blocked, poll] = [list.user[at]!, list.runnable[at]!, list.blocked[at]!, list.poll[at]!];
  const whole = list.length[at]!;
  const kernel = list.info.off_cpu_recorded ? "kernel" : "kernel, user space and waiting, not split further";
  const all: [string, number][] = [["before the exit event", list.before[at]!], [kernel, whole - user - runnable - blocked - poll], ["user space", user], ["run queue", runnable], ["blocked", blocked], ["halt polling", poll]];
  const lines = all.filter(([, ns]) => ns > 0).map(([name, ns]): Line => [name, `${time(ns, report.nanoseconds)}${name.startsWith("before") ? "" : ` (${share(ns, whole, 1)})`}`]);
  return [...lines, ["exit to entry", time(whole, report.nanoseconds)]];
}

/** Missing arrows. */
function aboutArrows(report: Report, { more }: ShownArrows): HTMLElement[] {
  const { left_out, left_out_below_ns } = report.arrows;
  const notes = [
    more > 0 ? `${count(more)} more arrows of this span are not drawn.` : "",
    left_out > 0 ? `${count(left_out)} wake-ups and injections that took less than ${time(left_out_below_ns, report.nanoseconds)} are not in this page.` : "",
  ];
  return notes.some(Boolean) ? [el("p", { class: "note" }, notes.filter(Boolean).join(" "))] : [];
}

export interface SpanActions {
  step: (forward: boolean) => void;
  findOthers: (words: string) => void;
}

export function span(report: Report, match: Match | null, lists: EachExit[], actions: SpanActions, shown: ShownArrows): HTMLElement[] {
  if (!match) return [el("p", { class: "note" }, "No span is selected: click one, or go to one with ↑ ↓ , and .")];
  const { of, exit, parts } = linesOf(report, match, lists);
  const words = match.row.lane!.state[match.at] === MERGED ? "" : (report.timeline.labels[match.row.lane!.label[match.at]!] ?? "");
  const button = (title: string, press: () => void) => el("button", { type: "button", onclick: press }, title);
  const table = (caption: string, lines: Line[]) => (lines.length > 0 ? [plainTable(caption, ["what", "value"], lines)] : []);
  const arrows = shown.arrows.map((arrow) => describeArrow(report, arrow));
  return [
    el("p", { class: "span-acts" }, button("‹ Span before", () => actions.step(false)), button("Span after ›", () => actions.step(true)), words ? button(`Find all ${words}`, () => actions.findOthers(words)) : null),
    el("div", { class: "span-tables" }, ...table("Span", of), ...table("Exit", exit), ...table("Parts of the exit", parts), ...table("Arrows", arrows)),
    ...aboutArrows(report, shown),
  ];
}
