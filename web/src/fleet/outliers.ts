// Outliers among hosts of the same kind. Several numbers of the same exits and host are one line.

import { el, section } from "../dom";
import { count } from "../format";
import type { Context } from "./context";
import { idOf, nameOf, type Outlier } from "./data";
import { times } from "./findings";

export function outliers(context: Context): HTMLElement {
  const { fleet } = context;
  const groups = new Map<string, Outlier[]>();
  for (const one of fleet.outliers) {
    const name = [one.host, idOf(one.key), one.of].join("\n");
    groups.set(name, [...(groups.get(name) ?? []), one]);
  }
  const about = `Single hosts that differ from others of their kind in their change from A to B, or in their value on B. Chance alone would put a host that far out in one of ${Math.round(1 / fleet.diff.alpha)} fleets. Groups of hosts that changed alike are listed above.`;
  if (groups.size === 0) return section("outliers", "Hosts that stand apart", el("p", {}, "None does."), el("p", { class: "note" }, about));
  const titles = ["host", "exits", "in", "over others of its kind", "deviations", "hosts of its kind", "numbers"];
  const left = fleet.outliers_left_out > 0 ? ` ${count(fleet.outliers_left_out)} that are less far out are omitted.` : "";
  return section(
    "outliers",
    "Hosts that stand apart",
    el(
      "div",
      { class: "scroll most", tabindex: 0, role: "group", "aria-label": "Hosts that stand apart" },
      el(
        "table",
        {},
        el("caption", {}, "The farthest first"),
        el("thead", {}, el("tr", {}, ...titles.map((title, at) => el("th", { scope: "col", class: at > 2 && at < 6 ? "number" : null }, title)))),
        el("tbody", {}, ...[...groups.values()].map((group) => line(group, context))),
      ),
    ),
    el("p", { class: "note" }, about + left),
  );
}

function line(group: Outlier[], { view, goTo }: Context): HTMLElement {
  const one = group[0]!;
  const go = () => {
    view.update({ host: one.host, key: idOf(one.key), metric: one.metric, compare: one.of === "change" ? "change" : "b" });
    goTo("host");
  };
  const deviations = one.deviations === null ? "–" : one.deviations.toFixed(1);
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, el("button", { type: "button", class: "reason", onclick: go }, one.host)),
    el("td", {}, nameOf(one.key)),
    el("td", {}, one.of === "change" ? "its change from A to B" : "its value on B"),
    ...[times(one.times), deviations, count(one.peers)].map((text) => el("td", { class: "number" }, text)),
    el("td", {}, group.map(({ metric }) => metric).join(", ")),
  );
}
