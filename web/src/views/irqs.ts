// Handlers of interrupts: their number and time and, for a guest's, the host's part of their time.

import { timeOf, type HandlerRow, type IrqsDocument } from "../data/report";
import { el, rowsTable, scrolled, section, svg } from "../dom";
import type { Context } from "../focus";
import { count, share, time } from "../format";

const [WIDTH, HEIGHT] = [132, 24];

export function irqs({ report }: Context): HTMLElement | null {
  const document_ = report.irqs;
  if (!document_ || document_.handlers.length === 0) return null;
  const axis = axisOf(document_);
  const machines = document_.machines.filter(({ machine }) => document_.handlers.some((row) => row.machine === machine));
  return section(
    "irqs",
    "Interrupts",
    el("p", {}, "Self time excludes handlers that interrupted this one. For a guest's handlers, the host's part is exits and waits for a CPU while they ran."),
    ...machines.map(({ machine }) => machineTable(machine, document_, axis, report.nanoseconds)),
  );
}

/** The powers of two on the common axis of all distributions. */
function axisOf({ histograms }: IrqsDocument): [number, number] {
  const powers = histograms.flatMap(({ below }) => below.filter((one) => one.count > 0).map((one) => Math.log2(one.ns)));
  return powers.length === 0 ? [0, 1] : [Math.min(...powers) - 1, Math.max(...powers)];
}

function machineTable(machine: string, document_: IrqsDocument, axis: [number, number], ns: boolean): HTMLElement {
  const rows = document_.handlers.map((row, at) => ({ row, below: document_.histograms[at]!.below })).filter(({ row }) => row.machine === machine);
  const hasHost = rows.some(({ row }) => row.placed > 0);
  const isDelayed = rows.some(({ row }) => row.delayed > 0);
  const titles = ["handler", "runs", "own time", ...(hasHost ? ["of it the host's"] : []), "of a CPU", "how long runs took", "p50", "p99", "longest", ...(isDelayed ? ["due for, p99"] : [])];
  const caption = `Handlers of ${machine}`;
  const lines = rows.map((one) => handler(one, axis, ns, hasHost, isDelayed));
  return scrolled(caption, rowsTable(caption, titles, lines, 1));
}

type Below = { ns: number; count: number }[];

function handler({ row, below }: { row: HandlerRow; below: Below }, axis: [number, number], ns: boolean, hasHost: boolean, isDelayed: boolean): HTMLElement {
  const own = timeOf(row, "own", ns);
  const away = timeOf(row, "own_away", ns);
  const number = (text: string) => el("td", { class: "number" }, text);
  const of = (name: string) => number(time(timeOf(row, name, ns), ns));
  const name = row.name ?? (row.number === null ? "" : String(row.number));
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, `${row.kind} ${name}`),
    number(count(row.count)),
    number(time(own, ns)),
    hasHost ? number(away === null ? "–" : `${time(away, ns)} (${share(away, own, 0)})`) : null,
    number(share(row.share_of_cpu, 1)),
    el("td", {}, distribution(row, below, axis, ns)),
    of("duration_p50"),
    of("duration_p99"),
    of("duration_max"),
    isDelayed ? of("delay_p99") : null,
  );
}

function distribution(row: HandlerRow, below: Below, [first, end]: [number, number], ns: boolean): SVGElement {
  const most = Math.max(1, ...below.map((one) => one.count));
  const step = WIDTH / Math.max(1, end - first);
  const bars = below.filter((one) => one.count > 0).map((one) => {
    // Rare values matter: the square root keeps them visible.
    const height = Math.max(1.5, Math.sqrt(one.count / most) * (HEIGHT - 2));
    const words = `${count(one.count)} of ${time(one.ns / 2, ns)} to ${time(one.ns, ns)}`;
    return svg("rect", { x: (Math.log2(one.ns) - 1 - first) * step, y: HEIGHT - height, width: Math.max(1, step - 0.4), height }, svg("title", {}, words));
  });
  const said = (name: string) => time(timeOf(row, name, ns), ns);
  const words = `half within ${said("duration_p50")}, 99% within ${said("duration_p99")}, at most ${said("duration_max")}`;
  return svg(
    "svg",
    { class: "sparkline", width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words },
    svg("line", { class: "base", x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 }),
    ...bars,
  );
}
