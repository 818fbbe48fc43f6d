// Adds detail to an interval of a lane: replaces merged spans by the original ones.
//
// Nothing else changes: single spans of the page stay, and the rest of merged ones keeps the rest of their
// times, so that all sums stay the same.

import { Lane, MERGED, type MergedSpans } from "./lane";
import type { Span } from "../view";

/** Whether an interval contains merged spans. */
export function hasMerged(lane: Lane, { from, to }: Span): boolean {
  for (let at = Math.max(0, lane.begunBy(from) - 1); at < lane.count && lane.from[at]! < to; at++) {
    if (lane.state[at] === MERGED && lane.to[at]! > from) return true;
  }
  return false;
}

/** Items of a lane under construction. */
class Items {
  readonly from: number[] = [];
  readonly to: number[] = [];
  readonly state: number[] = [];
  readonly label: number[] = [];
  readonly merged: MergedSpans[] = [];

  push(from: number, to: number, state: number, label: number): void {
    if (to <= from) return;
    this.from.push(from);
    this.to.push(to);
    this.state.push(state);
    this.label.push(label);
  }

  pushMerged(from: number, to: number, of: MergedSpans): void {
    if (to <= from || of.states.length === 0) return;
    this.push(from, to, MERGED, this.merged.length);
    this.merged.push(of);
  }

  lane(): Lane {
    return new Lane(Float64Array.from(this.from), Float64Array.from(this.to), Uint8Array.from(this.state), Uint32Array.from(this.label), this.merged);
  }
}

/** A share of merged spans. */
function shareOf({ count, states }: MergedSpans, share: number): MergedSpans {
  return { count: Math.round(count * share), states: states.map(([state, ns]): [number, number] => [state, ns * share]).filter(([, ns]) => ns > 0) };
}

/** The rest of merged spans after a known part is removed. */
function without({ count, states }: MergedSpans, known: Map<number, number>, spans: number): MergedSpans {
  return { count: Math.max(0, count - spans), states: states.map(([state, ns]): [number, number] => [state, Math.max(0, ns - (known.get(state) ?? 0))]).filter(([, ns]) => ns > 0) };
}

/** `lane` with the spans of `deeper` in an interval; `labelOf` returns the page's number of a label in `deeper`. */
export function withDetail(lane: Lane, deeper: Lane, interval: Span, labelOf: (label: number) => number): Lane {
  // Outside its first and last span, its states are unknown.
  const [from, to] = [Math.max(interval.from, deeper.begin), Math.min(interval.to, deeper.end)];
  if (deeper.count === 0 || from >= to) return lane;
  const items = new Items();
  for (let at = 0; at < lane.count; at++) {
    const [begin, end] = [lane.from[at]!, lane.to[at]!];
    if (lane.state[at] !== MERGED) {
      items.push(begin, end, lane.state[at]!, lane.label[at]!);
      continue;
    }
    const merged = lane.merged[lane.label[at]!]!;
    const cut = { from: Math.max(begin, from), to: Math.min(end, to) };
    if (cut.from >= cut.to) items.pushMerged(begin, end, merged);
    else replace(items, { from: begin, to: end }, merged, deeper, cut, labelOf);
  }
  return items.lane();
}

function replace(items: Items, whole: Span, merged: MergedSpans, deeper: Lane, cut: Span, labelOf: (label: number) => number): void {
  const rest = without(merged, deeper.within(cut.from, cut.to), deeper.spansWithin(cut.from, cut.to));
  const [before, after] = [cut.from - whole.from, whole.to - cut.to];
  const left = before + after;
  if (before > 0) items.pushMerged(whole.from, cut.from, shareOf(rest, before / left));
  for (let at = Math.max(0, deeper.begunBy(cut.from) - 1); at < deeper.count && deeper.from[at]! < cut.to; at++) {
    const [begin, end] = [Math.max(deeper.from[at]!, cut.from), Math.min(deeper.to[at]!, cut.to)];
    if (deeper.state[at] !== MERGED) items.push(begin, end, deeper.state[at]!, labelOf(deeper.label[at]!));
    else items.pushMerged(begin, end, shareOf(deeper.merged[deeper.label[at]!]!, (end - begin) / (deeper.to[at]! - deeper.from[at]!)));
  }
  if (after > 0) items.pushMerged(cut.to, whole.to, shareOf(rest, after / left));
}
