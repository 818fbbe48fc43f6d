// Changes in words: on which hosts, and since when. A finding links to its numbers.

import { el, section } from "../dom";
import { count } from "../format";
import type { Context } from "./context";
import { idOf, nameOf, type Change, type Fleet, type Key, type Row } from "./data";

/** Three decimal places, as in the tables of `fleet`. */
export function times(ratio: number | null): string {
  return ratio === null ? "–" : `${ratio.toFixed(3)}×`;
}

const MOST_NAMES = 6;

function names(hosts: string[]): string {
  const more = hosts.length - MOST_NAMES;
  return `${hosts.slice(0, MOST_NAMES).join(", ")}${more > 0 ? ` and ${count(more)} more` : ""}`;
}

/** Findings of the comparison as their rows, the most certain first. */
function rowsOfFindings({ diff, findings }: Fleet): Row[][] {
  const chance = (rows: Row[]) => Math.min(...rows.map((row) => row.p_adjusted ?? 1));
  return findings.map((places) => places.map((at) => diff.rows[at]!)).sort((one, other) => chance(one) - chance(other));
}

/** The first finding, which the page shows by default. */
export function firstFinding(fleet: Fleet): Row | Change | undefined {
  return rowsOfFindings(fleet)[0]?.[0] ?? fleet.since.changes[fleet.since_findings[0]?.[0] ?? -1];
}

export function findings(context: Context): HTMLElement {
  const { fleet } = context;
  const { rows } = fleet.diff;
  const all = [
    ...rowsOfFindings(fleet).map((found) => ofRows(found, context)),
    ...fleet.since_findings.map((places) => ofChanges(places.map((at) => fleet.since.changes[at]!), context)),
  ];
  const compared = rows.filter((row) => row.ratio !== null).length;
  const days = fleet.curves.length > 0 ? `, and none of ${count(fleet.curves.length)} over time changed` : "";
  const none = `None of ${count(compared)} numbers differs between A and B${days}, by more than chance explains.`;
  return section("findings", "What changed", all.length > 0 ? el("ol", { class: "findings" }, ...all) : el("p", {}, none));
}

function item(context: Context, what: Key & { metric: string; ratio: number | null; carried_by: string[] }, ...words: (Node | string)[]): HTMLElement {
  const go = () => {
    context.view.update({ metric: what.metric, key: idOf(what), host: what.carried_by[0] ?? context.view.value.host, compare: "change" });
    context.goTo("hosts");
  };
  const weight = (what.ratio ?? 1) > 1 ? "warning" : "notice";
  return el("li", { class: weight }, el("button", { type: "button", class: "finding", onclick: go }, ...words));
}

/** A change in several numbers. */
function ofRows(rows: Row[], context: Context): HTMLElement {
  const { fleet } = context;
  const row = rows[0]!;
  const carriers = new Set(row.carried_by);
  const kinds = new Set(fleet.hosts.filter((one) => carriers.has(one.host)).map((one) => one.stratum));
  const areSome = carriers.size < row.hosts_b || row.stratum !== null;
  const [kind] = [...kinds];
  const alike = kinds.size === 1 && areSome && kind ? `, all of ${fleet.diff.strata} ${kind}` : "";
  return item(
    context,
    row,
    el("strong", {}, nameOf(row)),
    ` (${metrics(rows)}): `,
    el("strong", {}, times(row.ratio)),
    ` for the typical host${row.total_ratio === null ? "" : `, ${times(row.total_ratio)} for the fleet`}; carried by `,
    el("strong", {}, `${count(carriers.size)} of ${count(row.hosts_b)} hosts`),
    `${alike}: ${names(row.carried_by)}`,
  );
}

/** A change in several series at the same time. */
function ofChanges(changes: Change[], context: Context): HTMLElement {
  const surest = changes[0]!;
  const hosts = Math.max(...changes.map((one) => one.hosts_of_all));
  const shared = surest.shared.map((fact) => `, ${fact.carriers === surest.carried_by.length ? "all" : count(fact.carriers)} of ${fact.name} ${fact.value}`);
  const came = surest.came_with.map((one) => `. With ${one.name} ${one.since} instead of ${one.before} on ${count(one.carriers)} of them`);
  return item(
    context,
    surest,
    "Since ",
    el("strong", {}, surest.day),
    ": ",
    el("strong", {}, nameOf(surest)),
    ` (${metrics(changes)}): `,
    el("strong", {}, times(surest.ratio)),
    ` on ${count(surest.carried_by.length)} of ${count(hosts)} hosts${shared.join("")}: ${names(surest.carried_by)}${came.join("")}`,
  );
}

function metrics(rows: { metric: string }[]): string {
  return [...new Set(rows.map((row) => row.metric))].join(", ");
}
