// The beginning of the page: findings in words, and the time of the vCPUs by state.

import { variableOf } from "../colours";
import { greatest } from "../data/greatest";
import type { Finding, Report } from "../data/report";
import { statesOf } from "../data/vcpu_states";
import { el, plainTable, section, tableBehind } from "../dom";
import type { Context } from "../focus";
import { count, share, time } from "../format";
import { adviceOn } from "./advice";
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
    context.view.update({ at: link.section });
    context.inspect();
    const target = document.getElementById(link.section) ?? document.getElementById("exits");
    target?.scrollIntoView({ behavior: "smooth", block: "start" });
    target?.focus({ preventScroll: true });
  };
  return el("li", { class: finding.weight }, el("button", { type: "button", class: "finding", onclick: go }, ...words), adviceOn(finding.advice));
}

/** Max VMs with a bar: the same as for findings. */
const MOST_VMS = 100;

/** A bar per VM: the states of its vCPUs, as `hyperscope cpu` has them. */
function payers({ report }: Context): HTMLElement {
  const key = (one: { source: string; vm: string | null }) => JSON.stringify([one.source, one.vm]);
  const exits = new Map<string, number>();
  for (const row of report.exits.rows) exits.set(key(row), (exits.get(key(row)) ?? 0) + row.count);
  const { kept, others } = greatest(report.cpu.vms, MOST_VMS, (vm) => exits.get(key(vm)) ?? 0);
  const figures = kept.map((vm) => payersOf(vm, exits.get(key(vm)) ?? 0, report));
  const note = others > 0 ? el("p", { class: "note" }, `The ${MOST_VMS} VMs with the most exits; hyperscope cpu shows ${count(others)} more.`) : null;
  return el("div", { class: "payers" }, ...figures, note);
}

function payersOf(of: Report["cpu"]["vms"][number], exits: number, report: Report): HTMLElement {
  const [vm, ns] = [of.vm, report.nanoseconds];
  const titles = new Map(report.timeline.states.map((state) => [state.key, state.title]));
  const parts: Part[] = statesOf(of, ns).map(([key, value]) => ({ title: titles.get(key) ?? key.replaceAll("_", " "), variable: variableOf(key), value }));
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
  return el(
    "figure",
    { class: "payer" },
    el("figcaption", {}, el("b", {}, vm), ` what its vCPUs did: ${count(exits)} exits`),
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
