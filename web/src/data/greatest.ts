// Selects the heaviest items if there are too many to draw.

export interface Greatest<T> {
  /** In their original order. */
  kept: T[];
  /** Number of the others. */
  others: number;
}

/** At most `most` items, those with the greatest weight. */
export function greatest<T>(all: T[], most: number, weight: (one: T) => number): Greatest<T> {
  if (all.length <= most) return { kept: all, others: 0 };
  const order = all.map((one, at) => ({ at, weight: weight(one) })).sort((a, b) => b.weight - a.weight || a.at - b.at);
  const places = order.slice(0, most).map(({ at }) => at).sort((a, b) => a - b);
  return { kept: places.map((at) => all[at]!), others: all.length - most };
}
