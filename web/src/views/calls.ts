// Function calls: for each recording of function tracers, a flame graph and its functions.

import { timeOf, type CalledFunction, type CallsSource } from "../data/report";
import { el, section } from "../dom";
import type { Context } from "../focus";
import { count, share, time } from "../format";
import { Flame } from "./flame";
import { titleOf } from "./timeline/call_words";

/** Functions shown by default. */
const FIRST = 15;

export function calls(context: Context): HTMLElement | null {
  const sources = context.report.calls?.sources ?? [];
  if (sources.length === 0) return null;
  return section("calls", "Where calls went", ...sources.map((source) => new Calls(context, source).element));
}

interface Column {
  title: string;
  hint: string;
  sort: ((one: CalledFunction) => number) | null;
  cell: (one: CalledFunction) => string;
}

class Calls {
  readonly element: HTMLElement;
  private readonly ns: boolean;
  private readonly flame: Flame | null;
  private readonly columns: Column[];
  private readonly table = el("table", { class: "exits called" });
  private readonly found = el("span", { class: "found", role: "status" });
  private words = "";
  private sortBy: string;
  private all = false;

  constructor(
    private readonly context: Context,
    private readonly source: CallsSource,
  ) {
    this.ns = context.report.nanoseconds;
    const timed = source.tracer === "function_graph";
    this.flame = timed ? new Flame(source.tree, this.ns, `Flame graph of the calls in ${source.path}`) : null;
    this.columns = timed ? this.timedColumns() : this.countedColumns();
    this.sortBy = timed ? "self" : "calls";
    const many = `${count(source.count)} calls`;
    const about = timed
      ? `${source.path}: ${many} on ${source.machine}. Functions below 0.1% are not drawn. All times include the tracer's cost.`
      : `${source.path}: ${many} on ${source.machine}. The function tracer records calls only: there are no times and no stacks.`;
    this.element = el("div", {}, el("p", { class: "note" }, about), this.controls(), this.flame?.element,
      el("div", { class: "scroll most", tabindex: 0, role: "region", "aria-label": `Functions in ${source.path}` }, this.table), this.note());
    this.draw();
  }

  private controls(): HTMLElement {
    const field = el("input", { type: "search", placeholder: "Find a function …", "aria-label": "Find a function", oninput: () => this.find(field.value) });
    const more = el("button", { type: "button", "aria-pressed": "false", onclick: () => {
      this.all = !this.all;
      more.setAttribute("aria-pressed", String(this.all));
      this.draw();
    } }, "All functions");
    return el("div", { class: "controls" }, field, this.found, more);
  }

  private find(words: string): void {
    this.words = words.trim().toLowerCase();
    const found = this.flame?.mark(this.words) ?? null;
    this.found.textContent = found === null ? "" : `${share(found, 1, 1)} of the time, callees included`;
    this.draw();
  }

  private column(title: string, of: (one: CalledFunction) => number, cell: (one: CalledFunction) => string, hint: string): Column {
    return { title, hint, sort: of, cell };
  }

  private timedColumns(): Column[] {
    const { ns, source } = this;
    const value = (one: CalledFunction, name: string) => timeOf(one, name, ns);
    const timed = (title: string, name: string, hint: string) =>
      this.column(title, (one) => value(one, name) ?? -1, (one) => time(value(one, name), ns), hint);
    const self = timeOf(source, "self", ns);
    const columns = [
      this.column("calls", (one) => one.count, (one) => count(one.count), "Calls that returned"),
      timed("self", "self", "In the function itself, on a CPU"),
      this.column("self%", (one) => value(one, "self") ?? -1, (one) => share(value(one, "self"), self), "Of all self time"),
      timed("off CPU", "off_cpu", "Off CPU while it was the innermost function"),
      timed("total", "total", "From call to return; for recursion, the outermost calls"),
      this.column("mean", (one) => (value(one, "total") ?? 0) / Math.max(1, one.count), (one) => time(one.count > 0 ? (value(one, "total") ?? 0) / one.count : null, ns), "Total by calls"),
      timed("max", "max", "The longest call"),
    ];
    return columns.filter((one) => one.title !== "off CPU" || timeOf(source, "off_cpu", ns) !== null);
  }

  private countedColumns(): Column[] {
    const { source } = this;
    const callers = (one: CalledFunction) => one.callers.slice(0, 3).map((by) => `${by.function} ${count(by.count)}`).join(", ") + (one.callers.length > 3 ? ", …" : "");
    return [
      this.column("calls", (one) => one.count, (one) => count(one.count), "Calls"),
      this.column("share", (one) => one.count, (one) => share(one.count, source.count), "Of all calls"),
      { title: "called by", hint: "Its most frequent callers", sort: null, cell: callers },
    ];
  }

  private draw(): void {
    const { source, columns } = this;
    const sort = columns.find((one) => one.title === this.sortBy)?.sort;
    const found = source.functions.filter((one) => titleOf(one).toLowerCase().includes(this.words));
    if (sort) found.sort((a, b) => sort(b) - sort(a));
    const shown = this.all || this.words !== "" ? found : found.slice(0, FIRST);
    const head = columns.map((one) => this.heading(one));
    const rows = shown.map((one) => el("tr", {}, el("th", { scope: "row" }, this.name(one)), ...columns.map((column) => el("td", { class: column.sort ? "number" : null, "data-key": column.title }, column.cell(one)))));
    this.table.replaceChildren(
      el("caption", {}, `${count(shown.length)} of ${count(source.functions.length)} functions`),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, el("span", { class: "plain" }, "function")), ...head)),
      el("tbody", {}, ...rows),
    );
  }

  private heading({ title, hint, sort }: Column): HTMLElement {
    const sorted = title === this.sortBy;
    if (!sort) return el("th", { scope: "col", title: hint }, el("span", { class: "plain" }, title));
    const by = () => {
      this.sortBy = title;
      this.draw();
      this.table.querySelector<HTMLElement>(`th[data-key="${title}"] button`)?.focus();
    };
    return el("th", { scope: "col", class: "number", "data-key": title, title: hint, "aria-sort": sorted ? "descending" : "none" },
      el("button", { type: "button", onclick: by }, title, el("span", { "aria-hidden": "true" }, sorted ? " ▼" : "")));
  }

  /** A function's name; if calls are in the timeline, it links to the next one. */
  private name(one: CalledFunction): HTMLElement {
    const title = titleOf(one);
    if (!this.flame) return el("span", { class: "reason" }, title);
    return el("button", { type: "button", class: "reason", title: "Show the next call in the timeline", onclick: () => this.context.findInTimeline(title) }, title);
  }

  private note(): HTMLElement | null {
    const { without_call, without_return } = this.source;
    if (without_call + without_return === 0) return null;
    return el("p", { class: "note" }, `Omitted from counts and times: ${count(without_return)} calls whose return is not recorded, ${count(without_call)} returns whose call is not.`);
  }
}
