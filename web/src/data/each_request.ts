// Individual requests, from which any interval is summed as `hyperscope path --from --to` does.

import type { Columns } from "./columns";
import { distributionOf, type Distribution } from "./distribution";

export interface RequestGroup {
  vm: string | null;
  /** Null: all further paths. */
  path: string | null;
  requests: number;
}

export interface EachRequestInfo {
  columns_in: string;
  from_ns: number;
  groups: RequestGroup[];
}

/** All requests: columns over all groups, each group in the order of their begins. */
export interface EachRequest {
  info: EachRequestInfo;
  /** Begin of each group; after the last group, its end. */
  begins: number[];
  start: Float64Array;
  length: Float64Array;
}

export function readEachRequest(columns: Columns, info: EachRequestInfo): EachRequest {
  const begins = [0];
  for (const group of info.groups) begins.push(begins.at(-1)! + group.requests);
  const all = begins.at(-1)!;
  const [start, length] = [new Float64Array(all), new Float64Array(all)];
  info.groups.forEach((_, of) => {
    let at = info.from_ns;
    for (let request = begins[of]!; request < begins[of + 1]!; request++) start[request] = at += columns.number();
  });
  for (let at = 0; at < all; at++) length[at] = columns.number();
  return { info, begins, start, length };
}

export interface OneRequest {
  start: number;
  length: number;
}

/** Requests of a path in a stretch of time. */
export interface RequestSums {
  group: RequestGroup;
  lengths: Distribution;
  /** Some of them, the longest first. */
  slowest: OneRequest[];
}

/**
 * Requests that begin and end in an interval, by path, in descending order of total time; and the number of those that
 * only begin or end in it.
 */
export function requestsWithin(all: EachRequest, from: number, to: number, wanted: (group: RequestGroup) => boolean, most: number): { sums: RequestSums[]; cut: number } {
  let cut = 0;
  const sums = all.info.groups.flatMap((group, of) => {
    if (!wanted(group)) return [];
    const inside: OneRequest[] = [];
    for (let at = all.begins[of]!; at < all.begins[of + 1]!; at++) {
      const [start, length] = [all.start[at]!, all.length[at]!];
      if (start >= to) break;
      if (start + length < from) continue;
      if (start < from || start + length >= to) cut++;
      else inside.push({ start, length });
    }
    if (inside.length === 0) return [];
    const lengths = distributionOf(inside.map(({ length }) => length));
    return [{ group, lengths, slowest: inside.sort((a, b) => b.length - a.length || a.start - b.start).slice(0, most) }];
  });
  return { sums: sums.sort((a, b) => b.lengths.sum - a.lengths.sum), cut };
}
