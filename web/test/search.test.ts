// Finding goes through all matches once, in the order of their times, forwards and backwards.

import { expect, test } from "vitest";
import { Lane } from "../src/data/lane";
import type { LaneInfo, Report } from "../src/data/report";
import { groupsOf } from "../src/views/timeline/rows";
import { Search, type Match } from "../src/views/timeline/search";

const LABELS = ["", "npf", "msr", "hlt"];

function report(): Report {
  const info = (name: string): LaneInfo => ({ columns_in: "", machine: "host", kind: "vcpu", name, vm: "vm", depth: null, quiet: false, spans: 0 });
  const states = [{ key: "guest", title: "guest" }, { key: "kernel", title: "kernel" }];
  const timeline = { spans: 0, merged_below_ns: 0, lanes_left_out: 0, states, labels: LABELS, lanes: [info("vCPU 0"), info("vCPU 1")] };
  return { timeline } as unknown as Report;
}

function search(words: string): { search: Search; expected: string[] } {
  const of = report();
  const rows = groupsOf(of.timeline.lanes).flatMap((group) => group.rows);
  rows.forEach((row, lane) => {
    const starts = Array.from({ length: 60 }, (_, at) => at * 10 + (at % 5 === 0 ? 0 : lane * 3));
    const label = Uint32Array.from(starts, (_, at) => (at * (lane + 2)) % LABELS.length);
    row.lane = new Lane(Float64Array.from(starts), Float64Array.from(starts, (start) => start + 5), Uint8Array.from(starts, (_, at) => at % 2), label, []);
  });
  const spans = rows.flatMap((row, lane) => [...row.lane!.from].map((from, at) => ({ from, lane, at, label: LABELS[row.lane!.label[at]!]! })));
  const expected = spans
    .filter((span) => span.label.includes(words))
    .sort((a, b) => a.from - b.from || a.lane - b.lane)
    .map((span) => `${span.lane}:${span.at}`);
  return { search: new Search(of, rows, words), expected };
}

function walk(search: Search, forward: boolean): string[] {
  const found: string[] = [];
  let match: Match | null = search.next(null, forward ? -1 : 1e9, forward);
  while (match && found.length < 1000) {
    found.push(`${match.row.info.name.slice(-1)}:${match.at}`);
    match = search.next(match, 0, forward);
  }
  return found;
}

test.each(["npf", "hlt", "sr"])("every match of %s is found once", (words) => {
  const { search: one, expected } = search(words);
  expect(expected.length).toBeGreaterThan(10);
  expect(one.count()).toBe(expected.length);
  expect(walk(one, true)).toEqual(expected);
  expect(walk(one, false)).toEqual([...expected].reverse());
});

test("nothing is found by what is not there, nor by nothing", () => {
  expect(search("xyz").search.count()).toBe(0);
  expect(search("xyz").search.next(null, 0, true)).toBeNull();
  expect(search("").search.empty).toBe(true);
});

test("each match has its place among all, others have none", () => {
  const { search: all, expected } = search("npf");
  let found: Match | null = null;
  for (let place = 1; place <= expected.length; place++) {
    found = all.next(found, -1, true);
    expect(all.rank(found!)).toBe(place);
  }
  expect(search("xyz").search.rank(found!)).toBeNull();
});
