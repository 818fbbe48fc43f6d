// Which of many things are drawn: those that weigh most, where more are there than anybody looks at.

export interface Greatest<T> {
  /** In the order in which they came. */
  kept: T[];
  /** How many others there are. */
  others: number;
}

/** No more than `most` of them, those of the greatest weight. */
export function greatest<T>(all: T[], most: number, weight: (one: T) => number): Greatest<T> {
  if (all.length <= most) return { kept: all, others: 0 };
  const order = all.map((one, at) => ({ at, weight: weight(one) })).sort((a, b) => b.weight - a.weight || a.at - b.at);
  const places = order.slice(0, most).map(({ at }) => at).sort((a, b) => a - b);
  return { kept: places.map((at) => all[at]!), others: all.length - most };
}
