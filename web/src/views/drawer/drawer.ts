// The selection, docked to the bottom of the window: exits, states, requests, threads and code of an interval.

import { timestampOf } from "../../clock";
import type { EachExit } from "../../data/each_exit";
import type { EachRequest } from "../../data/each_request";
import type { Heat } from "../../data/heat";
import type { Held } from "../../data/held_events";
import type { ExitGroupInfo } from "../../data/report";
import type { Stacks } from "../../data/stacks";
import { el } from "../../dom";
import { describe, EVERYTHING, type Context } from "../../focus";
import { time } from "../../format";
import type { ShownArrows } from "../timeline/arrows";
import { stepsNamed } from "../timeline/drawn_steps";
import type { Range } from "../timeline/range";
import type { LaneRow } from "../timeline/rows";
import type { Match } from "../timeline/search";
import { code } from "./code";
import { eventsAround } from "./events";
import { exitsOf } from "./exits";
import { requests } from "./requests";
import { span, type SpanActions } from "./span";
import { states } from "./states";
import { threads } from "./threads";

const TABS = [
  ["span", "Span"],
  ["exits", "Exits"],
  ["states", "States"],
  ["requests", "Requests"],
  ["threads", "Threads"],
  ["code", "Code"],
] as const;

type Tab = (typeof TABS)[number][0];

export interface DrawerActions extends SpanActions {
  /** The source of event lists. */
  held: () => Held;
  clear: () => void;
  zoom: (range: Range) => void;
  /** The arrows of the chosen span. */
  arrows: () => ShownArrows;
  /** Shows a function between its callers and callees. */
  openFunction: (key: string) => void;
  /** All lanes, those that match the filter, and those in unfolded groups. */
  rows: () => { all: LaneRow[]; wanted: LaneRow[]; open: LaneRow[] };
}

export class Drawer {
  readonly element = el("aside", { class: "selection drawer", hidden: true, "aria-label": "What is selected" });
  private readonly head = el("div", { class: "drawer-head" });
  private readonly tabs: Map<Tab, HTMLButtonElement>;
  private readonly body = el("div", { class: "drawer-body", role: "tabpanel", id: "drawer-panel", tabindex: 0 });
  private lists: EachExit[] = [];
  private requests: EachRequest | null = null;
  private range: Range | null = null;
  private chosen: Match | null = null;
  private timer = 0;

  constructor(
    private readonly context: Context,
    private readonly of: { heat: Heat | null; stacks: Stacks | null },
    private readonly actions: DrawerActions,
  ) {
    const tab = ([key, title]: (typeof TABS)[number]) =>
      [key, el("button", { type: "button", role: "tab", id: `drawer-${key}`, "aria-controls": "drawer-panel", onclick: () => this.choose(key) }, title)] as const;
    this.tabs = new Map(TABS.map(tab));
    const list = el("div", { class: "tabs", role: "tablist", "aria-label": "View of the selection", onkeydown: (event) => this.key(event as KeyboardEvent) }, ...this.tabs.values());
    this.element.append(this.head, list, this.body);
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.actions.clear();
    });
    // Also from the table, finding or lane that opened it, unless the key has another use there.
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented || this.range === null) return;
      if (!(event.target instanceof HTMLInputElement)) this.actions.clear();
    });
    context.focus.follow(() => this.refresh());
  }

  /** Receives the individual exits and requests once they are loaded. */
  takeLists(lists: EachExit[], requests: EachRequest | null): void {
    [this.lists, this.requests] = [lists, requests];
    this.refresh();
  }

  show(range: Range | null): void {
    this.range = range;
    this.element.hidden = range === null;
    document.documentElement.classList.toggle("has-drawer", range !== null);
    // A drag changes the selection with every movement.
    clearTimeout(this.timer);
    if (!range) return;
    const status = document.querySelector<HTMLElement>(".status");
    const docked = status && getComputedStyle(status).position === "fixed";
    this.element.style.bottom = docked ? `${status.offsetHeight}px` : "0";
    this.drawHead(range);
    if (this.body.childElementCount === 0) return this.draw();
    this.timer = setTimeout(() => this.draw(), 60) as unknown as number;
  }

  /** Updates the chosen span if it is shown already; `open`: shows it. */
  follow(chosen: Match | null, open: boolean): void {
    this.chosen = chosen;
    if (open) this.context.view.update({ tab: "span" });
    if (this.range && this.tab === "span") this.draw();
  }

  refresh(): void {
    if (this.range) this.show(this.range);
  }

  private get tab(): Tab {
    const wanted = this.context.view.value.tab;
    return TABS.find(([key]) => key === wanted)?.[0] ?? "exits";
  }

  private choose(tab: Tab): void {
    this.context.view.update({ tab: tab === "exits" ? "" : tab });
    this.draw();
    this.body.scrollTop = 0;
  }

  private key(event: KeyboardEvent): void {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const keys = TABS.map(([key]) => key);
    this.choose(keys[(keys.indexOf(this.tab) + by + keys.length) % keys.length]!);
    this.tabs.get(this.tab)!.focus();
  }

  private drawHead(range: Range): void {
    const { report, focus } = this.context;
    const only = describe(focus.value);
    const tall = this.element.classList.contains("tall");
    const grow = () => {
      this.element.classList.toggle("tall");
      this.drawHead(range);
    };
    this.head.replaceChildren(
      el("p", {}, el("b", {}, time(range.to - range.from, report.nanoseconds)), ` selected, from ${timestampOf(report, range.from)}`),
      ...(only ? [el("button", { type: "button", class: "chip", "aria-label": `Only exits of ${only} are shown: show all`, onclick: () => focus.set(EVERYTHING) }, `${only}  ✕`)] : []),
      el("span", { class: "gap" }),
      el("button", { type: "button", onclick: () => this.actions.zoom(range) }, "Zoom to it"),
      el("button", { type: "button", "aria-pressed": String(tall), onclick: grow }, "Tall"),
      el("button", { type: "button", "aria-label": "Clear the selection", title: "Clear the selection (Esc)", onclick: () => this.actions.clear() }, "Clear"),
    );
  }

  private draw(): void {
    const { range } = this;
    if (!range) return;
    for (const [key, button] of this.tabs) {
      button.setAttribute("aria-selected", String(key === this.tab));
      button.tabIndex = key === this.tab ? 0 : -1;
    }
    this.body.setAttribute("aria-labelledby", `drawer-${this.tab}`);
    this.body.replaceChildren(...this.parts(range));
  }

  private parts(range: Range): HTMLElement[] {
    const { report, focus } = this.context;
    const { all, wanted, open } = this.actions.rows();
    if (this.tab === "span") {
      const events = this.chosen ? [eventsAround(report, this.chosen, this.actions.held())] : [];
      return [...span(report, this.chosen, this.lists, this.actions, this.actions.arrows()), ...events];
    }
    if (this.tab === "states") return states(report, range, open);
    if (this.tab === "threads") return threads(report, range, all);
    if (this.tab === "code") return code({ report, range, focus: focus.value, stacks: this.of.stacks, open: this.actions.openFunction });
    if (this.tab === "requests") {
      const drawn = stepsNamed(report, this.context.view.value.request);
      return requests({ report, range, vm: focus.value.vm, all: this.requests, drawn, reveal: (from, to) => this.context.showTime(from, to) });
    }
    // vCPUs with hidden lanes are left out.
    const unwanted = new Set(all.filter((row) => row.info.kind === "vcpu" && !wanted.includes(row)).map(({ info }) => `${info.vm}\0${info.name}`));
    const isShown = ({ vm, vcpu }: ExitGroupInfo) => !unwanted.has(`${vm}\0vCPU ${vcpu}`);
    const parts = exitsOf({ report, range, focus: focus.value, isShown, lists: this.lists, heat: this.of.heat });
    if (unwanted.size > 0 && this.lists.length > 0) parts.unshift(el("p", { class: "note" }, `Only vCPUs whose lanes are shown; ${unwanted.size} more are omitted.`));
    return parts;
  }
}
