// Below a finding: its cause, what usually helps, and the evidence in the recording.

import type { AdviceRow } from "../data/report";
import { el } from "../dom";
import { count, share, time } from "../format";

type Fact = AdviceRow["evidence"][number];

function amount({ value, unit }: Fact): string {
  if (unit === "ns") return time(value);
  if (unit === "share") return share(value, 1);
  return unit === "ratio" ? value.toFixed(1) : count(value);
}

function saving(one: AdviceRow): string {
  const most = time(one.saving_at_most_ns);
  return one.saving_at_least_ns > 0 ? `${time(one.saving_at_least_ns)} to ${most}` : `at most ${most}`;
}

function piece(one: AdviceRow): HTMLElement {
  const helps = one.helps.map((help) => el("li", {}, help));
  const facts = one.evidence.map((fact) => el("li", {}, `${fact.what}: `, el("b", {}, amount(fact))));
  return el(
    "div",
    { class: "advice", "data-rule": one.rule },
    el("h3", {}, one.title),
    el("p", {}, one.why),
    el("h4", {}, "What usually helps"),
    el("ul", {}, ...helps),
    el("h4", {}, "What this recording shows"),
    el("ul", {}, ...facts),
    el("p", { class: "note" }, `Saves ${saving(one)} of ${one.saving_of}; ${one.checked}. Rule: ${one.rule}.`),
  );
}

/** Null if no rule applies. */
export function adviceOn(all: AdviceRow[]): HTMLElement | null {
  if (all.length === 0) return null;
  const more = all.length > 1 ? ` (${all.length})` : "";
  return el("details", { class: "why" }, el("summary", {}, `Why, and what helps${more}`), ...all.map(piece));
}
