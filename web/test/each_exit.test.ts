// What is said of a stretch of time is what its exits add up to, one by one.

import { expect, test } from "vitest";
import { Columns } from "../src/data/columns";
import { bucketEnd, distributionOf } from "../src/data/distribution";
import { firstFrom, readEachExit, sumsWithin, type EachExit } from "../src/data/each_exit";
import type { EachExitInfo, ExitGroupInfo } from "../src/data/report";
import { random } from "./random";

const leb = (value: number): number[] => (value < 128 ? [value] : [(value % 128) | 128, ...leb(Math.floor(value / 128))]);

interface One {
  start: number;
  flags: number;
  /** Length, user, runnable, blocked, poll, before, pc, about. */
  numbers: number[];
}

function made(seed: number, recorded = { off: true, poll: true }): { list: EachExit; exits: { group: ExitGroupInfo; one: One }[] } {
  const next = random(seed);
  const whole = (most: number) => Math.floor(next() * most);
  const group = (vcpu: number, reason: string): ExitGroupInfo => ({ vm: "web", vcpu, level: 1, isa: "vmx", reason, code: reason === "hlt" ? 12 : 30, exits: 1 + whole(120) });
  const groups = [group(0, "io"), group(1, "io"), group(0, "hlt")];
  const info: EachExitInfo = { source: "a.dat", columns_in: "x", from_ns: 1000, off_cpu_recorded: recorded.off, halt_poll_recorded: recorded.poll, groups, values: [] };
  const of = groups.map((group) => {
    let start = 1000;
    return Array.from({ length: group.exits }, (): One => {
      start += whole(500);
      const parts = [whole(90), whole(2) * whole(50), whole(2) * whole(50), whole(2) * whole(30)];
      const paired = next() < 0.9;
      const length = paired ? parts.reduce((a, b) => a + b, 0) + whole(100) : 0;
      return { start, flags: (paired ? 0 : 1) | (whole(20) === 0 ? 16 : 0), numbers: [length, ...(paired ? parts : [0, 0, 0, 0]), whole(40), 0, 0] };
    });
  });
  const all = of.flat();
  const gaps = of.flatMap((exits) => exits.map((one, at) => one.start - (exits[at - 1]?.start ?? 1000)));
  const bytes = [...gaps.flatMap(leb), ...all.map((one) => one.flags), ...Array.from({ length: 8 }, (_, column) => all.flatMap((one) => leb(one.numbers[column]!))).flat()];
  const columns = new Columns(Uint8Array.from(bytes));
  const list = readEachExit(columns, info);
  expect(columns.done).toBe(true);
  return { list, exits: groups.flatMap((group, at) => of[at]!.map((one) => ({ group, one }))) };
}

/** Whether the entry before an exit lies in a stretch, or none is known. */
function seen(exits: { group: ExitGroupInfo; one: One }[], { group, one }: { group: ExitGroupInfo; one: One }, from: number): boolean {
  const own = exits.filter((other) => other.group.vcpu === group.vcpu).sort((a, b) => a.one.start - b.one.start);
  const inside = own.filter((other) => other.one.start >= from);
  if (inside[0]!.one !== one) return true;
  const last = own.filter((other) => other.one.start < from).at(-1);
  return !last || last.one.start + last.one.numbers[0]! >= from;
}

test.each([1, 2, 3, 4, 5])("sums are those of the exits that begin in a stretch (%i)", (seed) => {
  const { list, exits } = made(seed);
  const next = random(seed + 50);
  for (let round = 0; round < 100; round++) {
    const [from, to] = [next(), next()].map((at) => 900 + Math.floor(at * 30_000)).sort((a, b) => a - b) as [number, number];
    const rows = sumsWithin([list], from, to, () => true);
    const inside = exits.filter(({ one }) => one.start >= from && one.start < to);
    expect(rows.reduce((sum, row) => sum + row.count, 0)).toBe(inside.length);
    for (const row of rows) {
      const own = inside.filter(({ group }) => group.reason === row.group.reason);
      const timed = own.filter(({ one }) => (one.flags & 3) === 0 && one.start + one.numbers[0]! < to);
      const known = timed.every(({ one }) => (one.flags & 16) === 0);
      const cost = timed.reduce((sum, { one: { numbers: [length, , runnable, blocked, poll] } }) => sum + length! - runnable! - blocked! - (known ? poll! : 0), 0);
      const before = own.reduce((sum, exit) => sum + (seen(exits, exit, from) ? exit.one.numbers[5]! : 0), 0);
      expect([row.count, row.paired, row.cost]).toEqual([own.length, timed.length, cost + before]);
      expect(row.durations.sum).toBe(timed.reduce((sum, { one }) => sum + one.numbers[0]!, 0));
    }
  }
});

test("what is not recorded is not a number", () => {
  const rows = sumsWithin([made(7, { off: false, poll: false }).list], 0, 1e9, () => true);
  expect(rows.length).toBe(2);
  for (const row of rows) expect([row.cost, row.costs]).toEqual([null, null]);
});

test("only vCPUs that are wanted count", () => {
  const { list } = made(3);
  const [row] = sumsWithin([list], 0, 1e9, (group) => group.vcpu === 1);
  expect(row!.count).toBe(list.info.groups[1]!.exits);
  expect(firstFrom(list, 0, 0)).toBe(0);
});

test("percentiles are those of hyperscope: exact of few values, of many the end of a bucket", () => {
  const few = distributionOf([4, 2, 9, 4, 5, 4, 7, 5]);
  expect([few.at(500), few.at(900), few.min, few.max, few.sum]).toEqual([4, 9, 2, 9, 40]);
  expect(distributionOf([]).at(500)).toBeNull();
  for (const [value, end] of [[0, 0], [255, 255], [511, 511], [512, 513], [1000, 1001], [2 ** 40, 2 ** 40 + 2 ** 32 - 1]] as const) expect(bucketEnd(value)).toBe(end);
  const many = distributionOf(Array.from({ length: 5000 }, (_, at) => 10_000 + at));
  expect(many.at(500)).toBe(bucketEnd(12_499));
  expect(many.at(1000)).toBe(14_999);
});
