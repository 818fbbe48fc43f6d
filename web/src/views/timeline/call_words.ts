// Describes a call: its time, its self time, and the time of all calls of its function.

import { timeOf, type CalledFunction, type Report } from "../../data/report";
import { timestampOf } from "../../clock";
import { count, share, time } from "../../format";
import type { LaneRow } from "./rows";
import { laneTitle, stateTitle } from "./words";

/** The label of a function in the timeline. */
export function titleOf(one: CalledFunction): string {
  if (one.name === null) return one.address;
  return one.module === null ? one.name : `${one.name} [${one.module}]`;
}

/** The span at `at` of a lane of calls; its callees are in the next deeper lane, within it. */
export function describeCall(report: Report, row: LaneRow, at: number): string[] {
  const ns = report.nanoseconds;
  const lane = row.lane!;
  const [from, to] = [lane.from[at]!, lane.to[at]!];
  const inner = row.group.rows.find((other) => other.info.depth === (row.info.depth ?? 0) + 1)?.lane;
  const inCallees = [...(inner?.within(from, to) ?? [])].reduce((sum, [, ns]) => sum + ns, 0);
  const own = Math.max(0, to - from - inCallees);
  const made = inner ? inner.spansWithin(from, to) : 0;
  const callees = made === 0 ? "it called nothing" : `${count(made)} call${made === 1 ? "" : "s"} that it made ${time(inCallees, ns)}`;
  const name = report.timeline.labels[lane.label[at]!]!;
  return [
    name,
    `${time(to - from, ns)} from call to return; itself ${time(own, ns)} (${share(own, to - from, 1)}), ${callees}`,
    ...ofAll(report, row, name),
    stateTitle(report, lane.state[at]!),
    `${laneTitle(row.info)}, from ${timestampOf(report, from)}`,
  ];
}

/** Totals of that function's calls, on the machine of the lane. */
function ofAll(report: Report, row: LaneRow, name: string): string[] {
  const sources = (report.calls?.sources ?? []).filter((source) => source.machine === row.info.machine);
  const all = sources.flatMap((source) => source.functions.filter((one) => titleOf(one) === name));
  return all.map((one) => {
    const of = (what: string) => time(timeOf(one, what, report.nanoseconds), report.nanoseconds);
    return `all ${count(one.count)} of its calls: itself ${of("self")}, from call to return ${of("total")}, at most ${of("max")}`;
  });
}
