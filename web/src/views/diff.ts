// Two runs side by side, with ratios and their significance.

import type { DiffRow, Known } from "../data/report";
import { el, section } from "../dom";
import type { Context } from "../focus";
import { count, factor, measured, NOT_RECORDED } from "../format";

export function diff({ report }: Context): HTMLElement | null {
  if (!report.diff || report.diff.rows.length === 0) return null;
  const { a, b, notes, rows } = report.diff;
  const sure = rows.filter((row) => row.significant);
  const body = el("tbody");
  const show = (all: boolean) => body.replaceChildren(...(all ? rows : sure).map(line));
  const some = sure.length > 0;
  const all = el("button", { type: "button", "aria-pressed": String(!some), onclick: () => {
    const pressed = all.getAttribute("aria-pressed") !== "true";
    all.setAttribute("aria-pressed", String(pressed));
    show(pressed);
  } }, "All rows");
  show(!some);
  const titles = ["what", "a", "b", "b / a", "likely between", "p", ""];
  return section(
    "diff",
    "Compared with another run",
    el("p", {}, `a: ${(a ?? ["a"]).join(", ")} · b: ${(b ?? ["b"]).join(", ")}. ${count(sure.length)} of ${count(rows.length)} numbers differ by more than chance explains.`),
    el("div", { class: "controls" }, all),
    el("div", { class: "scroll most", tabindex: 0, role: "region", "aria-label": "Comparison" }, el("table", { class: "diff" },
      el("caption", {}, "Sorted by the change of time, largest first"),
      el("thead", {}, el("tr", {}, ...titles.map((title, at) => el("th", { scope: "col", class: at > 0 && at < 6 ? "number" : null }, title)))),
      body)),
    ...(notes ?? []).map((note) => el("p", { class: "note" }, note)),
  );
}

function line(row: DiffRow): HTMLElement {
  const worse = row.ratio !== null && row.ratio > 1;
  const bound = (value: Known) => (row.interval_of === "difference" ? measured(row.metric, value) : factor(value));
  const between = row.ci_low === null || row.ci_high === null ? NOT_RECORDED : `${bound(row.ci_low)} to ${bound(row.ci_high)}`;
  const who = [row.vm, row.level === null ? null : `L${row.level}`, row.reason ?? "all exits"].filter((one) => one !== null).join(" · ");
  const p = row.p_adjusted ?? row.p_value;
  const mark = row.significant ? (worse ? "▲ more" : "▼ less") : row.significant === false ? "no clear difference" : NOT_RECORDED;
  return el(
    "tr",
    { class: row.significant ? (worse ? "more" : "less") : null },
    el("th", { scope: "row" }, `${who} · ${row.metric.replace("_ns", "").replaceAll("_", " ")}`),
    el("td", { class: "number" }, measured(row.metric, row.a)),
    el("td", { class: "number" }, measured(row.metric, row.b)),
    el("td", { class: "number" }, factor(row.ratio)),
    el("td", { class: "number" }, between),
    el("td", { class: "number" }, p === null ? NOT_RECORDED : p < 0.001 ? "< 0.001" : p.toFixed(3)),
    el("td", {}, mark),
  );
}
