// The code that vCPUs ran: rows of time, each with its stack, as in `hyperscope profile`.

import type { Columns } from "./columns";

export interface ProfileOwner {
  /** Empty: the host, none of whose VMs is recorded. */
  vm: string;
  /** Null: another thread that works for the VM. */
  vcpu: number | null;
  /** Null: it works for no VM. */
  part: string | null;
  tid: number;
  comm: string | null;
  time_ns: number;
}

export interface ProfileInfo {
  columns_in: string;
  owners: ProfileOwner[];
  states: { key: string; is_idle: boolean }[];
  names: number;
  frames: number;
  rows: number;
  cut_ns: number;
  slices: { from_ns: number; slice_ns: number; count: number } | null;
  notes: string[];
}

/** The name of an owner that is no vCPU. */
export const threadName = ({ part, comm, tid }: ProfileOwner) => (part === null ? (comm ?? `thread ${tid}`) : `${part} ${comm ?? tid}`);

/** Kinds of evidence, by number. */
export const EVIDENCE = ["nothing", "exits", "samples of the host", "samples of the guest"] as const;

const [EVIDENCE_BITS, HOST_CODE, CUT] = [3, 4, 8];

/** Rows, column by column; frames and optional names are counted from 1. */
export interface Profile {
  info: ProfileInfo;
  names: string[];
  /** By frame, the frame around it; 0: it is the outermost. */
  parent: Uint32Array;
  name: Uint32Array;
  userSpace: Uint8Array;
  owner: Uint32Array;
  state: Uint8Array;
  level: Uint8Array;
  reason: Uint32Array;
  comm: Uint32Array;
  flags: Uint8Array;
  frame: Uint32Array;
  time: Float64Array;
  samples: Float64Array;
  /** Distances of the 95% interval's ends below and above the time. */
  below: Float64Array;
  above: Float64Array;
  /** Begin of each row's slices; after the last row, their end. */
  slicesFrom: Uint32Array;
  slice: Uint32Array;
  sliceTime: Float64Array;
}

export const evidenceOf = (profile: Profile, row: number) => profile.flags[row]! & EVIDENCE_BITS;
export const isHostCode = (profile: Profile, row: number) => (profile.flags[row]! & HOST_CODE) !== 0;
export const isCut = (profile: Profile, row: number) => (profile.flags[row]! & CUT) !== 0;

export function readProfile(columns: Columns, info: ProfileInfo): Profile {
  const { frames, rows } = info;
  const words = new TextDecoder();
  const names = Array.from({ length: info.names }, () => {
    const bytes = new Uint8Array(columns.number());
    for (let at = 0; at < bytes.length; at++) bytes[at] = columns.byte();
    return words.decode(bytes);
  });
  const fill = <A extends Uint8Array | Uint32Array | Float64Array>(array: A): A => {
    for (let at = 0; at < array.length; at++) array[at] = columns.number();
    return array;
  };
  const parent = fill(new Uint32Array(frames));
  for (let at = 0; at < frames; at++) parent[at] = Math.max(0, at + 1 - parent[at]!);
  const [name, userSpace] = [fill(new Uint32Array(frames)), fill(new Uint8Array(frames))];
  const [owner, state, level] = [fill(new Uint32Array(rows)), fill(new Uint8Array(rows)), fill(new Uint8Array(rows))];
  const [reason, comm, flags, frame] = [fill(new Uint32Array(rows)), fill(new Uint32Array(rows)), fill(new Uint8Array(rows)), fill(new Uint32Array(rows))];
  const [time, samples, below, above] = [fill(new Float64Array(rows)), fill(new Float64Array(rows)), fill(new Float64Array(rows)), fill(new Float64Array(rows))];
  const slicesFrom = new Uint32Array(rows + 1);
  const [slice, sliceTime]: [number[], number[]] = [[], []];
  for (let row = 0; row < rows; row++) {
    let at = 0;
    for (let left = columns.number(); left > 0; left--) {
      slice.push((at += columns.number()));
      sliceTime.push(columns.number());
    }
    slicesFrom[row + 1] = slice.length;
  }
  return { info, names, parent, name, userSpace, owner, state, level, reason, comm, flags, frame, time, samples, below, above, slicesFrom, slice: Uint32Array.from(slice), sliceTime: Float64Array.from(sliceTime) };
}

/** Whether it has vCPUs; otherwise it only has threads. */
export function hasVcpus(info: ProfileInfo): boolean {
  return info.owners.some((one) => one.vcpu !== null);
}

/** The time of a row in some slices, excluding the end. */
export function timeWithin(profile: Profile, row: number, from: number, to: number): number {
  let sum = 0;
  for (let at = profile.slicesFrom[row]!; at < profile.slicesFrom[row + 1]!; at++) {
    if (profile.slice[at]! >= from && profile.slice[at]! < to) sum += profile.sliceTime[at]!;
  }
  return sum;
}

/**
 * Slices in a range of time, and the range that they cover; null: there are no slices, or the range includes all of
 * them.
 */
export function slicesOf(info: ProfileInfo, range: { from: number; to: number } | null): { first: number; end: number; from: number; to: number } | null {
  if (!info.slices || !range) return null;
  const { from_ns, slice_ns, count } = info.slices;
  const first = Math.min(count, Math.max(0, Math.floor((range.from - from_ns) / slice_ns)));
  const end = Math.min(count, Math.max(first, Math.ceil((range.to - from_ns) / slice_ns)));
  if (first === 0 && end === count) return null;
  return { first, end, from: from_ns + first * slice_ns, to: from_ns + end * slice_ns };
}
