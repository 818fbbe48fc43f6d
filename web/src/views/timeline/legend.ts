// Which colour is which state: those that occur in the lanes there are.

import { variableOf } from "../../colours";
import type { Report } from "../../data/report";
import { el } from "../../dom";
import type { LaneRow } from "./rows";

export function legendEntries(report: Report, rows: LaneRow[]): HTMLElement[] {
  const there = new Set(rows.flatMap((row) => row.lane?.states ?? []));
  const entries = report.timeline.states.filter((_, state) => there.has(state));
  return entries.map((state) => el("li", {}, el("i", { style: `background: var(${variableOf(state.key)})` }), state.title));
}
