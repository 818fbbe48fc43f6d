// Running threads of an interval: threads on the CPUs of a machine, tasks of guests on their vCPUs.

import { MERGED, type Lane } from "../../data/lane";
import type { Report } from "../../data/report";
import { el, rowsTable } from "../../dom";
import { count, share, time } from "../../format";
import type { Range } from "../timeline/range";
import type { LaneRow } from "../timeline/rows";

/** Max threads in the list: those that ran longest. */
const MOST_THREADS = 40;

export interface Ran {
  machine: string;
  name: string;
  ns: number;
}

/** CPU time by thread, and the part of it in merged spans. */
export function threadsWithin(report: Report, rows: LaneRow[], { from, to }: Range): { ran: Ran[]; merged: number } {
  const sums = new Map<string, Ran>();
  let merged = 0;
  for (const { info, lane } of rows) {
    if (info.kind !== "cpu" || !lane) continue;
    eachWithin(lane, from, to, (at, ns) => {
      if (lane.state[at] === MERGED) return void (merged += ns);
      const name = report.timeline.labels[lane.label[at]!] || "a thread";
      const key = `${info.machine}\0${name}`;
      const sum = sums.get(key) ?? { machine: info.machine, name, ns: 0 };
      sum.ns += ns;
      sums.set(key, sum);
    });
  }
  return { ran: sorted([...sums.values()]), merged };
}

function eachWithin(lane: Lane, from: number, to: number, see: (at: number, ns: number) => void): void {
  const end = lane.begunBy(to);
  for (let at = Math.max(0, lane.begunBy(from) - 1); at < end; at++) {
    const ns = Math.min(to, lane.to[at]!) - Math.max(from, lane.from[at]!);
    if (ns > 0) see(at, ns);
  }
}

const sorted = (all: Ran[]) => all.sort((a, b) => b.ns - a.ns || a.name.localeCompare(b.name));

export function threads(report: Report, range: Range, rows: LaneRow[]): HTMLElement[] {
  const { ran, merged } = threadsWithin(report, rows, range);
  const tasks = sorted(
    rows.flatMap(({ info, lane }) => {
      const ns = info.kind === "task" && lane ? [...lane.within(range.from, range.to).values()].reduce((sum, one) => sum + one, 0) : 0;
      return ns > 0 ? [{ machine: info.machine, name: info.name, ns }] : [];
    }),
  );
  const parts: HTMLElement[] = [];
  if (merged > 0) parts.push(el("p", { class: "note rounded" }, `${time(merged, report.nanoseconds)} of the CPUs’ time is in merged spans: this page does not know which threads ran, and no number here includes it.`));
  if (ran.length > 0) parts.push(table(report, range, "Threads on the CPUs", ran));
  if (tasks.length > 0) parts.push(table(report, range, "Tasks of guests, as their vCPUs had them", tasks));
  return parts.length > 0 ? parts : [el("p", {}, "The recording does not show which threads ran, or none ran in the selection.")];
}

function table(report: Report, range: Range, caption: string, all: Ran[]): HTMLElement {
  const head = ["machine", "thread", "time", "of a CPU"];
  const lines = all.slice(0, MOST_THREADS).map((one) =>
    el(
      "tr",
      {},
      el("td", {}, one.machine),
      el("th", { scope: "row", "data-key": "thread", "data-value": one.name }, one.name),
      el("td", { class: "number", "data-key": "time", "data-value": one.ns }, time(one.ns, report.nanoseconds)),
      el("td", { class: "number" }, share(one.ns, range.to - range.from, 1)),
    ),
  );
  const more = all.length > MOST_THREADS ? `: the first ${MOST_THREADS} of ${count(all.length)}` : "";
  return rowsTable(`${caption}${more}`, head, lines, 2, "picked");
}
