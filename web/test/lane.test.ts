// However a lane is looked at, no time is lost and none is made up.

import { describe, expect, test } from "vitest";
import { Columns } from "../src/data/columns";
import { Lane, MERGED, readLane, type MergedSpans } from "../src/data/lane";
import { drawLane } from "../src/views/timeline/raster";
import { random } from "./random";

const STATES = 5;

/** A lane with gaps, and spans from a nanosecond to milliseconds; every tenth is merged of others. */
function lane(seed: number, count: number): Lane {
  const next = random(seed);
  const [from, to] = [new Float64Array(count), new Float64Array(count)];
  const [state, label] = [new Uint8Array(count), new Uint32Array(count)];
  const merged: MergedSpans[] = [];
  let at = Math.floor(next() * 1000);
  for (let span = 0; span < count; span++) {
    if (next() < 0.2) at += Math.floor(next() * 5000);
    from[span] = at;
    const length = 1 + Math.floor(2 ** (next() * 20));
    at += length;
    to[span] = at;
    if (length > 20 && next() < 0.1) {
      state[span] = MERGED;
      label[span] = merged.length;
      const first = Math.floor(length / 3);
      merged.push({ count: 4, states: [[1, first], [3, length - first - (span % 2)]] });
    } else {
      state[span] = Math.floor(next() * STATES);
      label[span] = span % 7;
    }
  }
  return new Lane(from, to, state, label, merged);
}

/** Time by state in a stretch, span by span. */
function naive(one: Lane, from: number, to: number): number[] {
  const sums = Array<number>(STATES).fill(0);
  for (let at = 0; at < one.count; at++) {
    const length = one.to[at]! - one.from[at]!;
    const inside = Math.max(0, Math.min(to, one.to[at]!) - Math.max(from, one.from[at]!));
    const states = one.state[at] === MERGED ? one.merged[one.label[at]!]!.states : [[one.state[at]!, length] as [number, number]];
    for (const [state, ns] of states) sums[state] = sums[state]! + (ns * inside) / length;
  }
  return sums;
}

describe("sums of a lane", () => {
  test.each([1, 2, 3, 4, 5, 6, 7, 8])("are those of its spans, wherever a stretch begins and ends (%i)", (seed) => {
    const one = lane(seed, 30 + seed * 57);
    const next = random(seed + 100);
    for (let round = 0; round < 200; round++) {
      const [a, b] = [next(), next()].map((share) => share * (one.end + 2000) - 500).sort((x, y) => x - y) as [number, number];
      const expected = naive(one, a, b);
      const sums = one.within(a, b);
      expected.forEach((ns, state) => expect(Math.abs((sums.get(state) ?? 0) - ns)).toBeLessThan(0.51));
    }
  });

  test("at all ends of spans are exact", () => {
    const one = lane(42, 500);
    for (let at = 1; at < one.count; at++) {
      const sums = one.within(one.from[0]!, one.to[at]!);
      naive(one, one.from[0]!, one.to[at]!).forEach((ns, state) => expect(sums.get(state) ?? 0).toBeCloseTo(ns, 3));
    }
  });

  test("count merged spans one by one", () => {
    const one = lane(3, 400);
    let expected = 0;
    for (let at = 0; at < one.count; at++) expected += one.state[at] === MERGED ? 4 : 1;
    expect(one.spansWithin(-1, one.end)).toBe(expected);
  });

  test("of an empty lane are nothing", () => {
    const none = new Lane(new Float64Array(0), new Float64Array(0), new Uint8Array(0), new Uint32Array(0), []);
    expect(none.within(0, 100).size).toBe(0);
    expect(none.at(5)).toBeNull();
  });
});

describe("finding a span", () => {
  test("by a moment is right, whatever the hint", () => {
    const one = lane(9, 700);
    const next = random(5);
    for (let round = 0; round < 500; round++) {
      const time = next() * (one.end + 100);
      let expected = 0;
      while (expected < one.count && one.from[expected]! <= time) expected++;
      expect(one.begunBy(time)).toBe(expected);
      expect(one.begunBy(time, Math.floor(next() * expected))).toBe(expected);
    }
  });
});

describe("a drawn lane", () => {
  /** Colour 100 + state; the shares of a column's heights are the shares of its time. */
  const colours = Uint32Array.from({ length: 256 }, (_, state) => 100 + state);

  test.each([1, 7, 64, 1000])("shows in %i columns as much of each state as there is", (width) => {
    const one = lane(width, 900);
    const height = 200;
    const pixels = new Uint32Array(width * height);
    const shown = { from: one.begin, to: one.end };
    drawLane({ pixels, width, colours, empty: 1 }, one, shown, 0, height);
    const step = (shown.to - shown.from) / width;
    for (let column = 0; column < width; column += Math.ceil(width / 50)) {
      const expected = naive(one, shown.from + column * step, shown.from + (column + 1) * step);
      expected.forEach((ns, state) => {
        let drawn = 0;
        for (let y = 0; y < height; y++) drawn += Number(pixels[y * width + column] === 100 + state);
        expect(Math.abs(drawn / height - ns / step)).toBeLessThan(1.01 / height);
      });
    }
  });

  test("has no pixel that was not drawn", () => {
    const one = lane(77, 300);
    const pixels = new Uint32Array(50 * 10);
    drawLane({ pixels, width: 50, colours, empty: 1 }, one, { from: -5000, to: one.end + 5000 }, 0, 10);
    expect(pixels.includes(0)).toBe(false);
  });
});

describe("columns", () => {
  const leb = (value: number): number[] => (value < 128 ? [value] : [(value % 128) | 128, ...leb(Math.floor(value / 128))]);

  test("of a lane are read as docs/formats/report.md says", () => {
    const bytes = [5, 0, 300, 10, 2 ** 40, 7].flatMap(leb).concat([2, 255, 0]).concat([3, 0, 9].flatMap(leb)).concat([6, 2, 1, 100, 4, 50].flatMap(leb));
    const one = readLane(new Columns(Uint8Array.from(bytes)), 3);
    expect([...one.from]).toEqual([5, 15, 315 + 2 ** 40]);
    expect([...one.to]).toEqual([15, 15 + 2 ** 40, 322 + 2 ** 40]);
    expect([...one.label]).toEqual([3, 0, 9]);
    expect(one.merged).toEqual([{ count: 6, states: [[1, 100], [4, 50]] }]);
    expect(one.states).toEqual([0, 1, 2, 4]);
  });

  test("that end too early are reported", () => {
    expect(() => readLane(new Columns(Uint8Array.from([1, 2])), 2)).toThrow("too early");
    expect(() => new Columns(new Uint8Array(40).fill(255)).number()).toThrow("no end");
  });
});
