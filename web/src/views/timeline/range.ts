// The shown time: zoomed around a point, moved, kept within the recording.

export interface Range {
  from: number;
  to: number;
}

/** The shortest range: a nanosecond is then some pixels wide. */
const SHORTEST = 100;

/** Zooms around a time: factors below 1 zoom in. */
export function zoomed(range: Range, factor: number, around: number, whole: Range): Range {
  const length = Math.min(whole.to - whole.from, Math.max(SHORTEST, (range.to - range.from) * factor));
  const share = (around - range.from) / (range.to - range.from);
  return within({ from: around - share * length, to: around + (1 - share) * length }, whole);
}

export function moved(range: Range, by: number, whole: Range): Range {
  return within({ from: range.from + by, to: range.to + by }, whole);
}

/** Moves a range into the recording; keeps its length, if that fits. */
export function within(range: Range, whole: Range): Range {
  const missing = SHORTEST - (range.to - range.from);
  const long = missing > 0 ? { from: range.from - missing / 2, to: range.to + missing / 2 } : range;
  const length = Math.min(long.to - long.from, whole.to - whole.from);
  const from = Math.min(Math.max(long.from, whole.from), whole.to - length);
  return { from, to: from + length };
}

/** A range between two others: a step of an animated zoom. */
export function between(a: Range, b: Range, share: number): Range {
  return { from: a.from + (b.from - a.from) * share, to: a.to + (b.to - a.to) * share };
}
