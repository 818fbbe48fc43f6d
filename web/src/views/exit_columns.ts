// The columns of the exits table: display, sort order and name of each number.

import { timeOf, type ColumnDefinition, type ExitRow, type Known, type Report } from "../data/report";
import { el } from "../dom";
import { count, NOT_RECORDED, share, time } from "../format";
import { partsBar } from "./parts_bar";
import { sparkline } from "./sparkline";

export interface Column {
  key: string;
  title: string;
  hint: string;
  /** Shown by default. */
  main: boolean;
  text: boolean;
  sort: (row: ExitRow) => number | string | null;
  /** The value as in the JSON; null if it was not recorded. */
  value: (row: ExitRow) => string | null;
  cell: (row: ExitRow, focus: () => void) => (Node | string)[];
}

type Histograms = Map<ExitRow, Map<number, number>>;

/** Columns of numbers shown by default; "All numbers" shows the others. */
const MAIN = new Set(["level", "count", "cost", "time", "p50", "p99", "max"]);

/** Numbers about the time of exits: their names say so, to distinguish them from those about cost. */
const OF_TIME = new Set(["min", "mean", "sd", "p50", "p90", "p99", "p999", "max"]);

/** Columns with a special display, or contained in others. */
const DRAWN = new Set(["source", "vm", "reason", "waiting", "cost", "cost_share"]);

export function columnsFor(report: Report, histograms: Histograms, range: [number, number], perOctave: number): Column[] {
  const ns = report.nanoseconds;
  const working = new Map<string, number>();
  for (const row of report.exits.rows.filter((one) => !one.waiting)) {
    working.set(row.source, (working.get(row.source) ?? 0) + (timeOf(row, "time", ns) ?? 0));
  }
  const costs = report.exits_columns.filter((one) => one.name === "cost").map((one) => asDefined(one, ns));
  const byCost = report.exits.rows.some((row) => row["cost_share"] !== null);
  const manyVms = new Set(report.exits.rows.map((row) => row.vm)).size > 1;
  const defined = report.exits_columns.filter((one) => !DRAWN.has(one.name)).map((one) => asDefined(one, ns));
  const before = defined.findIndex((one) => one.key === "time") + 1;
  return [
    reason(),
    text("vm", "VM", "The virtual machine", (row) => row.vm, manyVms),
    ...defined.slice(0, before),
    ...costs,
    {
      ...number("share", byCost ? "cost%" : "time%", byCost ? "Share of the cost of all exits except waiting exits" : "Share of the time of all exits except waiting exits", (row) => shareOf(row, working, ns), (value) => share(value, value === null ? null : 1), true),
      value: () => null,
    },
    {
      ...text("parts", "who pays", "Parts of the cost: before exit, kernel, user space. For waiting exits, and exits of unknown cost: parts of the time", () => null, true),
      sort: (row) => timeOf(row, "user", ns),
      cell: (row) => [partsBar(row, ns)],
    },
    {
      ...text("distribution", "distribution", "How long exits took, on a logarithmic scale that all rows share", () => null, true),
      sort: (row) => timeOf(row, "p50", ns),
      cell: (row) => [sparkline(histograms.get(row) ?? new Map(), range, perOctave, row, ns)],
    },
    ...defined.slice(before),
    text("source", "recording", "The recording", (row) => row.source, report.sources.length > 1),
  ];
}

/** A column as `hyperscope exits` defines it. */
function asDefined(definition: ColumnDefinition, ns: boolean): Column {
  const { name, unit, help } = definition;
  const [main, title] = [MAIN.has(name), OF_TIME.has(name) ? `time ${definition.title}` : definition.title];
  if (unit === "text") return text(name, title, help, (row) => asText(row[name]), main);
  if (unit === "time") return number(name, title, help, (row) => timeOf(row, name, ns), (value) => time(value, ns), main);
  const show = unit === "ratio" ? (value: Known) => share(value, value === null ? null : 1) : count;
  return number(name, title, help, (row) => numberOf(row, name), show, main);
}

/**
 * The row's share of the cost of all exits that don't wait, as in `hyperscope exits`; of their time if the cost is
 * unknown.
 */
function shareOf(row: ExitRow, working: Map<string, number>, ns: boolean): Known {
  if (row.waiting) return null;
  if (timeOf(row, "cost", ns) !== null) return numberOf(row, "cost_share");
  const [own, whole] = [timeOf(row, "time", ns), working.get(row.source) ?? 0];
  return own === null || whole === 0 ? null : own / whole;
}

function asText(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}

/** A number of a row; `handled_user` is `user` within `handled`. */
function numberOf(row: ExitRow, name: string): Known {
  const of = { ...row, handled_kernel: row.handled.kernel, handled_user: row.handled.user, handled_l1: row.handled.l1 };
  const value = (of as { [key: string]: unknown })[name];
  return typeof value === "number" ? value : null;
}

function reason(): Column {
  return {
    ...text("reason", "reason", "The kernel's name for the reason", (row) => row.reason, true),
    cell: (row, focus) => [
      el("button", { type: "button", class: "reason", onclick: focus, title: "Show only these in all figures" }, row.reason ?? NOT_RECORDED),
      row.waiting ? el("small", {}, " waits") : "",
    ],
  };
}

function text(key: string, title: string, hint: string, of: (row: ExitRow) => string | null, main = false): Column {
  return { key, title, hint, main, text: true, sort: of, value: of, cell: (row) => [of(row) ?? notRecorded()] };
}

function number(
  key: string,
  title: string,
  hint: string,
  of: (row: ExitRow) => Known,
  show: (value: Known) => string,
  main = false,
): Column {
  return {
    key,
    title,
    hint,
    main,
    text: false,
    sort: of,
    value: (row) => (of(row) === null ? null : String(of(row))),
    cell: (row) => [of(row) === null ? notRecorded() : show(of(row))],
  };
}

function notRecorded(): HTMLElement {
  return el("span", { class: "missing", title: "not recorded", role: "img", "aria-label": "not recorded" }, NOT_RECORDED);
}
