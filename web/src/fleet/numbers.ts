// Cells of hosts by exits: ratios, their colours, and the order of hosts.

import type { Known } from "../data/report";
import { idOf, type Fleet, type Host, type Key } from "./data";
import type { Compare, Order } from "./state";

/** A column: the exits, and the ratio in each host's cell. */
export interface Column {
  key: Key;
  a: Known[];
  b: Known[];
  ratios: Known[];
}

const known = (value: Known): value is number => value !== null && value > 0;

/** By host, its value divided by the geometric mean over hosts of its kind. */
function overKind(hosts: Host[], values: Known[]): Known[] {
  const kinds = new Map<string | null, { sum: number; count: number }>();
  values.forEach((value, at) => {
    if (!known(value)) return;
    const kind = hosts[at]!.stratum;
    const all = kinds.get(kind) ?? { sum: 0, count: 0 };
    kinds.set(kind, { sum: all.sum + Math.log(value), count: all.count + 1 });
  });
  return values.map((value, at) => {
    if (!known(value)) return null;
    const { sum, count } = kinds.get(hosts[at]!.stratum)!;
    return value / Math.exp(sum / count);
  });
}

/**
 * Columns of a metric: all exits first, then those of findings, then the others, in descending order of the number of
 * hosts.
 */
export function columnsOf(fleet: Fleet, metric: string, compare: Compare): Column[] {
  const found = new Set(fleet.diff.rows.filter((row) => row.finding && row.metric === metric).map(idOf));
  const columns = fleet.grid
    .filter((numbers) => numbers.metric === metric)
    .map(({ key, a, b }) => {
      const change = () => a.map((value, at) => (known(value) && known(b[at]!) ? b[at]! / value : null));
      const ratios = compare === "change" ? change() : overKind(fleet.hosts, compare === "a" ? a : b);
      return { key, a, b, ratios };
    });
  const rank = ({ key }: Column) => (key.reason === null ? 0 : found.has(idOf(key)) ? 1 : key.waiting ? 3 : 2);
  const size = ({ a, b }: Column) => [...a, ...b].filter(known).reduce((sum, value) => sum + value, 0);
  return columns.sort((one, other) => rank(one) - rank(other) || size(other) - size(one));
}

/** Indices of hosts that match the words, in the order of rows. */
export function hostsInOrder(fleet: Fleet, words: string, order: Order, column: Column | undefined): number[] {
  const wanted = words.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const has = ({ host, stratum }: Host) => wanted.every((word) => `${host} ${stratum ?? ""}`.toLowerCase().includes(word));
  const places = fleet.hosts.map((_, at) => at).filter((at) => has(fleet.hosts[at]!));
  const kind = (at: number) => fleet.hosts[at]!.stratum ?? "";
  if (order === "kind" || !column) return places.sort((one, other) => (kind(one) < kind(other) ? -1 : kind(one) > kind(other) ? 1 : one - other));
  const ratio = (at: number) => column.ratios[at] ?? -1;
  return places.sort((one, other) => ratio(other) - ratio(one) || one - other);
}

const ENDS = [1.02, 1.05, 1.1, 1.25, 1.5, 2, 4, 10];

/** The ratio at the end of the colour scale: 49 of 50 cells don't exceed it, up or down. */
export function endOf(columns: Column[]): number {
  const sizes = columns.flatMap(({ ratios }) => ratios.filter(known).map((ratio) => Math.max(ratio, 1 / ratio)));
  sizes.sort((one, other) => one - other);
  const most = sizes[Math.floor(sizes.length * 0.98)] ?? 1;
  return ENDS.find((end) => end >= most) ?? ENDS.at(-1)!;
}

export type Rgb = [number, number, number];

/** The colour of a ratio, between the colours for less, equal and more. */
export function colourOf(ratio: number, end: number, [less, same, more]: [Rgb, Rgb, Rgb]): Rgb {
  const part = Math.max(-1, Math.min(1, Math.log(ratio) / Math.log(end)));
  const to = part < 0 ? less : more;
  return same.map((from, at) => Math.round(from + (to[at]! - from) * Math.abs(part))) as Rgb;
}

/** The luminance of a colour, from 0 to 1, by WCAG 2. */
export function luminance(colour: Rgb): number {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

/** Black or white, whichever is more legible on a colour: one of them has a contrast of at least 4.58. */
export function inkOn(colour: Rgb): "#000" | "#fff" {
  const light = luminance(colour) + 0.05;
  return light / 0.05 >= 1.05 / light ? "#000" : "#fff";
}
