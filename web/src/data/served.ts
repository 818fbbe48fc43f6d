// Requests of a served page to its recordings: events, and lanes in more detail than the page holds.

import { columnsIn } from "./columns";
import { readLane, type Lane } from "./lane";
import type { LaneInfo } from "./report";
import type { Span } from "../view";

/** An event as `hyperscope events` prints it. */
export interface RecordedEvent {
  /** Relative to the page's origin. */
  at: number;
  machine: string;
  cpu: number;
  pid?: number;
  comm?: string | null;
  event?: string;
  text?: string;
  fields?: unknown;
  /** Instead of an event: the number of events lost here; null: not counted. */
  lost?: number | null;
}

export interface EventsAnswer {
  events: RecordedEvent[];
  matching: number;
  looked_at: number;
  /** Whether the complete interval was searched. */
  all: boolean;
}

export interface LanesAnswer {
  mergedBelow: number;
  labels: string[];
  lanes: { info: LaneInfo; lane: Lane }[];
}

async function answer(name: string, parameters: Record<string, string>, signal?: AbortSignal): Promise<Response> {
  const got = await fetch(`${name}?${new URLSearchParams(parameters)}`, { signal: signal ?? null, cache: "no-store" });
  if (!got.ok) throw new Error((await got.text()).trim());
  return got;
}

const within = ({ from, to }: Span) => ({ from: String(Math.max(0, Math.floor(from))), to: String(Math.max(0, Math.ceil(to))) });

export async function askEvents(range: Span, words: string, limit: number, signal?: AbortSignal): Promise<EventsAnswer> {
  const got = await answer("events", { ...within(range), words, limit: String(limit) }, signal);
  return (await got.json()) as EventsAnswer;
}

export async function askLanes(range: Span, signal?: AbortSignal): Promise<LanesAnswer> {
  const got = await answer("lanes", within(range), signal);
  // The same elements as in a page; parsing a document executes nothing.
  const page = new DOMParser().parseFromString(await got.text(), "text/html");
  const { timeline } = JSON.parse(page.getElementById("hyperscope-lanes")?.textContent ?? "{}") as { timeline: { merged_below_ns: number; labels: string[]; lanes: LaneInfo[] } };
  const lanes = [];
  for (const info of timeline.lanes) lanes.push({ info, lane: readLane(await columnsIn(page, info.columns_in), info.spans) });
  return { mergedBelow: timeline.merged_below_ns, labels: timeline.labels, lanes };
}
