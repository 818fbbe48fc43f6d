// Arrows between lanes: the thread that woke the running one, the thread that raised an entry's
// interrupt.

import type { Columns } from "./columns";
import type { ArrowsInfo } from "./report";

export interface Arrow {
  kind: string;
  from: { lane: number; at: number };
  to: { lane: number; at: number };
}

/** By lane, indices of arrows that begin, or end, there, in order of time. */
type ByLane = Map<number, number[]>;

export class Arrows {
  private readonly into: ByLane;
  private readonly outOf: ByLane;

  constructor(
    readonly kinds: string[],
    readonly from: Float64Array,
    readonly to: Float64Array,
    readonly kind: Uint8Array,
    readonly fromLane: Uint32Array,
    readonly toLane: Uint32Array,
  ) {
    this.into = byLane(toLane, to);
    this.outOf = byLane(fromLane, from);
  }

  get count(): number {
    return this.to.length;
  }

  at(place: number): Arrow {
    return {
      kind: this.kinds[this.kind[place]!] ?? "",
      from: { lane: this.fromLane[place]!, at: this.from[place]! },
      to: { lane: this.toLane[place]!, at: this.to[place]! },
    };
  }

  /** Arrows that end in a lane between `from` and `to`, inclusive, and those that begin there. */
  touching(lane: number, from: number, to: number): { into: Arrow[]; outOf: Arrow[] } {
    const of = (all: ByLane, times: Float64Array) => {
      const places = all.get(lane) ?? [];
      return places.slice(firstFrom(places, times, from), firstFrom(places, times, to + 1)).map((place) => this.at(place));
    };
    return { into: of(this.into, this.to), outOf: of(this.outOf, this.from) };
  }
}

function byLane(lanes: Uint32Array, times: Float64Array): ByLane {
  const all: ByLane = new Map();
  lanes.forEach((lane, place) => {
    const known = all.get(lane);
    if (known) known.push(place);
    else all.set(lane, [place]);
  });
  for (const places of all.values()) places.sort((a, b) => times[a]! - times[b]!);
  return all;
}

function firstFrom(places: number[], times: Float64Array, time: number): number {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (times[places[middle]!]! < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function readArrows(columns: Columns, info: ArrowsInfo): Arrows {
  const count = info.arrows;
  const [from, to] = [new Float64Array(count), new Float64Array(count)];
  const kind = new Uint8Array(count);
  const [fromLane, toLane] = [new Uint32Array(count), new Uint32Array(count)];
  let end = 0;
  for (let at = 0; at < count; at++) to[at] = end += columns.number();
  for (let at = 0; at < count; at++) from[at] = to[at]! - columns.number();
  for (let at = 0; at < count; at++) kind[at] = columns.byte();
  for (let at = 0; at < count; at++) fromLane[at] = columns.number();
  for (let at = 0; at < count; at++) toLane[at] = columns.number();
  return new Arrows(info.kinds, from, to, kind, fromLane, toLane);
}
