// However a profile is looked at, no time is lost, none is made up, and none counts twice.

import { describe, expect, test } from "vitest";
import { Columns } from "../src/data/columns";
import { readProfile, slicesOf, timeWithin, type ProfileInfo } from "../src/data/profile";
import { LAYERS, matcher, Stacks, type Wanted } from "../src/data/stacks";
import { sandwich } from "../src/views/profile/sandwich";
import { random } from "./random";

const NAMES = ["kvm_run", "memcpy", "halt", "npf", "dd", "f(a<b>)"];
const STATES = ["guest_user", "guest_kernel", "exit_kernel", "exit_user", "halted", "host"];
const [FRAMES, ROWS, SLICES] = [60, 200, 10];

const EVERYTHING: Wanted = { vm: null, owner: null, level: null, reason: null, idle: true, threads: true, without: [], slices: null };

function info(): ProfileInfo {
  const owner = (vm: string, vcpu: number | null) => ({ vm, vcpu, part: vcpu === null ? "vhost" : null, tid: 7, comm: "qemu", time_ns: 0 });
  return {
    columns_in: "", owners: [owner("a", 0), owner("a", 1), owner("b", 0), owner("b", null)], states: STATES.map((key) => ({ key, is_idle: key === "halted" })),
    names: NAMES.length, frames: FRAMES, rows: ROWS, cut_ns: 0, slices: { from_ns: -50, slice_ns: 100, count: SLICES }, notes: [],
  };
}

function made(seed: number): Stacks {
  const next = random(seed);
  const below = (end: number) => Math.floor(next() * end);
  const bytes: number[] = [];
  const number = (value: number) => {
    for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
    bytes.push(value);
  };
  for (const name of NAMES) {
    const words = new TextEncoder().encode(name);
    number(words.length);
    bytes.push(...words);
  }
  for (let at = 1; at <= FRAMES; at++) number(1 + below(at));
  for (let at = 0; at < FRAMES; at++) number(below(NAMES.length));
  for (let at = 0; at < FRAMES; at++) bytes.push(below(2));
  const owners = Array.from({ length: ROWS }, () => below(4));
  const slices = owners.map(() => Array.from({ length: 1 + below(3) }, (_, at) => [at === 0 ? 0 : 1 + below(2), 1 + below(1e6)] as [number, number]));
  const times = slices.map((all) => all.reduce((sum, [, ns]) => sum + ns, 0));
  const column = (value: (row: number) => number) => owners.forEach((_, row) => number(value(row)));
  column((row) => owners[row]!);
  column((row) => (owners[row] === 3 ? STATES.length - 1 : below(STATES.length - 1)));
  for (const end of [3, NAMES.length + 1, NAMES.length + 1, 8, FRAMES + 1]) column(() => below(end));
  column((row) => times[row]!);
  column(() => below(50));
  column((row) => below(times[row]!));
  column((row) => below(times[row]!));
  for (const all of slices) {
    number(all.length);
    for (const [gap, ns] of all) {
      number(gap);
      number(ns);
    }
  }
  const columns = new Columns(Uint8Array.from(bytes));
  const profile = readProfile(columns, info());
  expect(columns.done).toBe(true);
  return new Stacks(profile);
}

const sum = (all: Iterable<number>) => [...all].reduce((a, b) => a + b, 0);

describe.each([1, 2, 3, 4, 5])("stacks (%i)", (seed) => {
  const stacks = made(seed);
  const { profile } = stacks;

  test("hold all of the time, at each node that of its callees and its own", () => {
    const { total, own } = stacks.sums(stacks.times(EVERYTHING));
    expect(total[0]).toBe(sum(profile.time));
    for (let at = 0; at < stacks.length; at++) {
      expect(total[at]).toBe(own[at]! + sum(stacks.callees[at]!.map((callee) => total[callee]!)));
      if (at > 0) expect(stacks.parent[at]).toBeLessThan(at);
    }
  });

  test("are parted by slices, vCPUs and layers without a rest", () => {
    const shown = (wanted: Partial<Wanted>) => stacks.sums(stacks.times({ ...EVERYTHING, ...wanted })).total[0]!;
    const whole = shown({});
    expect(sum(Array.from({ length: SLICES }, (_, at) => shown({ slices: { first: at, end: at + 1 } })))).toBe(whole);
    expect(sum(profile.info.owners.map((_, owner) => shown({ owner })))).toBe(whole);
    expect(shown({ vm: "a" }) + shown({ vm: "b" })).toBe(whole);
    expect(sum(LAYERS.map((layer) => whole - shown({ without: [layer] })))).toBe(whole);
    expect(whole - shown({ threads: false })).toBe(shown({ owner: 3 }));
    for (let row = 0; row < ROWS; row++) expect(timeWithin(profile, row, 0, SLICES)).toBe(profile.time[row]);
  });

  test("count functions and matches once for each stack", () => {
    const times = stacks.times(EVERYTHING);
    const sums = stacks.sums(times);
    for (const one of stacks.functions(sums)) {
      let [own, total] = [0, 0];
      for (let row = 0; row < ROWS; row++) {
        const path = stacks.path(stacks.leaf[row]!).filter((node) => stacks.isCode[node]);
        if (path.some((node) => stacks.key(node) === one.key)) total += times[row]!;
        if (stacks.isCode[stacks.leaf[row]!] && stacks.key(stacks.leaf[row]!) === one.key) own += times[row]!;
      }
      expect([one.own, one.total]).toEqual([own, total]);
      const around = sandwich(stacks, sums.total, one.key)!;
      expect([around.callersTotal[0], around.calleesTotal[0]]).toEqual([total, total]);
      for (const [tree, of] of [[around.callers, around.callersTotal], [around.callees, around.calleesTotal]] as const) {
        tree.callees.forEach((callees, at) => expect(sum(callees.map((callee) => of[callee]!))).toBeLessThanOrEqual(of[at]!));
      }
    }
    const { found, time } = stacks.matches(matcher("m")!, sums.total);
    let expected = 0;
    for (let row = 0; row < ROWS; row++) if (stacks.path(stacks.leaf[row]!).some((node) => found[node] === 1)) expected += times[row]!;
    expect(time).toBe(expected);
  });
});

test("words are words, and between slashes an expression", () => {
  expect(NAMES.filter(matcher("(A<")!)).toEqual(["f(a<b>)"]);
  expect(NAMES.filter(matcher("/^[kn]/")!)).toEqual(["kvm_run", "npf"]);
  expect(matcher("/(/")).toBe(null);
});

test("slices are those that hold a range", () => {
  expect(slicesOf(info(), { from: 60, to: 149 })).toEqual({ first: 1, end: 2, from: 50, to: 150 });
  expect(slicesOf(info(), { from: 0, to: 951 })).toBe(null);
  expect(slicesOf(info(), null)).toBe(null);
});
