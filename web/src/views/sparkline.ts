// A small distribution: bars over a logarithmic axis that all rows share.

import { rowBegin } from "../data/heat";
import { timeOf, type ExitRow } from "../data/report";
import { svg } from "../dom";
import { time } from "../format";

const WIDTH = 132;
const HEIGHT = 24;

/**
 * The first and the last row of the grid in any of the distributions. Exits without duration, which a logarithmic axis
 * can't show, are drawn at its begin.
 */
export function rangeOf(histograms: Map<number, number>[]): [number, number] {
  const rows = histograms.flatMap((histogram) => [...histogram.keys()]).filter((row) => row > 0);
  if (rows.length === 0) return [0, 1];
  return [Math.min(...rows), Math.max(...rows) + 1];
}

export function sparkline(
  histogram: Map<number, number>,
  [first, end]: [number, number],
  perOctave: number,
  row: ExitRow,
  ns: boolean,
): SVGElement {
  const most = Math.max(1, ...histogram.values());
  const step = WIDTH / Math.max(1, end - first);
  const x = (at: number) => Math.max(0, at - first) * step;
  const bars = [...histogram].map(([at, count]) => {
    // Rare values matter: the square root keeps them visible.
    const height = Math.max(1.5, Math.sqrt(count / most) * (HEIGHT - 2));
    return svg("rect", { x: x(at), y: HEIGHT - height, width: Math.max(1, step - 0.4), height });
  });
  const place = (value: number) => x(Math.log2(Math.max(1, value)) * perOctave);
  const mark = (name: string) => {
    const value = timeOf(row, name, ns);
    return value === null || histogram.size === 0 ? null : svg("line", { class: name, x1: place(value), x2: place(value), y1: 0, y2: HEIGHT });
  };
  const said = (name: string) => time(timeOf(row, name, ns), ns);
  const words = `half within ${said("p50")}, 99% within ${said("p99")}, from ${said("min")} to ${said("max")}`;
  const axis = `axis from ${time(rowBegin(first, perOctave), ns)} to ${time(rowBegin(end, perOctave), ns)}`;
  return svg(
    "svg",
    { class: "sparkline", width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words },
    svg("title", {}, `${words}\n${axis}; lines: p50, p99`),
    svg("line", { class: "base", x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 }),
    ...bars,
    mark("p50"),
    mark("p99"),
  );
}
