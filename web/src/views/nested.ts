// Nested guests: each of their exits as a tree of the exits of their parent that it causes.

import { timeOf, type NestedRow } from "../data/report";
import { el, rowsTable, section } from "../dom";
import type { Context } from "../focus";
import { count, factor, share, time } from "../format";

export function nested(context: Context): HTMLElement | null {
  const document_ = context.report.nested;
  if (!document_ || document_.rows.length === 0) return null;
  const ns = context.report.nanoseconds;
  const levels = document_.levels.filter((one) => one.level2 > 0).map((one) => `${one.vm}: ${count(one.level1)} exits of its own (level 1), ${count(one.level2)} of guests inside it (level 2)`);
  const most = Math.max(1, ...document_.rows.map((row) => timeOf(row, "time", ns) ?? 0));
  return section(
    "nested",
    "Nested guests",
    el("p", {}, levels.join("; "), ". An exit of a nested guest reaches the host first; if its parent has to handle it, that causes exits of the parent."),
    el("div", { class: "trees" }, ...document_.rows.map((row, at) => tree(row, at < 3, most, ns))),
  );
}

function tree(row: NestedRow, open: boolean, most: number, ns: boolean): HTMLElement {
  const whole = timeOf(row, "time", ns);
  const round = timeOf(row, "round_trip_mean", ns);
  const bar = el("span", { class: "bar small", "aria-hidden": "true" },
    el("span", { style: `flex: ${timeOf(row, "own", ns) ?? 0} 0 0; background: var(--nested-guest)` }),
    el("span", { style: `flex: ${Math.max(0, (whole ?? 0) - (timeOf(row, "own", ns) ?? 0))} 0 0; background: var(--kernel)` }));
  const width = el("span", { class: "width", style: `width: ${Math.max(2, (100 * (whole ?? 0)) / most)}%` }, bar);
  const head = el(
    "summary",
    {},
    el("b", {}, row.reason),
    el("span", { class: "figures" }, `${count(row.count)} exits · ${share(row.reflected, row.count, 0)} to its parent · ${factor(row.factor)} exits of the host each · ${time(whole, ns)}`, round === null ? "" : ` · runs again after ${time(round, ns)}`),
    width,
  );
  const own = leaf(`${row.reason} itself`, count(row.count), "1.00×", timeOf(row, "own", ns), whole, "--nested-guest", ns);
  const under = row.ancillary.map((one) => leaf(one.reason, count(one.count), factor(one.per_exit), timeOf(one, "time", ns), whole, "--kernel", ns));
  const titles = ["exit", "count", "per exit", "time", "share of its time"];
  return el(
    "details",
    { open, class: "tree" },
    head,
    el("div", { class: "scroll" }, rowsTable(`What ${row.reason} of the guest inside ${row.vm} causes`, titles, [own, ...under], 1)),
    row.unfinished > 0 ? el("p", { class: "note" }, `After ${count(row.unfinished)} of them the recording does not show the nested guest running again.`) : null,
  );
}

function leaf(name: string, exits: string, per: string, value: number | null, whole: number | null, colour: string, ns: boolean): HTMLElement {
  const width = value && whole ? (100 * value) / whole : 0;
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, name),
    el("td", { class: "number" }, exits),
    el("td", { class: "number" }, per),
    el("td", { class: "number" }, time(value, ns)),
    el("td", {}, el("span", { class: "leafbar" }, el("i", { style: `width: ${width}%; background: var(${colour})` })), ` ${share(value, whole, 1)}`),
  );
}
