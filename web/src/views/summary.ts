// What the page says first: findings in words, and where the time of the vCPUs went.

import { variableOf } from "../colours";
import { timeOf, type ExitRow, type Finding } from "../data/report";
import { el, plainTable, section, tableBehind } from "../dom";
import type { Context } from "../focus";
import { count, share, time } from "../format";
import { bar, known, type Part } from "./bar";

export function summary(context: Context): HTMLElement {
  const { report } = context;
  const findings = report.findings.map((finding) => item(finding, context));
  const list = el("ol", { class: "findings" }, ...findings);
  const none = report.exits.rows.length === 0;
  return section(
    "summary",
    "What stands out",
    none ? el("p", {}, "No VM exits were recorded.") : null,
    list,
    none ? null : payers(context),
  );
}

function item(finding: Finding, context: Context): HTMLElement {
  const words = finding.pieces.map((piece) => el(piece.strong ? "strong" : "span", {}, piece.text));
  const { link } = finding;
  if (!link) return el("li", { class: finding.weight }, el("p", {}, ...words));
  const go = () => {
    context.focus.set({ vm: link.vm, level: link.level, reason: link.reason });
    const target = document.getElementById(link.section) ?? document.getElementById("exits");
    target?.scrollIntoView({ behavior: "smooth", block: "start" });
    target?.focus({ preventScroll: true });
  };
  return el("li", { class: finding.weight }, el("button", { type: "button", class: "finding", onclick: go }, ...words));
}

/** Parts of vCPU time: the state whose colour it has, its title, the field of a row. */
const PARTS: [string, string, string][] = [
  ["guest", "guest", "guest"],
  ["exit_kernel", "kernel", "kernel"],
  ["exit_user", "user space", "user"],
  ["exit_user", "user space + return", "user_and_return"],
  ["waiting", "run queue", "off_cpu_runnable"],
  ["blocked", "blocked or halted", "off_cpu_blocked"],
  ["halt_poll", "halt polling", "halt_poll"],
];

/** A bar per VM: how the time of its vCPUs is made up. */
function payers(context: Context): HTMLElement {
  const { report } = context;
  const groups = new Map<string, ExitRow[]>();
  for (const row of report.exits.rows) {
    const key = `${row.vm ?? ""}\0${row.source}`;
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  const figures = [...groups.values()].map((rows) => payersOf(rows, context));
  return el("div", { class: "payers" }, ...figures);
}

function payersOf(rows: ExitRow[], { report }: Context): HTMLElement {
  const ns = report.nanoseconds;
  const sum = (field: string) => {
    const known = rows.map((row) => timeOf(row, field, ns)).filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((a, b) => a + b, 0);
  };
  const parts: Part[] = PARTS.map(([state, title, field]) => ({ variable: variableOf(state), title, value: sum(field) }));
  // Where wake-ups were not recorded, waiting and blocked are known as a sum only.
  if (sum("off_cpu_runnable") === null) parts.push({ variable: variableOf("blocked"), title: "off the CPU", value: sum("off_cpu") });
  const there = known(parts);
  const total = there.reduce((all, part) => all + part.value, 0);
  const legend = there.map((part) =>
    el(
      "li",
      {},
      el("i", { style: `background: var(${part.variable})` }),
      `${part.title} `,
      el("b", {}, share(part.value, total, 1)),
      ` ${time(part.value, ns)}`,
    ),
  );
  const vm = rows[0]?.vm ?? "";
  const exits = rows.reduce((all, row) => all + row.count, 0);
  return el(
    "figure",
    { class: "payer" },
    el("figcaption", {}, el("b", {}, vm), ` time of its vCPUs between its ${count(exits)} exits, and in them`),
    bar(`Time of the vCPUs of ${vm}`, parts, total, ns),
    el("ul", { class: "legend" }, ...legend),
    tableBehind("Table behind this figure", () =>
      plainTable(
        `Time of the vCPUs of ${vm}`,
        ["part", "time", "share"],
        parts.map((part) => [part.title, part.value === null ? "not recorded" : time(part.value, ns), share(part.value, total)]),
      ),
    ),
  );
}
