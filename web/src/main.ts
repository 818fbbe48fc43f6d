// Reads the report from the page and shows it.

import "./style/page.css";
import "./style/tables.css";
import "./style/figures.css";
import "./style/boot.css";
import "./style/code.css";
import { columnsIn } from "./data/columns";
import { readHeat, type Heat } from "./data/heat";
import { readProfile } from "./data/profile";
import { readReport, type Report } from "./data/report";
import { Stacks } from "./data/stacks";
import { el } from "./dom";
import { FocusStore, knownFocus, type Context } from "./focus";
import { ViewStore, type View } from "./view";
import { boot } from "./views/boot";
import { calls } from "./views/calls";
import { clocks } from "./views/clocks";
import { cpu } from "./views/cpu";
import { critical } from "./views/critical";
import { diff } from "./views/diff";
import { exits } from "./views/exits";
import { contents, header } from "./views/header";
import { heatmap } from "./views/heatmap";
import { irqs } from "./views/irqs";
import { nested } from "./views/nested";
import { paths } from "./views/path";
import { status } from "./views/status";
import { summary } from "./views/summary";
import { Code } from "./views/profile/code";
import { Timeline } from "./views/timeline/timeline";
import { useOverTime } from "./views/use_over_time";

async function start(root: HTMLElement): Promise<void> {
  const report = readReport(document);
  document.title = `${report.title} – Hyperscope`;
  const heat = report.heat ? readHeat(await columnsIn(document, report.heat.columns_in), report.heat) : null;
  const stacks = report.profile ? new Stacks(readProfile(await columnsIn(document, report.profile.columns_in), report.profile)) : null;
  const spoken = el("div", { class: "spoken", role: "status", "aria-live": "polite" });
  const [view, focus] = [new ViewStore(), new FocusStore()];
  focus.set(knownFocus(report, view.value.focus));
  const context: Context = {
    report,
    focus,
    view,
    showTime: (from, to) => timeline.reveal(from, to),
    findInTimeline: (words) => timeline.seek(words),
    inspect: () => timeline.inspect(),
    selectTime: (from, to) => timeline.selectTime(from, to),
    showRequest: (name) => timeline.showRequest(name),
    openFunction: (key) => code?.openFunction(key),
    deselect: () => timeline.deselect(),
    announce: (words) => (spoken.textContent = words),
  };
  const timeline = new Timeline(context, { heat, stacks });
  const code = stacks ? new Code(context, stacks) : null;
  const sections = sectionsOf(report, context, { heat, code }, timeline);
  root.replaceChildren(header(context), contents(context, sections), el("main", {}, ...sections), status(context), spoken);
  focus.follow((now) => view.update({ focus: now }));
  await timeline.load();
  showUse(context, timeline, sections);
  const goTo = ({ at }: View) => sections.find((one) => one.id === at)?.scrollIntoView({ block: "start" });
  view.follow((entered) => {
    focus.set(knownFocus(report, entered.focus));
    timeline.apply(entered);
    goTo(entered);
  });
  goTo(view.value);
  document.documentElement.dataset.ready = "true";
}

/** Use of CPUs over time derives from the timeline's lanes, and appears once they are loaded. */
function showUse(context: Context, timeline: Timeline, sections: HTMLElement[]): void {
  const use = useOverTime(context, timeline.rows);
  if (use) sections.find((one) => one.id === "cpu")?.append(use);
}

function sectionsOf(report: Report, context: Context, { heat, code }: { heat: Heat | null; code: Code | null }, timeline: Timeline): HTMLElement[] {
  const all = [
    summary(context),
    report.exits.rows.length > 0 ? exits(context, heat) : null,
    diff(context),
    heat ? heatmap(context, heat) : null,
    report.timeline.lanes.length > 0 ? timeline.element : null,
    boot(context),
    cpu(context),
    irqs(context),
    code?.element ?? null,
    calls(context),
    nested(context),
    paths(context),
    critical(context),
    clocks(context),
  ];
  return all.filter((one) => one !== null);
}

const root = document.getElementById("app")!;
start(root).catch((error: unknown) => {
  root.append(el("p", { class: "failed", role: "alert" }, error instanceof Error ? error.message : String(error)));
});
