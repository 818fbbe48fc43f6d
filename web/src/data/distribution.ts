// Percentiles as in `hyperscope exits`: exact for few values, otherwise the upper end of a narrow bucket.

/** Up to this many values, percentiles are exact. */
const EXACT_VALUES = 4096;

/** The upper end of a value's bucket: buckets are at most 1/256 of their values wide. */
export function bucketEnd(value: number): number {
  let width = 1;
  while (value / width >= 512) width *= 2;
  return (Math.floor(value / width) + 1) * width - 1;
}

export interface Distribution {
  count: number;
  sum: number;
  min: number | null;
  max: number | null;
  /** Percentiles by their share per mille. */
  at: (perMille: number) => number | null;
}

export function distributionOf(values: number[]): Distribution {
  const sorted = Float64Array.from(values).sort();
  const [min, max] = [sorted[0] ?? null, sorted.at(-1) ?? null];
  const at = (perMille: number) => {
    const value = sorted[Math.max(1, Math.ceil((sorted.length * perMille) / 1000)) - 1];
    if (value === undefined) return null;
    return sorted.length <= EXACT_VALUES ? value : Math.min(max!, Math.max(min!, bucketEnd(value)));
  };
  return { count: sorted.length, sum: sorted.reduce((all, one) => all + one, 0), min, max, at };
}
