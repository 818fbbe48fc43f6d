// What is in a selected stretch of time: sums of states, lane by lane.

import { timestampOf } from "../../clock";
import type { Report } from "../../data/report";
import { el, plainTable } from "../../dom";
import type { Context } from "../../focus";
import { count, share, time } from "../../format";
import type { Range } from "./range";
import type { LaneRow } from "./rows";
import { laneTitle, stateTitle } from "./words";

export class SelectionPanel {
  readonly element = el("div", { class: "selection", hidden: true, "aria-live": "polite" });

  constructor(
    private readonly context: Context,
    private readonly clear: () => void,
    private readonly zoom: (range: Range) => void,
  ) {}

  show(range: Range | null, rows: LaneRow[]): void {
    this.element.hidden = range === null;
    if (!range) return;
    const { report } = this.context;
    const ns = report.nanoseconds;
    this.element.replaceChildren(
      el(
        "p",
        {},
        el("b", {}, time(range.to - range.from, ns)),
        ` selected, from ${timestampOf(report, range.from)} `,
        el("button", { type: "button", onclick: () => this.zoom(range) }, "Zoom to it"),
        el("button", { type: "button", onclick: this.clear }, "Clear"),
      ),
      el("div", { class: "scroll" }, sumsTable(report, range, rows)),
    );
  }
}

/** Time by state in each lane that has any. */
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
  return plainTable(caption, ["lane", "spans that begin", ...states.map((state) => stateTitle(report, state))], lines);
}
