// Detail that comes back in an interval: spans as they were, and sums over all time unchanged.

import { expect, test } from "vitest";
import { hasMerged, withDetail } from "../src/data/deeper";
import { Lane, MERGED } from "../src/data/lane";
import { random } from "./random";

type Item = [from: number, to: number, state: number];

const laneOf = (items: Item[]) => new Lane(Float64Array.from(items, (one) => one[0]), Float64Array.from(items, (one) => one[1]), Uint8Array.from(items, (one) => one[2]), Uint32Array.from(items, () => 1), []);

/** As the recorder of a page merges: neighbours that are short. */
function merged(items: Item[], below: number): Lane {
  const [from, to, state, label, all]: [number[], number[], number[], number[], { count: number; states: [number, number][] }[]] = [[], [], [], [], []];
  let run: Item[] = [];
  const end = () => {
    if (run.length === 0) return;
    from.push(run[0]![0]);
    to.push(run.at(-1)![1]);
    if (run.length === 1) {
      state.push(run[0]![2]);
      label.push(1);
    } else {
      const sums = new Map<number, number>();
      for (const one of run) sums.set(one[2], (sums.get(one[2]) ?? 0) + one[1] - one[0]);
      state.push(MERGED);
      label.push(all.length);
      all.push({ count: run.length, states: [...sums] });
    }
    run = [];
  };
  for (const one of items) {
    if (one[1] - one[0] >= below) {
      end();
      run = [one];
      end();
    } else run.push(one);
  }
  end();
  return new Lane(Float64Array.from(from), Float64Array.from(to), Uint8Array.from(state), Uint32Array.from(label), all);
}

function drawn(next: () => number): Item[] {
  const items: Item[] = [];
  let at = 0;
  for (let left = 200; left > 0; left--) {
    const from = at + (next() < 0.2 ? Math.floor(next() * 20) : 0);
    at = from + 1 + Math.floor(next() ** 4 * 400);
    items.push([from, at, Math.floor(next() * 4)]);
  }
  return items;
}

const sums = (lane: Lane, from: number, to: number) => [0, 1, 2, 3].map((state) => Math.round(lane.within(from, to).get(state) ?? 0));

test("in the interval spans are as they were, elsewhere as they are", () => {
  const next = random(7);
  for (let round = 0; round < 200; round++) {
    const items = drawn(next);
    const end = items.at(-1)![1];
    const [whole, held] = [laneOf(items), merged(items, 60)];
    const from = Math.floor(next() * end);
    const to = from + 1 + Math.floor(next() * (end - from));
    // The recording is read with a margin.
    const deeper = laneOf(items.filter((one) => one[1] > from - 50 && one[0] < to + 50));
    const lane = withDetail(held, deeper, { from, to }, (label) => label);
    expect(sums(lane, 0, end)).toEqual(sums(whole, 0, end));
    expect(sums(lane, from, to)).toEqual(sums(whole, from, to));
    expect(hasMerged(lane, { from, to })).toBe(false);
    for (let at = 0; at < lane.count; at++) {
      expect(lane.to[at]!).toBeGreaterThan(lane.from[at]!);
      if (at > 0) expect(lane.from[at]!).toBeGreaterThanOrEqual(lane.to[at - 1]!);
    }
    for (const [begin, stop, state] of items) {
      if (begin < from || stop > to) continue;
      const at = lane.at(begin)!;
      expect([lane.from[at], lane.to[at], lane.state[at]]).toEqual([begin, stop, state]);
    }
  }
});

test("what is not known stays merged", () => {
  const held = merged([[0, 5, 0], [5, 9, 1], [10, 20, 0]], 60);
  expect(withDetail(held, laneOf([]), { from: 0, to: 20 }, () => 0)).toBe(held);
  const lane = withDetail(held, laneOf([[10, 20, 0]]), { from: 0, to: 20 }, () => 7);
  expect(lane.state[0]).toBe(MERGED);
  expect(lane.count).toBe(2);
  expect(lane.label[1]).toBe(7);
  expect(sums(lane, 0, 20)).toEqual([15, 4, 0, 0]);
});
