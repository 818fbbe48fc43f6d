// Time by state in each lane of an interval.

import { timestampOf } from "../../clock";
import { MERGED, type Lane } from "../../data/lane";
import type { Report } from "../../data/report";
import { el, plainTable } from "../../dom";
import { count, share, time } from "../../format";
import type { Range } from "../timeline/range";
import type { LaneRow } from "../timeline/rows";
import { laneTitle, stateTitle } from "../timeline/words";

export function states(report: Report, range: Range, rows: LaneRow[]): HTMLElement[] {
  const uncertain = Math.max(0, ...rows.map((row) => (row.lane ? cutMerged(row.lane, range) : 0)));
  const note =
    uncertain > 0
      ? `The selection begins or ends within spans that were merged: times are rounded, by ${time(uncertain, report.nanoseconds)} a lane at most.`
      : "Exact. hyperscope cpu --from --to prints the same, except for states that began before the selection, which it does not know.";
  return [el("p", { class: "note" }, note), sumsTable(report, range, rows)];
}

/** Max error of a lane's times by state, because the interval cuts merged spans. */
export function cutMerged(lane: Lane, { from, to }: Range): number {
  let sum = 0;
  for (const cut of [from, to]) {
    const at = lane.at(cut);
    if (at === null || lane.state[at] !== MERGED || lane.from[at] === cut) continue;
    sum += lane.to[at]! - lane.from[at]!;
  }
  return sum;
}

/** Time by state in each lane with any time. */
export function sumsTable(report: Report, range: Range, rows: LaneRow[]): HTMLTableElement {
  const ns = report.nanoseconds;
  const sums = rows.filter((row) => row.lane).map((row) => ({ row, sums: row.lane!.within(range.from, range.to) }));
  const busy = sums.filter((one) => one.sums.size > 0);
  const states = [...new Set(busy.flatMap((one) => [...one.sums.keys()]))].sort((a, b) => a - b);
  const length = range.to - range.from;
  const cell = (value: number | undefined) => (value === undefined ? "" : `${time(value, ns)} (${share(value, length, 1)})`);
  const lines = busy.map(({ row, sums: of }) => [
    laneTitle(row.info),
    count(row.lane!.spansWithin(range.from, range.to)),
    ...states.map((state) => cell(of.get(state))),
  ]);
  const caption = `Time by state, ${time(length, ns)} from ${timestampOf(report, range.from)}`;
  const table = plainTable(caption, ["lane", "spans that begin", ...states.map((state) => stateTitle(report, state))], lines);
  // Raw numbers, for programs.
  busy.forEach(({ sums: of }, line) => {
    const cells = table.tBodies[0]!.rows[line]!.cells;
    states.forEach((state, at) => {
      const key = report.timeline.states[state]?.key ?? "";
      cells[at + 2]!.dataset["key"] = key;
      cells[at + 2]!.dataset["value"] = String(Math.round(of.get(state) ?? 0));
    });
  });
  return table;
}
