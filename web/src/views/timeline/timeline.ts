// The timeline: lanes of spans, at any zoom.

import { clockMode, timestampOf } from "../../clock";
import { readArrows, type Arrows } from "../../data/arrows";
import { columnsIn } from "../../data/columns";
import { readEachExit, type EachExit } from "../../data/each_exit";
import { readEachRequest } from "../../data/each_request";
import type { Stacks } from "../../data/stacks";
import type { EventLine } from "../../data/held_events";
import type { Heat } from "../../data/heat";
import { readLane } from "../../data/lane";
import { el, section, tableBehind } from "../../dom";
import type { Context } from "../../focus";
import { count, time } from "../../format";
import { Drawer } from "../drawer/drawer";
import { EventList } from "../events/list";
import { Deepening } from "./deepen";
import { sumsTable } from "../drawer/states";
import type { View } from "../../view";
import { arrowsOf, NO_ARROWS, offsetOf, paintArrows, type ShownArrows } from "./arrows";
import { arrowsOfSteps, stepsNamed } from "./drawn_steps";
import { controls, note } from "./controls";
import { Finder } from "./finder";
import { Gutter } from "./gutter";
import { commandFor, type Command } from "./keys";
import { LaneBar } from "./lane_bar";
import { Legend } from "./legend";
import { Minimap } from "./minimap";
import { paintAxis, paintLanes, paintOverlay, palette, type Palette } from "./paint";
import { Pointer } from "./pointer";
import { moved, zoomed, type Range } from "./range";
import { groupsOf, overview, place, unfolded, type LaneRow } from "./rows";
import type { Match } from "./search";
import { ShownTime } from "./shown_time";
import { describe, laneTitle } from "./words";

/** Max height of the lanes; more lanes scroll. */
const MOST_HEIGHT = 620;

export class Timeline {
  readonly element: HTMLElement;
  private readonly groups;
  private readonly shown: ShownTime;
  private selection: Range | null = null;
  private cursor: number | null = null;
  private chosen: Match | null = null;
  /** Whether the selection comes from a click on a span: the next click replaces it. */
  private spanSelected = false;
  private arrows: Arrows | null = null;
  /** The arrows of the chosen span. */
  private own: ShownArrows = NO_ARROWS;
  /** Lanes pinned because of the drawn request. */
  private requestLanes: number[] = [];
  private colours: Palette;
  private frame = 0;
  private stale = { lanes: true, minimap: true };
  private readonly canvas = el("canvas", { class: "lanes" });
  private readonly overlay = el("canvas", { class: "overlay" });
  private readonly axis = el("canvas", { class: "axis", role: "img" });
  private readonly legend: Legend;
  private readonly bar: LaneBar;
  private readonly clock = el("div", { class: "corner" });
  private height = 0;
  private readonly gutter: Gutter;
  private readonly scroller: HTMLElement;
  private readonly area: HTMLElement;
  private readonly minimap: Minimap;
  private readonly drawer: Drawer;
  private readonly events: EventList;
  private readonly deepening: Deepening;
  private lists: EachExit[] = [];
  private readonly about = el("p", { class: "about", role: "status" });
  private readonly finder: Finder;

  constructor(
    private readonly context: Context,
    of: { heat: Heat | null; stacks: Stacks | null },
  ) {
    const { report } = context;
    this.groups = groupsOf(report.timeline.lanes);
    const whole = { from: 0, to: Math.max(1000, report.length_ns) };
    this.shown = new ShownTime(whole, whole);
    this.shown.goTo(this.shown.fromAddress(context.view.value.time) ?? whole, false);
    this.colours = palette(report, context.view.value);
    this.bar = new LaneBar(context, this.groups, () => this.changeRows());
    this.legend = new Legend(context, () => this.changeStates());
    this.gutter = new Gutter(this.groups, { changed: () => this.changeRows(), pin: (row) => this.bar.pin(row), hide: (row) => this.bar.hide(row) });
    this.minimap = new Minimap(whole, () => this.shown.now, (range) => this.show(range));
    const held = () => ({ report, rows: this.rows, lists: this.lists, arrows: this.arrows });
    const rows = () => ({ all: this.rows, wanted: this.groups.flatMap((group) => group.wanted), open: unfolded(this.groups) });
    this.drawer = new Drawer(context, of, { clear: () => this.select(null), zoom: (range) => this.show(range, true), arrows: () => this.own, rows, step: (forward) => this.run(forward ? "nextSpan" : "previousSpan"), findOthers: (words) => this.seek(words), openFunction: (key) => this.context.openFunction(key), held });
    this.deepening = new Deepening(context, { rows, change: (apply) => this.changeLanes(apply), say: (words) => (this.about.textContent = words) });
    this.finder = new Finder(context, () => ({ rows: this.rows, lists: this.lists, chosen: this.chosen }));
    const words = `Timeline of ${count(report.timeline.lanes.length)} lanes over ${time(report.length_ns, report.nanoseconds)}. Arrow keys or W A S D move and zoom, comma and full stop go from span to span.`;
    this.area = el("div", { class: "area", tabindex: 0, role: "application", "aria-label": words }, this.canvas, this.overlay);
    this.scroller = el("div", { class: "scroller" }, this.gutter.element, this.area);
    this.events = new EventList(context, { held, mark: (event) => this.mark(event) }, () => this.resize());
    this.element = this.makeSection();
    this.listen();
    this.nameClock();
    this.changeRows();
  }

  private makeSection(): HTMLElement {
    const { report } = this.context;
    const table = () => sumsTable(report, this.shown.now, unfolded(this.groups));
    return section(
      "timeline",
      "Timeline",
      controls(this.finder.field, this.finder.said, (command) => this.run(command), this.events.toggle),
      this.bar.element,
      this.legend.element,
      el("div", { class: "with-events" }, el("div", { class: "frame" }, el("div", { class: "corner" }, "all of it"), this.minimap.canvas, this.clock, this.axis, this.scroller), this.events.element),
      this.about,
      this.drawer.element,
      tableBehind("Table of what is shown", table),
      note(report),
    );
  }

  /** Reads the lanes from the page, one after the other; the page stays responsive. */
  async load(): Promise<void> {
    let begun = performance.now();
    const rows = this.rows;
    for (const [at, row] of rows.entries()) {
      row.lane = readLane(await columnsIn(document, row.info.columns_in), row.info.spans);
      if (performance.now() - begun < 40 && at + 1 < rows.length) continue;
      this.about.textContent = at + 1 < rows.length ? `Reading lanes: ${at + 1} of ${rows.length} …` : "";
      this.invalidate(true);
      await new Promise((resolve) => setTimeout(resolve));
      begun = performance.now();
    }
    this.legend.show(rows);
    const { arrows } = this.context.report;
    this.arrows = arrows.arrows > 0 ? readArrows(await columnsIn(document, arrows.columns_in), arrows) : null;
    const lists = this.context.report.each_exit.map(async (info) => readEachExit(await columnsIn(document, info.columns_in), info));
    this.lists = await Promise.all(lists);
    const { each_request: requests } = this.context.report;
    this.drawer.takeLists(this.lists, requests ? readEachRequest(await columnsIn(document, requests.columns_in), requests) : null);
    this.follow(this.shown.now);
    this.finder.find();
    this.select(this.shown.fromAddress(this.context.view.value.selection), true);
    this.bringRequest();
  }

  /** Draws a request from lane to lane, and selects its time. */
  showRequest(name: string): void {
    const request = stepsNamed(this.context.report, name);
    if (!request) return;
    const [first, last] = [request.steps[0]!, request.steps.at(-1)!].map((step) => offsetOf(this.context.report, step.ts_ns));
    this.choose(null);
    this.context.view.update({ request: name, tab: "requests" });
    this.select({ from: Math.max(0, first!), to: last! }, true);
    this.bringRequest();
    this.reveal(first! - (last! - first!) / 4, last! + (last! - first!) / 4);
    this.scroller.parentElement!.scrollIntoView({ block: "start" });
  }

  /** Pins the lanes of the drawn request to the top, while it is drawn. */
  private bringRequest(): void {
    const { view, report } = this.context;
    const request = stepsNamed(report, view.value.request);
    const lanes = [...new Set(request?.lanes ?? [])].filter((lane) => lane !== null);
    const own = view.value.pinned.filter((lane) => !this.requestLanes.includes(lane));
    this.requestLanes = lanes.filter((lane) => !own.includes(lane));
    const pinned = [...this.requestLanes, ...own];
    if (pinned.join() === view.value.pinned.join()) return;
    view.update({ pinned, hidden: view.value.hidden.filter((lane) => !lanes.includes(lane)) });
    if (request) this.scroller.scrollTop = 0;
    this.changeRows();
  }

  /** Selects an interval and shows it, with half its length on either side. */
  selectTime(from: number, to: number): void {
    this.select({ from: Math.max(0, from), to });
    this.reveal(from - (to - from) / 2, to + (to - from) / 2);
  }

  /** Clears the selection. */
  deselect(): void {
    this.select(null);
  }

  /** Shows the selection, or everything, without scrolling the page. */
  inspect(): void {
    this.select(this.selection ?? this.shown.whole);
  }

  /** Shows the view of another address. */
  apply(view: View): void {
    this.finder.enter(view.find);
    this.select(this.shown.fromAddress(view.selection), true);
    this.bringRequest();
    this.show(this.shown.fromAddress(view.time) ?? this.shown.whole);
    this.events.apply();
    this.changeRows();
    this.changeStates();
  }

  private changeStates(): void {
    this.colours = palette(this.context.report, this.context.view.value);
    this.legend.show(this.rows);
    this.invalidate(true);
  }

  private nameClock(): void {
    this.clock.textContent = clockMode() === "absolute" ? "recording’s clock" : "since the beginning";
  }

  private changeClock(): void {
    this.nameClock();
    this.choose(this.chosen);
    this.drawer.refresh();
    this.invalidate(false);
  }

  /** Shows an interval and scrolls to the timeline. */
  reveal(from: number, to: number): void {
    this.show({ from, to }, true);
    this.element.scrollIntoView({ behavior: "smooth", block: "start" });
    this.area.focus({ preventScroll: true });
  }

  /** Finds the next match of these words, and scrolls to it. */
  seek(words: string): void {
    this.finder.enter(words);
    this.run("nextMatch");
    this.element.scrollIntoView({ behavior: "smooth", block: "start" });
    this.area.focus({ preventScroll: true });
  }

  private listen(): void {
    new ResizeObserver(() => this.resize()).observe(this.area);
    addEventListener("hyperscope:clock", () => this.changeClock());
    addEventListener("hyperscope:theme", () => {
      this.colours = palette(this.context.report, this.context.view.value);
      this.invalidate(true);
    });
    this.scroller.addEventListener("scroll", () => this.invalidate(false));
    this.followPointer();
    this.area.addEventListener("keydown", (event) => this.key(event));
    this.finder.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.run(event.shiftKey ? "previousMatch" : "nextMatch");
    });
    document.addEventListener("keydown", (event) => {
      const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (event.key !== "/" || typing || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.finder.field.focus();
    });
  }

  private followPointer(): void {
    new Pointer(this.area, {
      report: this.context.report,
      whole: this.shown.whole,
      shown: () => this.shown.now,
      rows: () => unfolded(this.groups),
      scrolled: () => this.scroller.scrollTop,
      show: (range) => this.show(range),
      select: (range) => this.select(range),
      open: (match) => this.open(match),
      zoomToSpan: (match) => this.zoomToSpan(match),
      follow: (at) => {
        this.cursor = at;
        this.schedule();
      },
    });
  }

  private changeRows(): void {
    this.height = place(this.groups, this.context.view.value);
    this.area.style.height = `${this.height}px`;
    this.scroller.style.maxHeight = `${MOST_HEIGHT}px`;
    this.gutter.place();
    this.bar.show();
    this.drawer.refresh();
    this.resize();
    this.invalidate(true);
  }

  private resize(): void {
    const scale = devicePixelRatio || 1;
    const fit = (canvas: HTMLCanvasElement, width: number, height: number) => {
      canvas.style.height = `${height}px`;
      const [wide, high] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
      if (canvas.width === wide && canvas.height === high) return;
      canvas.width = wide;
      canvas.height = high;
    };
    const width = this.area.clientWidth;
    const height = Math.min(MOST_HEIGHT, this.height);
    fit(this.canvas, width, height);
    fit(this.overlay, width, height);
    fit(this.axis, this.axis.clientWidth, 26);
    this.invalidate(true);
  }

  private invalidate(minimap: boolean): void {
    this.stale.lanes = true;
    this.stale.minimap ||= minimap;
    this.schedule();
  }

  private schedule(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    this.frame = 0;
    const begun = performance.now();
    this.stale.lanes = this.shown.step(begun) || this.stale.lanes;
    const { report } = this.context;
    const rows = unfolded(this.groups);
    if (this.stale.lanes) {
      paintLanes(this.canvas, rows, report, this.colours, this.shown.now, this.scroller.scrollTop);
      paintAxis(this.axis, report, this.colours, this.shown.now);
      if (this.stale.minimap) this.minimap.prepare(overview(rows), this.colours);
      this.minimap.draw();
      this.stale = { lanes: false, minimap: false };
    }
    const chosen = this.chosen;
    const lane = chosen?.row.lane;
    const mark = chosen && lane && rows.includes(chosen.row) ? { from: lane.from[chosen.at]!, to: lane.to[chosen.at]!, y: chosen.row.y - this.scroller.scrollTop, height: chosen.row.height } : null;
    paintOverlay(this.overlay, this.colours, this.shown.now, { selection: this.selection, cursor: this.cursor, chosen: mark });
    const request = stepsNamed(report, this.context.view.value.request);
    const arrows = [...this.own.arrows, ...(request ? arrowsOfSteps(report, request) : [])];
    const unseen = paintArrows(this.overlay, this.colours, this.shown.now, { arrows, rows, top: this.scroller.scrollTop });
    this.overlay.dataset.arrows = `${arrows.length - unseen} of ${arrows.length}`;
    if (this.shown.isOnItsWay) this.invalidate(false);
    this.element.dispatchEvent(new CustomEvent("hyperscope:drawn", { detail: performance.now() - begun }));
  }

  private show(range: Range, smoothly = false): void {
    this.shown.goTo(range, smoothly);
    this.context.view.update({ time: this.shown.isWhole ? null : this.shown.target });
    this.follow(this.shown.target);
    this.invalidate(false);
  }

  /** Updates everything that depends on the shown time. */
  private follow(range: Range): void {
    this.events.follow(range);
    this.deepening.follow(range);
  }

  get rows(): LaneRow[] {
    return this.groups.flatMap((group) => group.rows);
  }

  /** Replaces spans of lanes: finds the chosen one among the new ones. */
  private changeLanes(apply: () => void): void {
    const chosen = this.chosen;
    const at = chosen ? chosen.row.lane!.from[chosen.at]! : 0;
    apply();
    const again = chosen?.row.lane?.at(at) ?? null;
    this.chosen = chosen && again !== null ? { row: chosen.row, at: again } : null;
    this.finder.find();
    this.drawer.refresh();
    this.events.refresh();
    this.invalidate(true);
  }

  /** Marks an event, and chooses the span at that time in its lane. */
  private mark({ at, where }: EventLine): void {
    this.cursor = at;
    const row = this.rows.find(({ info }) => laneTitle(info) === where);
    const span = row?.lane?.at(at) ?? null;
    this.choose(row && span !== null ? { row, at: span } : this.chosen);
    if (at < this.shown.target.from || at > this.shown.target.to) this.goToTime(at);
  }

  private zoomToSpan({ row, at }: Match): void {
    const [from, to] = [row.lane!.from[at]!, row.lane!.to[at]!];
    this.show({ from: from - (to - from) * 0.5, to: to + (to - from) * 0.5 }, true);
  }

  /** Chooses a span and shows its details; selects its time unless there is a selection. */
  private open(match: Match | null): void {
    this.choose(match);
    if (!match) return;
    const lane = match.row.lane!;
    if (!this.selection || this.spanSelected) this.select({ from: lane.from[match.at]!, to: lane.to[match.at]! });
    this.spanSelected = this.selection?.from === lane.from[match.at] && this.selection?.to === lane.to[match.at];
    this.drawer.follow(match, true);
  }

  private choose(match: Match | null): void {
    this.chosen = match;
    const rows = this.rows;
    this.own = match ? arrowsOf(this.context.report, rows, match, this.arrows) : NO_ARROWS;
    this.drawer.follow(match, false);
    this.finder.say();
    this.gutter.mark(match?.row ?? null);
    const lines = match ? describe(this.context.report, match) : [];
    this.about.textContent = lines.join(" · ");
    this.schedule();
  }

  /** Chooses a span and makes it visible. */
  private goTo(match: Match | null): void {
    if (!match) return;
    if (!unfolded(this.groups).includes(match.row)) this.bar.bring(match.row);
    this.choose(match);
    const [from, to] = [match.row.lane!.from[match.at]!, match.row.lane!.to[match.at]!];
    const shown = this.shown.target;
    const tiny = (to - from) / (shown.to - shown.from) < 4 / Math.max(1, this.area.clientWidth);
    if (tiny) this.show({ from: from - (to - from) * 20, to: to + (to - from) * 20 }, true);
    else if (from < shown.from || to > shown.to) this.show(moved(shown, (from + to) / 2 - (shown.from + shown.to) / 2, this.shown.whole), true);
    const { y, height } = match.row;
    const { scrollTop, clientHeight } = this.scroller;
    if (y < scrollTop) this.scroller.scrollTop = y;
    if (y + height > scrollTop + clientHeight) this.scroller.scrollTop = y + height - clientHeight;
  }

  /** Selects an interval; a selection other than that of a request removes the request. */
  private select(range: Range | null, keepsRequest = false): void {
    this.spanSelected = false;
    if (!keepsRequest && this.context.view.value.request) {
      this.context.view.update({ request: "" });
      this.bringRequest();
    }
    // Whole nanoseconds, as in an address.
    this.selection = range && { from: Math.floor(range.from), to: Math.ceil(range.to) };
    const { tab } = this.context.view.value;
    this.context.view.update({ selection: this.selection, tab: tab === "span" ? "" : tab });
    this.drawer.show(this.selection);
    dispatchEvent(new Event("hyperscope:selection"));
    this.schedule();
  }

  /** Goes to the next match, or to the entered timestamp. */
  private goOn(forward: boolean): void {
    const at = this.finder.timestamp;
    if (at !== null) return this.goToTime(at);
    this.goTo(this.finder.next(this.shown.target.from, forward));
  }

  /** Centres a timestamp, at the current zoom, and marks it. */
  private goToTime(at: number): void {
    const all = this.shown.whole.to - this.shown.whole.from;
    const length = Math.min(this.shown.target.to - this.shown.target.from, all / 50);
    this.cursor = at;
    this.show({ from: at - length / 2, to: at + length / 2 }, true);
    const words = `At ${timestampOf(this.context.report, at)}`;
    this.about.textContent = words;
    this.context.announce(words);
  }

  private key(event: KeyboardEvent): void {
    const command = commandFor(event);
    if (!command) return;
    event.preventDefault();
    this.run(command);
  }

  private run(command: Command): void {
    const shown = this.shown.target;
    const [length, middle] = [shown.to - shown.from, (shown.from + shown.to) / 2];
    const rows = unfolded(this.groups).filter((row) => (row.lane?.count ?? 0) > 0);
    switch (command) {
      case "left":
      case "right":
        return this.show(moved(shown, (command === "left" ? -0.2 : 0.2) * length, this.shown.whole), true);
      case "zoomIn":
      case "zoomOut":
        return this.show(zoomed(shown, command === "zoomIn" ? 0.6 : 1 / 0.6, this.cursor ?? middle, this.shown.whole), true);
      case "fit":
        return this.show(this.shown.whole, true);
      case "up":
      case "down":
        return this.changeLane(rows, command === "up" ? -1 : 1, middle);
      case "nextSpan":
      case "previousSpan":
        return this.step(rows, command === "nextSpan" ? 1 : -1, middle);
      case "nextMatch":
      case "previousMatch":
        return this.goOn(command === "nextMatch");
      case "openSpan":
        return this.open(this.chosen);
      case "zoomToSpan":
        return this.chosen ? this.zoomToSpan(this.chosen) : undefined;
      case "selectSpan":
        return this.chosen ? this.select({ from: this.chosen.row.lane!.from[this.chosen.at]!, to: this.chosen.row.lane!.to[this.chosen.at]! }) : this.select(shown);
      case "pinLane":
      case "hideLane":
        return this.changeChosenLane(rows, command === "pinLane");
      case "clear":
        this.select(null);
        return this.choose(null);
    }
  }

  private changeLane(rows: LaneRow[], by: number, middle: number): void {
    const at = this.chosen ? rows.indexOf(this.chosen.row) + by : 0;
    const row = rows[Math.min(rows.length - 1, Math.max(0, at))];
    const start = this.chosen ? this.chosen.row.lane!.from[this.chosen.at]! : middle;
    if (row) this.goTo({ row, at: Math.max(0, row.lane!.begunBy(start) - 1) });
  }

  /** Pins or hides the lane of the chosen span; the lane that takes its place becomes the chosen one. */
  private changeChosenLane(rows: LaneRow[], pins: boolean): void {
    const row = this.chosen?.row;
    if (!row) return;
    const words = pins ? (this.context.view.value.pinned.includes(row.at) ? "put back" : "pinned to the top") : "hidden";
    if (pins) this.bar.pin(row);
    else this.bar.hide(row);
    this.context.announce(`${laneTitle(row.info)} is ${words}`);
    const next = rows[rows.indexOf(row) + 1] ?? rows[rows.indexOf(row) - 1];
    if (!pins && next) this.goTo({ row: next, at: Math.max(0, next.lane!.begunBy(this.chosen!.row.lane!.from[this.chosen!.at]!) - 1) });
    else this.goTo(this.chosen);
  }

  private step(rows: LaneRow[], by: number, middle: number): void {
    if (!this.chosen) return this.changeLane(rows, 0, middle);
    const at = this.chosen.at + by;
    if (at >= 0 && at < this.chosen.row.lane!.count) this.goTo({ row: this.chosen.row, at });
  }
}
