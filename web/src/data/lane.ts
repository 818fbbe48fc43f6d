// The spans of a lane in typed arrays, with running sums of their states.
//
// Any part of a lane, at any zoom, is a difference of two running sums, which are stored at every
// few spans and continued from there. So a column of pixels over a thousand spans costs no more
// than one over a part of a span, and its colours are exact.

import type { Columns } from "./columns";

/** Replaces a state: several spans that were merged when the page was made. */
export const MERGED = 255;

/** Running sums are stored at every span of this many; more often in lanes with few states, which need less space. */
const [BLOCK, SMALL_BLOCK, FEW_STATES] = [16, 4, 4];

export interface MergedSpans {
  count: number;
  /** Time by state, as pairs of state and nanoseconds. */
  states: [number, number][];
}

export class Lane {
  readonly count: number;
  /** States that occur, ascending; sums have an element for each. */
  readonly states: number[];
  private readonly placeOf: Int16Array;
  private readonly sums: Float64Array;
  private readonly block: number;
  /** Merged items, one after the other: the begin of each, then indices of states and their time. */
  private readonly mergedFrom: Uint32Array;
  private readonly mergedPlace: Uint8Array;
  private readonly mergedNs: Float64Array;

  constructor(
    readonly from: Float64Array,
    readonly to: Float64Array,
    readonly state: Uint8Array,
    readonly label: Uint32Array,
    readonly merged: MergedSpans[],
  ) {
    this.count = from.length;
    const seen = new Set<number>();
    for (const state of this.state) if (state !== MERGED) seen.add(state);
    for (const one of merged) for (const [state] of one.states) seen.add(state);
    this.states = [...seen].sort((a, b) => a - b);
    this.placeOf = new Int16Array(256).fill(-1);
    this.states.forEach((state, place) => (this.placeOf[state] = place));
    this.block = this.states.length <= FEW_STATES ? SMALL_BLOCK : BLOCK;
    const states = merged.flatMap((one) => one.states);
    this.mergedFrom = new Uint32Array(merged.length + 1);
    merged.forEach((one, at) => (this.mergedFrom[at + 1] = this.mergedFrom[at]! + one.states.length));
    this.mergedPlace = Uint8Array.from(states, ([state]) => this.placeOf[state]!);
    this.mergedNs = Float64Array.from(states, ([, ns]) => ns);
    this.sums = this.runningSums();
  }

  private runningSums(): Float64Array {
    const { block } = this;
    const width = this.states.length;
    const sums = new Float64Array((Math.floor(this.count / block) + 1) * width);
    const running = new Float64Array(width);
    for (let at = 0; at < this.count; at++) {
      if (at % block === 0) sums.set(running, (at / block) * width);
      this.addSpan(at, 1, running);
    }
    if (this.count % block === 0) sums.set(running, (this.count / block) * width);
    return sums;
  }

  /** Adds a share of a span's time to sums by state index. */
  private addSpan(at: number, share: number, sums: Float64Array): void {
    const state = this.state[at]!;
    if (state !== MERGED) {
      const place = this.placeOf[state]!;
      sums[place] = sums[place]! + (this.to[at]! - this.from[at]!) * share;
      return;
    }
    const item = this.label[at]!;
    for (let of = this.mergedFrom[item]!; of < this.mergedFrom[item + 1]!; of++) {
      const place = this.mergedPlace[of]!;
      sums[place] = sums[place]! + this.mergedNs[of]! * share;
    }
  }

  get begin(): number {
    return this.from[0] ?? 0;
  }

  get end(): number {
    return this.to[this.count - 1] ?? 0;
  }

  /** Number of spans that begin at or before `time`; searches from `hint`, the result for an earlier time. */
  begunBy(time: number, hint = 0): number {
    let low = hint > 0 && this.from[hint - 1]! <= time ? hint : 0;
    let step = 1;
    let high = low;
    while (high < this.count && this.from[high]! <= time) {
      low = high + 1;
      high += step;
      step *= 2;
    }
    high = Math.min(high, this.count);
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.from[middle]! <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * Time in each state from the lane's begin to `time`, written to `sums` by state index. `begun` is `begunBy(time)`.
   * Merged spans at `time` count in proportion.
   */
  sumsUpTo(time: number, begun: number, sums: Float64Array): void {
    const width = this.states.length;
    const block = Math.floor(begun / this.block);
    for (let place = 0; place < width; place++) sums[place] = this.sums[block * width + place]!;
    for (let at = block * this.block; at < begun; at++) this.addSpan(at, 1, sums);
    if (begun === 0) return;
    const last = begun - 1;
    const [from, to] = [this.from[last]!, this.to[last]!];
    // Subtracted if it is beyond `time`: the running sum may contain the span already.
    if (to > time) this.addSpan(last, -(to - time) / (to - from), sums);
  }

  /** Time in each state within an interval, by state number. */
  within(from: number, to: number): Map<number, number> {
    const width = this.states.length;
    const [before, after] = [new Float64Array(width), new Float64Array(width)];
    this.sumsUpTo(from, this.begunBy(from), before);
    this.sumsUpTo(to, this.begunBy(to), after);
    const sums = new Map<number, number>();
    this.states.forEach((state, place) => {
      const ns = after[place]! - before[place]!;
      if (ns > 0.5) sums.set(state, ns);
    });
    return sums;
  }

  /** Spans that begin within an interval; merged ones count individually. */
  spansWithin(from: number, to: number): number {
    let count = 0;
    const end = this.begunBy(to);
    for (let at = this.begunBy(from); at < end; at++) count += this.spansIn(at);
    return count;
  }

  /** Number of spans in an item: one, or the merged ones. */
  spansIn(at: number): number {
    return this.state[at] === MERGED ? this.merged[this.label[at]!]!.count : 1;
  }

  /** The span at a time, if any. */
  at(time: number): number | null {
    const last = this.begunBy(time) - 1;
    return last >= 0 && this.to[last]! > time ? last : null;
  }
}

/** Reads a lane of `count` items. */
export function readLane(columns: Columns, count: number): Lane {
  const from = new Float64Array(count);
  const to = new Float64Array(count);
  const state = new Uint8Array(count);
  const label = new Uint32Array(count);
  for (let at = 0; at < count; at++) from[at] = columns.number();
  let end = 0;
  for (let at = 0; at < count; at++) {
    from[at] = from[at]! + end;
    end = from[at]! + columns.number();
    to[at] = end;
  }
  for (let at = 0; at < count; at++) state[at] = columns.byte();
  for (let at = 0; at < count; at++) label[at] = columns.number();
  const merged: MergedSpans[] = [];
  for (let at = 0; at < count; at++) {
    if (state[at] !== MERGED) continue;
    label[at] = merged.length;
    merged.push(readMerged(columns));
  }
  return new Lane(from, to, state, label, merged);
}

function readMerged(columns: Columns): MergedSpans {
  const count = columns.number();
  const states: [number, number][] = [];
  for (let left = columns.byte(); left > 0; left--) states.push([columns.byte(), columns.number()]);
  return { count, states };
}
