// A list of events next to the timeline: those of the shown time that contain some words.

import { timestampOf } from "../../clock";
import { eventsWithin, type FoundEvents } from "../../data/events";
import type { EventLine, Held } from "../../data/held_events";
import { el } from "../../dom";
import type { Context } from "../../focus";
import { count } from "../../format";
import type { Range } from "../timeline/range";

/** Max lines of a list; for more, the list suggests a narrower interval. */
const MOST_LINES = 300;

/** Delay after the last movement before events are requested. */
const WAIT_MS = 180;

export interface EventActions {
  held: () => Held;
  /** Marks an event in the timeline. */
  mark: (event: EventLine) => void;
}

/** An event as one line. */
export function eventCells(report: Context["report"], event: EventLine): HTMLElement[] {
  return [
    el("span", { class: "at" }, timestampOf(report, event.at)),
    el("span", { class: "where" }, event.where),
    el("span", { class: "thread" }, event.thread),
    el("b", {}, event.name),
    el("span", { class: "text" }, event.text),
  ];
}

export class EventList {
  readonly element = el("aside", { class: "events", hidden: true, "aria-label": "Events of the time shown" });
  readonly toggle: HTMLButtonElement;
  private readonly filter: HTMLInputElement;
  private readonly said = el("span", { class: "found", role: "status" });
  private readonly list = el("div", { class: "event-lines", role: "listbox", tabindex: 0, "aria-label": "Events", onkeydown: (event) => this.key(event as KeyboardEvent) });
  private readonly note = el("p", { class: "note" });
  private range: Range | null = null;
  private found: FoundEvents = { events: [], matching: 0, more: false };
  private chosen = -1;
  private timer = 0;
  private asked: AbortController | null = null;

  constructor(
    private readonly context: Context,
    private readonly actions: EventActions,
    private readonly resized: () => void,
  ) {
    const { view } = context;
    this.toggle = el("button", { type: "button", onclick: () => this.open(!view.value.events) }, "Events");
    this.filter = el("input", {
      type: "search",
      placeholder: "Filter: reason, MSR, address, thread …",
      "aria-label": "Only events with all of these words",
      oninput: () => {
        view.update({ eventWords: this.filter.value });
        this.later();
      },
    });
    const step = (words: string, label: string, by: number) => el("button", { type: "button", "aria-label": label, title: label, onclick: () => this.choose(this.chosen + by, true) }, words);
    this.element.append(
      el("div", { class: "controls" }, this.filter, step("‹", "Event before", -1), step("›", "Event after", 1), this.said),
      this.list,
      this.note,
    );
    addEventListener("hyperscope:clock", () => this.draw());
    this.apply();
  }

  /** Shows the state from the address. */
  apply(): void {
    const { events, eventWords } = this.context.view.value;
    if (this.filter.value !== eventWords) this.filter.value = eventWords;
    this.toggle.setAttribute("aria-pressed", String(events));
    if (this.element.hidden !== events) return;
    this.element.hidden = !events;
    this.resized();
    this.later();
  }

  private open(events: boolean): void {
    this.context.view.update({ events });
    this.apply();
    if (events) this.filter.focus();
  }

  /** The shown time has changed. */
  follow(range: Range): void {
    this.range = range;
    this.later();
  }

  /** More events are available. */
  refresh(): void {
    this.later();
  }

  private later(): void {
    clearTimeout(this.timer);
    if (!this.element.hidden) this.timer = setTimeout(() => void this.ask(), WAIT_MS) as unknown as number;
  }

  private async ask(): Promise<void> {
    if (!this.range) return;
    this.asked?.abort();
    const asked = new AbortController();
    this.asked = asked;
    const range = { from: Math.floor(this.range.from), to: Math.ceil(this.range.to) };
    try {
      const found = await eventsWithin(this.actions.held(), range, this.filter.value, MOST_LINES, asked.signal);
      if (asked.signal.aborted) return;
      const before = this.found.events[this.chosen];
      this.found = found;
      this.chosen = before ? found.events.findIndex((one) => one.at === before.at && one.name === before.name && one.where === before.where) : -1;
      this.draw();
    } catch (error) {
      if (asked.signal.aborted) return;
      this.found = { events: [], matching: 0, more: false };
      this.draw();
      this.said.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  private draw(): void {
    const { report } = this.context;
    const { events, matching, more } = this.found;
    const line = (event: EventLine, at: number) =>
      el("div", { role: "option", id: `event-${at}`, class: event.lost ? "lost" : null, "data-at": event.at, "data-name": event.name, "aria-selected": String(at === this.chosen), onclick: () => this.choose(at, true) }, ...eventCells(report, event));
    this.list.replaceChildren(...events.map(line));
    this.say();
    const notes = [
      matching > events.length ? `The first ${count(events.length)} are listed: zoom in, or filter.` : "",
      more ? "Too many events for one search: zoom in." : "",
      report.served ? "" : "Only events in this page: exits, entries, switches, wake-ups. For all events: hyperscope report --serve.",
    ];
    this.note.textContent = notes.filter(Boolean).join(" ");
  }

  private say(): void {
    const { matching, more } = this.found;
    const all = `${count(matching)}${more ? " or more" : ""}`;
    this.said.textContent = this.chosen < 0 ? `${all} events` : `${count(this.chosen + 1)} of ${all}`;
  }

  private choose(at: number, marks: boolean): void {
    const { events } = this.found;
    if (events.length === 0) return;
    const next = Math.min(events.length - 1, Math.max(0, at));
    this.list.children[this.chosen]?.setAttribute("aria-selected", "false");
    this.chosen = next;
    const line = this.list.children[next] as HTMLElement;
    line.setAttribute("aria-selected", "true");
    this.list.setAttribute("aria-activedescendant", line.id);
    line.scrollIntoView({ block: "nearest" });
    this.say();
    if (marks) this.actions.mark(events[next]!);
  }

  private key(event: KeyboardEvent): void {
    const to = { ArrowDown: this.chosen + 1, ArrowUp: this.chosen - 1, PageDown: this.chosen + 10, PageUp: this.chosen - 10, Home: 0, End: this.found.events.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.choose(to, true);
  }
}
