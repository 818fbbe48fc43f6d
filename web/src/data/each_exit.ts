// Individual exits, from which any interval is summed as `hyperscope exits --from --to` does.

import type { Columns } from "./columns";
import { distributionOf, type Distribution } from "./distribution";
import type { EachExitInfo, ExitGroupInfo } from "./report";

const [OUTCOME, HANDLER, POLL_UNKNOWN] = [3, 12, 16];

/** All exits of a recording: columns over all groups, each group in the order of time. */
export interface EachExit {
  info: EachExitInfo;
  /** Begin of each group; after the last group, its end. */
  begins: number[];
  start: Float64Array;
  flags: Uint8Array;
  length: Float64Array;
  user: Float64Array;
  runnable: Float64Array;
  blocked: Float64Array;
  poll: Float64Array;
  before: Float64Array;
  pc: Uint32Array;
  about: Uint32Array;
}

export function readEachExit(columns: Columns, info: EachExitInfo): EachExit {
  const begins = [0];
  for (const group of info.groups) begins.push(begins.at(-1)! + group.exits);
  const all = begins.at(-1)!;
  const start = new Float64Array(all);
  info.groups.forEach((_, of) => {
    let at = info.from_ns;
    for (let exit = begins[of]!; exit < begins[of + 1]!; exit++) start[exit] = at += columns.number();
  });
  const flags = Uint8Array.from({ length: all }, () => columns.byte());
  const numbers = <A extends Float64Array | Uint32Array>(array: A): A => {
    for (let at = 0; at < all; at++) array[at] = columns.number();
    return array;
  };
  const times = () => numbers(new Float64Array(all));
  return { info, begins, start, flags, length: times(), user: times(), runnable: times(), blocked: times(), poll: times(), before: times(), pc: numbers(new Uint32Array(all)), about: numbers(new Uint32Array(all)) };
}

export function isPaired(list: EachExit, at: number): boolean {
  return (list.flags[at]! & OUTCOME) === 0;
}

export function handlerOf(list: EachExit, at: number): "kernel" | "user space" | "level 1" {
  return (["kernel", "user space", "level 1"] as const)[(list.flags[at]! & HANDLER) >> 2] ?? "kernel";
}

/** The first exit of a group that begins at or after `time`. */
export function firstFrom(list: EachExit, group: number, time: number): number {
  let [low, high] = [list.begins[group]!, list.begins[group + 1]!];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (list.start[middle]! < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The sums of one row's exits in an interval. */
export interface ExitSums {
  source: string;
  group: ExitGroupInfo;
  count: number;
  paired: number;
  /** CPU time of handling them; null if switches are not recorded. */
  cost: number | null;
  costs: Distribution | null;
  durations: Distribution;
}

interface Row {
  list: EachExit;
  group: ExitGroupInfo;
  count: number;
  before: number;
  ran: number;
  poll: number;
  pollKnown: boolean;
  durations: number[];
  costs: number[];
}

const keyOf = ({ info }: EachExit, { vm, level, reason, code, isa }: ExitGroupInfo) => JSON.stringify([info.source, vm, level, reason, code, isa]);

/**
 * Sums of the exits that begin in an interval, by VM, level, reason and code. An exit whose entry is after it is
 * counted without a time, as if the recording ended there.
 */
export function sumsWithin(lists: EachExit[], from: number, to: number, wanted: (group: ExitGroupInfo) => boolean): ExitSums[] {
  const rows = new Map<string, Row>();
  for (const list of lists) {
    const unseen = beganBefore(list, from);
    list.info.groups.forEach((group, at) => {
      const [first, end] = [firstFrom(list, at, from), firstFrom(list, at, to)];
      if (first === end || !wanted(group)) return;
      const key = keyOf(list, group);
      const row = rows.get(key) ?? { list, group, count: 0, before: 0, ran: 0, poll: 0, pollKnown: list.info.halt_poll_recorded, durations: [], costs: [] };
      rows.set(key, row);
      for (let exit = first; exit < end; exit++) add(row, list, exit, to, unseen.has(exit) ? 0 : list.before[exit]!);
    });
  }
  return [...rows.values()].map(sumsOf);
}

/**
 * By vCPU, the first exit of an interval, if the entry before it is outside: from the interval alone, the host's work
 * before that exit can't be distinguished from the previous exit.
 */
function beganBefore(list: EachExit, from: number): Set<number> {
  const first = new Map<string, number>();
  const last = new Map<string, number>();
  list.info.groups.forEach(({ vm, vcpu }, group) => {
    const key = `${vm}\0${vcpu}`;
    const at = firstFrom(list, group, from);
    const [known, before] = [first.get(key), last.get(key)];
    if (at < list.begins[group + 1]! && (known === undefined || list.start[at]! < list.start[known]!)) first.set(key, at);
    if (at > list.begins[group]! && (before === undefined || list.start[at - 1]! > list.start[before]!)) last.set(key, at - 1);
  });
  const unseen = [...first].filter(([key]) => {
    const before = last.get(key);
    return before !== undefined && list.start[before]! + list.length[before]! < from;
  });
  return new Set(unseen.map(([, at]) => at));
}

function add(row: Row, list: EachExit, exit: number, to: number, before: number): void {
  const [start, length] = [list.start[exit]!, list.length[exit]!];
  row.count++;
  row.before += before;
  if (!isPaired(list, exit) || start + length >= to) return;
  const poll = list.poll[exit]!;
  const ran = length - list.runnable[exit]! - list.blocked[exit]! - poll;
  row.durations.push(length);
  row.costs.push(ran + before);
  row.ran += ran;
  row.poll += poll;
  row.pollKnown &&= (list.flags[exit]! & POLL_UNKNOWN) === 0;
}

function sumsOf(row: Row): ExitSums {
  const { list, group, count } = row;
  const known = list.info.off_cpu_recorded;
  // If polling is not known for all exits of a row, it is in the row's kernel part.
  const cost = known ? row.before + row.ran + (row.pollKnown ? 0 : row.poll) : null;
  const durations = distributionOf(row.durations);
  return { source: list.info.source, group, count, paired: durations.count, cost, costs: known ? distributionOf(row.costs) : null, durations };
}
