// The events around a span: within it, and shortly before and after.

import { eventsWithin } from "../../data/events";
import type { Held } from "../../data/held_events";
import type { Report } from "../../data/report";
import { timestampOf } from "../../clock";
import { el, plainTable } from "../../dom";
import { count } from "../../format";
import type { Match } from "../timeline/search";

const MOST_LINES = 40;

/** Time before and after a span: a part of its length, at least this. */
const [AROUND, LEAST_AROUND_NS] = [0.05, 1000];

/** An element for them, which is filled once they are found. */
export function eventsAround(report: Report, { row, at }: Match, held: Held): HTMLElement {
  const [from, to] = [row.lane!.from[at]!, row.lane!.to[at]!];
  const around = Math.max(LEAST_AROUND_NS, (to - from) * AROUND);
  const place = el("div", { class: "span-events" }, el("p", { class: "note" }, "Looking for events …"));
  eventsWithin(held, { from: Math.floor(from - around), to: Math.ceil(to + around) }, "", MOST_LINES).then(
    ({ events, matching }) => {
      const lines = events.map((one) => [timestampOf(report, one.at), one.where, one.thread, one.name, one.text]);
      const of = matching > events.length ? `: the first ${count(events.length)} of ${count(matching)}` : "";
      const table = plainTable(`Events around it${of}`, ["at", "where", "thread", "event", "text"], lines);
      // Marks the events within the span itself.
      events.forEach((one, line) => table.tBodies[0]!.rows[line]!.classList.toggle("within", one.at >= from && one.at <= to));
      place.replaceChildren(events.length > 0 ? table : el("p", { class: "note" }, "This page has no events around it."));
    },
    (error: unknown) => place.replaceChildren(el("p", { class: "note" }, `Events are not available: ${error instanceof Error ? error.message : String(error)}`)),
  );
  return place;
}
