// Describes spans and intervals in words.

import type { Lane } from "../../data/lane";
import { MERGED } from "../../data/lane";
import type { LaneInfo, Report } from "../../data/report";
import { describeCall } from "./call_words";
import type { LaneRow } from "./rows";
import type { Match } from "./search";
import { timestampOf } from "../../clock";
import { count, share, time } from "../../format";

/** The unique name of a lane: a vCPU's includes its VM. */
export function laneTitle({ machine, name, vm, kind, depth }: LaneInfo): string {
  const whose = kind === "vcpu" ? (vm ?? machine) : machine;
  return kind === "call" ? `${machine} ${name}, depth ${depth}` : `${whose} ${name}`;
}

export function stateTitle(report: Report, state: number): string {
  return report.timeline.states[state]?.title ?? `state ${state}`;
}

/** The label of a span: the exit that is handled, or the thread that runs. */
function aboutLabel(report: Report, info: LaneInfo, lane: Lane, at: number): string | null {
  const label = report.timeline.labels[lane.label[at]!];
  if (!label || lane.state[at] === MERGED) return null;
  const key = report.timeline.states[lane.state[at]!]?.key ?? "";
  return info.kind !== "vcpu" || key.startsWith("guest") ? label : `exit: ${label}`;
}

export function describeSpan(report: Report, info: LaneInfo, lane: Lane, at: number): string[] {
  const ns = report.nanoseconds;
  const [from, to] = [lane.from[at]!, lane.to[at]!];
  const merged = lane.state[at] === MERGED;
  const head = merged ? `${count(lane.spansIn(at))} spans, merged` : stateTitle(report, lane.state[at]!);
  const lines = [head, aboutLabel(report, info, lane, at), time(to - from, ns), `${laneTitle(info)}, from ${timestampOf(report, from)}`];
  if (merged) lines.splice(2, 0, ...describeSums(report, lane.within(from, to), to - from));
  return lines.filter((line) => line !== null);
}

/** Time by state, the longest first. */
export function describeSums(report: Report, sums: Map<number, number>, whole: number): string[] {
  const sorted = [...sums].sort((a, b) => b[1] - a[1]);
  return sorted.map(([state, ns]) => `${stateTitle(report, state)} ${time(ns, report.nanoseconds)} (${share(ns, whole, 1)})`);
}

export function describeInterval(report: Report, info: LaneInfo, lane: Lane, from: number, to: number): string[] {
  const spans = lane.spansWithin(from, to);
  const head = `${count(spans)} spans begin in ${time(to - from, report.nanoseconds)}`;
  return [head, ...describeSums(report, lane.within(from, to), to - from), `${laneTitle(info)}, at ${timestampOf(report, from)}`];
}

/** Describes a span of any kind. */
export function describe(report: Report, { row, at }: Match): string[] {
  const merged = row.lane!.state[at] === MERGED;
  return row.info.kind === "call" && !merged ? describeCall(report, row, at) : describeSpan(report, row.info, row.lane!, at);
}

/** Describes the item under the pointer: a span if it is wide enough, otherwise the time of its pixels. */
export function describeAt(report: Report, row: LaneRow, at: number, pixel: number): string[] {
  const lane = row.lane!;
  const span = lane.at(at);
  if (span !== null && lane.to[span]! - lane.from[span]! >= 2 * pixel) return describe(report, { row, at: span });
  return describeInterval(report, row.info, lane, at - pixel, at + pixel);
}
