// Requests come out of the page as they went in, and a stretch has those that begin and end in it.

import { describe, expect, test } from "vitest";
import { readEachRequest, requestsWithin, type EachRequest, type OneRequest } from "../src/data/each_request";
import { packed } from "./packed";
import { random } from "./random";

const EVERYTHING = () => true;

function some(sizes: number[]): { all: EachRequest; made: OneRequest[][] } {
  const next = random(11);
  const made = sizes.map((size) => Array.from({ length: size }, () => ({ start: 500 + Math.floor(next() * 100_000), length: Math.floor(next() * 3000) })).sort((a, b) => a.start - b.start));
  const starts = made.flatMap((requests) => requests.map(({ start }, at) => start - (requests[at - 1]?.start ?? 500)));
  const info = { columns_in: "", from_ns: 500, groups: made.map((requests, at) => ({ vm: at === 0 ? "a" : "b", path: at === 2 ? null : `path ${at}`, requests: requests.length })) };
  return { all: readEachRequest(packed([...starts, ...made.flat().map(({ length }) => length)]), info), made };
}

describe("requests", () => {
  test("of a stretch are those that a naive count finds", () => {
    const { all, made } = some([900, 70, 5]);
    for (const [from, to] of [[0, 1e9], [20_000, 60_000], [99_000, 99_500], [7, 8]] as const) {
      const { sums, cut } = requestsWithin(all, from, to, EVERYTHING, 3);
      let touched = 0;
      made.forEach((requests, at) => {
        const inside = requests.filter(({ start, length }) => start >= from && start + length < to);
        touched += requests.filter(({ start, length }) => start < to && start + length >= from).length - inside.length;
        const sum = sums.find(({ group }) => group === all.info.groups[at]);
        expect(sum?.lengths.count ?? 0).toBe(inside.length);
        expect(sum?.lengths.sum ?? 0).toBe(inside.reduce((total, { length }) => total + length, 0));
        const slowest = inside.map(({ length }) => length).sort((a, b) => b - a);
        expect(sum?.slowest.map(({ length }) => length) ?? []).toEqual(slowest.slice(0, 3));
      });
      expect(cut).toBe(touched);
      const times = sums.map(({ lengths }) => lengths.sum);
      expect(times).toEqual([...times].sort((a, b) => b - a));
    }
  });

  test("of one VM leave those of others out", () => {
    const { all } = some([10, 20, 5]);
    const { sums } = requestsWithin(all, 0, 1e9, ({ vm }) => vm === "b", 1);
    expect(sums.map(({ lengths }) => lengths.count).sort()).toEqual([20, 5].sort());
  });
});
