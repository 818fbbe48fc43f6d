// The heat map has every exit once, and its rows are where they say.

import { expect, test } from "vitest";
import { gridOf, histogramOf, rowBegin, type Heat, type HeatGroup } from "../src/data/heat";
import { random } from "./random";

function group(seed: number, cells: number, rows: (next: () => number) => number): HeatGroup {
  const next = random(seed);
  return {
    source: "a", vm: "vm", level: 1, reason: `r${seed}`, code: seed, cells,
    column: Uint16Array.from({ length: cells }, () => Math.floor(next() * 40)),
    row: Uint8Array.from({ length: cells }, () => rows(next)),
    count: Float64Array.from({ length: cells }, () => 1 + Math.floor(next() * 1000)),
  };
}

function heatOf(groups: HeatGroup[]): Heat {
  return { info: { columns_in: "", from_ns: 0, column_ns: 1, columns: 40, rows_per_octave: 4, groups }, groups };
}

const sum = (values: Iterable<number>) => [...values].reduce((a, b) => a + b, 0);

test.each([
  ["all long", (next: () => number) => 40 + Math.floor(next() * 30)],
  ["some of no length", (next: () => number) => (next() < 0.3 ? 0 : 40 + Math.floor(next() * 30))],
  ["all of no length", () => 0],
])("a grid has every exit once: %s", (_, rows) => {
  const groups = [group(1, 300, rows), group(2, 200, rows)];
  const grid = gridOf(heatOf(groups), groups)!;
  const all = sum(groups.flatMap((one) => [...one.count]));
  expect(sum(grid.counts)).toBe(all);
  expect(grid.total).toBe(all);
  expect(sum(histogramOf(groups).values())).toBe(all);
});

test("a grid of nothing is none", () => {
  expect(gridOf(heatOf([]), [])).toBeNull();
});

test("rows begin where the recorder's side puts them", () => {
  // As `latency_row` in crates/answer/analyses/src/lanes/heat.rs.
  const row = (ns: number) => {
    const octave = Math.floor(Math.log2(ns));
    return octave * 4 + Math.floor((ns / 2 ** octave - 1) * 4);
  };
  for (const ns of [1, 2, 3, 4, 5, 100, 1023, 1024, 1280, 1e6, 123456789]) {
    expect(rowBegin(row(ns), 4)).toBeLessThanOrEqual(ns);
    expect(rowBegin(row(ns) + 1, 4)).toBeGreaterThan(ns);
  }
});
