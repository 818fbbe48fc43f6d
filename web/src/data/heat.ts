// Exits by time and latency: the grid that the heat map and the distributions are drawn from.

import type { Columns } from "./columns";
import type { ExitRow, HeatGroupInfo, HeatInfo } from "./report";

export interface HeatGroup extends HeatGroupInfo {
  column: Uint16Array;
  row: Uint8Array;
  count: Float64Array;
}

export interface Heat {
  info: HeatInfo;
  groups: HeatGroup[];
}

export function readHeat(columns: Columns, info: HeatInfo): Heat {
  const groups = info.groups.map((group) => {
    const column = new Uint16Array(group.cells);
    const row = new Uint8Array(group.cells);
    const count = new Float64Array(group.cells);
    let before = 0;
    for (let at = 0; at < group.cells; at++) {
      before += columns.number();
      column[at] = before;
      row[at] = columns.byte();
      count[at] = columns.number();
    }
    return { ...group, column, row, count };
  });
  return { info, groups };
}

/** Begin of a row of the grid, in nanoseconds. */
export function rowBegin(row: number, perOctave: number): number {
  const octave = Math.floor(row / perOctave);
  return 2 ** octave * (1 + (row % perOctave) / perOctave);
}

/** The common key of groups of the map and rows of the exits table; either may have tens of thousands. */
function keyOf({ source, vm, level, reason, code }: HeatGroupInfo | ExitRow): string {
  return JSON.stringify([source, vm, level, reason, code]);
}

/** By row of the exits table, the groups with its exits. */
export function groupsOf(rows: ExitRow[], groups: HeatGroup[]): HeatGroup[][] {
  const byKey = new Map<string, HeatGroup[]>();
  for (const group of groups) {
    const key = keyOf(group);
    const known = byKey.get(key);
    if (known) known.push(group);
    else byKey.set(key, [group]);
  }
  return rows.map((row) => byKey.get(keyOf(row)) ?? []);
}

export interface Grid {
  columns: number;
  /** The row of the heat map at the grid's first row. */
  firstRow: number;
  rows: number;
  /** Whether the first row has exits without duration: the clock stood still in them. */
  zero: boolean;
  /** Counts, row by row from the shortest times, each over all columns. */
  counts: Float64Array;
  most: number;
  total: number;
}

/**
 * Sums groups into one grid; null if they have no exits. Exits without duration (below two nanoseconds) are far from
 * all others on a logarithmic axis: they get the lowest row, wherever the others begin.
 */
export function gridOf(heat: Heat, groups: HeatGroup[]): Grid | null {
  let [first, last, zero] = [255, 0, false];
  for (const group of groups) {
    for (const row of group.row) {
      zero ||= row === 0;
      if (row > 0) first = Math.min(first, row);
      last = Math.max(last, row);
    }
  }
  if (first > last && !zero) return null;
  if (first > last) first = last + 1;
  const columns = heat.info.columns;
  const below = zero ? 2 : 0;
  const rows = last - first + 1 + below;
  const counts = new Float64Array(columns * rows);
  let total = 0;
  for (const group of groups) {
    for (let at = 0; at < group.cells; at++) {
      const row = group.row[at]! === 0 ? 0 : group.row[at]! - first + below;
      const place = row * columns + group.column[at]!;
      counts[place] = counts[place]! + group.count[at]!;
      total += group.count[at]!;
    }
  }
  return { columns, firstRow: first - below, rows, zero, counts, most: counts.reduce((a, b) => Math.max(a, b), 0), total };
}

/** Exits of a group by row of the grid, over all time. */
export function histogramOf(groups: HeatGroup[]): Map<number, number> {
  const histogram = new Map<number, number>();
  for (const group of groups) {
    for (let at = 0; at < group.cells; at++) {
      const row = group.row[at]!;
      histogram.set(row, (histogram.get(row) ?? 0) + group.count[at]!);
    }
  }
  return histogram;
}
