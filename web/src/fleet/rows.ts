// All compared numbers, as in the table of `hyperscope fleet diff`.

import { el, section } from "../dom";
import { count, measured } from "../format";
import type { Context } from "./context";
import { idOf, nameOf, type Row } from "./data";
import { times } from "./findings";

const MOST_ROWS = 1_000;

export function rows(context: Context): HTMLElement {
  const { diff } = context.fleet;
  const some = diff.rows.filter((row) => row.significant);
  const body = el("tbody");
  const words = el("p", { class: "note" });
  const show = (all: boolean) => {
    const shown = all ? diff.rows : some;
    body.replaceChildren(...shown.slice(0, MOST_ROWS).map((row) => line(row, context)));
    words.textContent = `${count(some.length)} of ${count(diff.rows.length)} differ by more than chance explains.${shown.length > MOST_ROWS ? ` The first ${count(MOST_ROWS)} are shown.` : ""}`;
  };
  const all = el("button", { type: "button", "aria-pressed": String(some.length === 0), onclick: () => {
    const pressed = all.getAttribute("aria-pressed") !== "true";
    all.setAttribute("aria-pressed", String(pressed));
    show(pressed);
  } }, "All rows");
  show(some.length === 0);
  const titles = [diff.strata, "exits", "number", "A", "B", "typical host", "likely between", "p", "fleet", "likely between", "hosts", "verdict"];
  return section(
    "rows",
    "All numbers",
    el("div", { class: "controls" }, all),
    el("div", { class: "scroll most", tabindex: 0, role: "group", "aria-label": "All numbers" }, el("table", { class: "diff" },
      el("caption", {}, "Sorted by change, largest first"),
      el("thead", {}, el("tr", {}, ...titles.map((title, at) => el("th", { scope: "col", class: at > 2 && at < 11 ? "number" : null }, title)))),
      body)),
    words,
  );
}

function between(low: number | null, high: number | null): string {
  return low === null || high === null ? "–" : `${times(low)} to ${times(high)}`;
}

function hosts({ hosts_a, hosts_b, paired }: Row): string {
  if (paired === 0) return `${count(hosts_a)} / ${count(hosts_b)}`;
  return count(paired);
}

function mark(row: Row): string {
  if (!row.significant) return "no clear difference";
  if (row.went_away === true) return "went away";
  if (row.shifted_with !== null) return `${row.shifted_with} makes up for it`;
  return (row.ratio ?? 1) > 1 ? "▲ more" : "▼ less";
}

function line(row: Row, { view, goTo }: Context): HTMLElement {
  const go = () => {
    view.update({ metric: row.metric, key: idOf(row), compare: "change" });
    goTo("hosts");
  };
  const p = row.p_adjusted === null ? "–" : row.p_adjusted < 0.001 ? "< 0.001" : row.p_adjusted.toFixed(3);
  const numbers = [measured(row.metric, row.a), measured(row.metric, row.b), times(row.ratio), between(row.ci_low, row.ci_high), p, times(row.total_ratio), between(row.total_low, row.total_high), hosts(row)];
  return el(
    "tr",
    { class: row.finding ? ((row.ratio ?? 1) > 1 ? "more" : "less") : null },
    el("th", { scope: "row" }, row.stratum ?? "all"),
    el("td", {}, el("button", { type: "button", class: "reason", onclick: go }, nameOf(row))),
    el("td", {}, row.metric),
    ...numbers.map((text) => el("td", { class: "number" }, text)),
    el("td", {}, mark(row)),
  );
}
