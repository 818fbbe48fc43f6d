// Events of an interval: from the recording if the page is served, otherwise those that the page
// holds.

import { heldEvents, type EventLine, type Held } from "./held_events";
import { askEvents, type RecordedEvent } from "./served";
import type { Span } from "../view";

export interface FoundEvents {
  events: EventLine[];
  matching: number;
  /** Only a part of the interval was searched: there may be more. */
  more: boolean;
}

function lineOf({ at, machine, cpu, pid, comm, event, text, fields, lost }: RecordedEvent): EventLine {
  const where = `${machine} CPU ${cpu}`;
  if (lost !== undefined) return { at, where, thread: "", name: "lost", text: lost === null ? "events, not counted" : `${lost} events`, lost: true };
  const name = (event ?? "").replace(/^[^:]*:/, "");
  return { at, where, thread: `${comm ?? "?"}-${pid}`, name, text: text ?? (fields ? JSON.stringify(fields) : ""), lost: false };
}

export async function eventsWithin(held: Held, range: Span, words: string, limit: number, signal?: AbortSignal): Promise<FoundEvents> {
  if (!held.report.served) return { ...heldEvents(held, range, words, limit), more: false };
  const found = await askEvents(range, words, limit, signal);
  return { events: found.events.map(lineOf), matching: found.matching, more: !found.all };
}
