// Reads the data of a fleet from the page and shows it.

import "../style/page.css";
import "../style/tables.css";
import "../style/figures.css";
import "../style/fleet.css";
import { el } from "../dom";
import type { Context } from "./context";
import { ALL_EXITS, idOf, readFleet, type Fleet } from "./data";
import { findings, firstFinding } from "./findings";
import { contents, foot, head } from "./head";
import { host } from "./host";
import { hosts } from "./hosts";
import { outliers } from "./outliers";
import { rows } from "./rows";
import { series } from "./series";
import { FleetStore, type FleetView } from "./state";

/** The default view: the first finding. */
function usual(fleet: Fleet): FleetView {
  const finding = firstFinding(fleet);
  const metrics = fleet.grid.map((one) => one.metric);
  const metric = finding?.metric ?? (metrics.includes("mean_cost_ns") ? "mean_cost_ns" : (metrics[0] ?? ""));
  return {
    metric,
    key: idOf(finding ?? ALL_EXITS),
    host: finding?.carried_by[0] ?? fleet.outliers[0]?.host ?? fleet.hosts[0]?.host ?? "",
    compare: fleet.diff.paired > 0 ? "change" : "b",
    order: "kind",
    words: "",
    theme: null,
  };
}

function start(root: HTMLElement): void {
  const fleet = readFleet(document);
  document.title = `${fleet.title} – Hyperscope fleet`;
  const spoken = el("div", { class: "spoken", role: "status", "aria-live": "polite" });
  const context: Context = {
    fleet,
    view: new FleetStore(usual(fleet)),
    goTo: (id) => {
      const target = document.getElementById(id);
      target?.scrollIntoView({ block: "start" });
      target?.focus({ preventScroll: true });
    },
    announce: (words) => (spoken.textContent = words),
  };
  const sections = [findings, hosts, host, series, outliers, rows].map((make) => make(context));
  root.replaceChildren(head(context), contents(context, sections), el("main", {}, ...sections), foot(context), spoken);
  document.documentElement.dataset.ready = "true";
}

const root = document.getElementById("app")!;
try {
  start(root);
} catch (error: unknown) {
  root.append(el("p", { class: "failed", role: "alert" }, error instanceof Error ? error.message : String(error)));
}
