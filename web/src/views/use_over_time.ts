// Use of CPUs over time, a chart for each machine: states of its CPUs, stacked, in columns of equal width. A click on a
// column selects it in the timeline.

import { axisLabel, firstStep, timestampOf } from "../clock";
import { variableOf } from "../colours";
import { useOf, type Use } from "../data/use_over_time";
import { el, plainTable, svg, tableBehind } from "../dom";
import type { Context } from "../focus";
import { niceStep, share, time } from "../format";
import { hideTooltip, showTooltip } from "../tooltip";
import type { LaneRow } from "./timeline/rows";

const COLUMNS = 120;
const TABLE_ROWS = 12;
const [WIDTH, HEIGHT] = [COLUMNS * 10, 96];
/** Idle states: free CPU time is at the top, and not drawn. */
const FREE = new Set(["halted", "guest_idle"]);

export function useOverTime(context: Context, rows: LaneRow[]): HTMLElement | null {
  const { report } = context;
  if (!report.nanoseconds || report.length_ns <= 0) return null;
  const uses = useOf(rows, 0, report.length_ns, COLUMNS);
  if (uses.length === 0) return null;
  const drawn = el("div", { class: "use-over-time" }, ...uses.map((use) => figure(context, use)));
  addEventListener("hyperscope:clock", () => drawn.replaceChildren(...uses.map((use) => figure(context, use))));
  return drawn;
}

function figure(context: Context, use: Use): HTMLElement {
  const what = use.kind === "cpu" ? `CPUs of ${use.name}` : `vCPUs of ${use.name}`;
  const states = busyStates(context, use);
  return el(
    "figure",
    { class: "payer" },
    el("figcaption", {}, el("b", {}, `${what} over time`), ` (${use.lanes}); idle time is left blank`),
    picture(context, use, what, states),
    axis(context),
    el("ul", { class: "legend" }, ...states.map((one) => el("li", {}, el("i", { style: `background: var(${one.variable})` }), one.title))),
    tableBehind("Table behind this figure", () => table(context, use, what, states)),
  );
}

interface Shown {
  state: number;
  title: string;
  variable: string;
}

/** The drawn states, in the order of the timeline. */
function busyStates({ report }: Context, use: Use): Shown[] {
  const there = new Set(use.bins.flatMap((bin) => [...bin.keys()]));
  const all = report.timeline.states.map(({ key, title }, state) => ({ state, key, title, variable: variableOf(key) }));
  return all.filter(({ state, key }) => there.has(state) && !FREE.has(key));
}

function picture(context: Context, use: Use, what: string, states: Shown[]): SVGElement {
  const { report } = context;
  const step = report.length_ns / COLUMNS;
  const whole = step * use.lanes;
  const width = WIDTH / COLUMNS;
  const columns = use.bins.flatMap((bin, at) => {
    let below = 0;
    return states.map(({ state, variable }) => {
      const height = ((bin.get(state) ?? 0) / whole) * HEIGHT;
      below += height;
      return height < 0.01 ? null : svg("rect", { x: at * width, y: HEIGHT - below, width: width + 0.1, height, style: `fill: var(${variable})` });
    });
  });
  const range = (at: number): [number, number] => [at * step, (at + 1) * step];
  const column = (event: MouseEvent, of: SVGElement) => {
    const box = of.getBoundingClientRect();
    return Math.min(COLUMNS - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * COLUMNS)));
  };
  const drawing: SVGElement = svg(
    "svg",
    {
      class: "stacked",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `${what} over time: ${average(use, states, report.length_ns)}`,
      onclick: (event: Event) => context.selectTime(...range(column(event as MouseEvent, drawing))),
      onpointermove: (event: Event) => {
        const at = column(event as MouseEvent, drawing);
        const parts = states.filter(({ state }) => use.bins[at]!.has(state));
        const words = parts.map(({ state, title }) => `${title} ${share(use.bins[at]!.get(state)!, whole, 1)}`);
        const { clientX, clientY } = event as MouseEvent;
        showTooltip(clientX, clientY, [timestampOf(report, range(at)[0]), ...words, "click: select it in the timeline"]);
      },
      onpointerleave: hideTooltip,
    },
    svg("rect", { class: "free", x: 0, y: 0, width: WIDTH, height: HEIGHT }),
    ...columns,
  );
  return drawing;
}

/** Labels are outside the chart, so that stretching it does not distort them. */
function axis({ report }: Context): HTMLElement {
  const step = niceStep(report.length_ns / 6);
  const labels: HTMLElement[] = [];
  for (let at = firstStep(report, 0, step); at < report.length_ns * 0.95; at += step) {
    labels.push(el("span", { style: `left: ${(100 * at) / report.length_ns}%` }, axisLabel(report, at, step)));
  }
  return el("div", { class: "stacked-axis", "aria-hidden": "true" }, ...labels);
}

function sums(use: Use, state: number): number {
  return use.bins.reduce((sum, bin) => sum + (bin.get(state) ?? 0), 0);
}

function average(use: Use, states: Shown[], length: number): string {
  return states.map(({ state, title }) => `${title} ${share(sums(use, state), length * use.lanes, 1)}`).join(", ");
}

/** It has fewer rows than the chart has columns. */
function table({ report }: Context, use: Use, what: string, states: Shown[]): HTMLTableElement {
  const each = COLUMNS / TABLE_ROWS;
  const rows = Array.from({ length: TABLE_ROWS }, (_, row) => {
    const bins = use.bins.slice(row * each, (row + 1) * each);
    const of = (state: number) => bins.reduce((sum, bin) => sum + (bin.get(state) ?? 0), 0);
    const length = (report.length_ns / TABLE_ROWS) * use.lanes;
    return [timestampOf(report, (row * report.length_ns) / TABLE_ROWS), ...states.map(({ state }) => share(of(state), length, 1))];
  });
  const all = ["all of it", ...states.map(({ state }) => time(sums(use, state)))];
  return plainTable(`${what} over time`, ["from", ...states.map(({ title }) => title)], [...rows, all]);
}
