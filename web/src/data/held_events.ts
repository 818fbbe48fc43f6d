// Events that a page holds without its recording: exits and entries, switches of threads on CPUs, wake-ups and
// injections. Each source is in order of time; a list merges them.

import type { Arrows } from "./arrows";
import { firstFrom, isPaired, type EachExit } from "./each_exit";
import { MERGED } from "./lane";
import type { Report } from "./report";
import type { LaneRow } from "../views/timeline/rows";
import { laneTitle } from "../views/timeline/words";
import type { Span } from "../view";

/** A line of a list of events. */
export interface EventLine {
  at: number;
  /** Its place: machine and CPU, or vCPU. */
  where: string;
  thread: string;
  name: string;
  text: string;
  /** Whether events were lost here. */
  lost: boolean;
}

/** The held events. */
export interface Held {
  report: Report;
  rows: LaneRow[];
  lists: EachExit[];
  arrows: Arrows | null;
}

interface Found {
  at: number;
  line: () => EventLine;
}

/** Collects matches: counts all, keeps the first of each kind of source. */
class Taken {
  matching = 0;
  readonly found: Found[] = [];

  constructor(private readonly limit: number) {}

  source(): (at: number, line: () => EventLine) => void {
    let kept = 0;
    return (at, line) => {
      this.matching++;
      if (kept++ < this.limit) this.found.push({ at, line });
    };
  }

  first(): EventLine[] {
    return this.found
      .sort((a, b) => a.at - b.at)
      .slice(0, this.limit)
      .map(({ line }) => line());
  }
}

/** Whether the texts together contain all words: texts shared by many events are tested once. */
function hasAll(words: string[], ...texts: string[]): boolean {
  const all = texts.join(" ").toLowerCase();
  return words.every((word) => all.includes(word));
}

export function heldEvents(held: Held, range: Span, filter: string, limit: number): { events: EventLine[]; matching: number } {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const taken = new Taken(limit);
  for (const list of held.lists) exitsAndEntries(list, range, words, taken);
  for (const row of held.rows) if (row.info.kind === "cpu") switches(held.report, row, range, words, taken);
  if (held.arrows) wakeUps(held.report, held.arrows, range, words, taken);
  return { events: taken.first(), matching: taken.matching };
}

function exitsAndEntries(list: EachExit, range: Span, words: string[], taken: Taken): void {
  const value = (place: number) => (place === 0 ? "" : (list.info.values[place - 1] ?? ""));
  list.info.groups.forEach((group, of) => {
    const where = `${group.vm} vCPU ${group.vcpu}`;
    const [exit, entry] = [taken.source(), taken.source()];
    const [isEntry, known] = [hasAll(words, where, "entry"), new Map<number, boolean>()];
    const wanted = (at: number): boolean => {
      const key = list.about[at]! * 65_536 + list.pc[at]!;
      const before = known.get(key);
      if (before !== undefined) return before;
      const is = hasAll(words, where, "exit", group.reason, value(list.about[at]!), value(list.pc[at]!), group.level > 1 ? `level ${group.level}` : "");
      known.set(key, is);
      return is;
    };
    // An entry in the interval may belong to an earlier exit.
    for (let at = Math.max(list.begins[of]!, firstFrom(list, of, range.from) - 1); at < list.begins[of + 1]!; at++) {
      const [start, end] = [list.start[at]!, list.start[at]! + list.length[at]!];
      if (start > range.to) break;
      if (start >= range.from && wanted(at)) {
        const text = [`reason ${group.reason}`, value(list.about[at]!), value(list.pc[at]!) && `the guest at ${value(list.pc[at]!)}`, group.level > 1 ? `level ${group.level}` : ""];
        exit(start, () => ({ at: start, where, thread: "", name: "exit", text: text.filter(Boolean).join(", "), lost: false }));
      }
      if (isEntry && isPaired(list, at) && end >= range.from && end <= range.to) entry(end, () => ({ at: end, where, thread: "", name: "entry", text: "", lost: false }));
    }
  });
}

function switches(report: Report, { info, lane }: LaneRow, range: Span, words: string[], taken: Taken): void {
  if (!lane) return;
  const where = laneTitle(info);
  const known = new Map<number, boolean>();
  const take = taken.source();
  for (let at = lane.begunBy(range.from - 1); at < lane.count && lane.from[at]! <= range.to; at++) {
    if (lane.state[at] === MERGED) continue;
    const label = lane.label[at]!;
    const name = report.timeline.labels[label] ?? "";
    if (!known.has(label)) known.set(label, hasAll(words, where, "switch", name));
    const start = lane.from[at]!;
    if (known.get(label)) take(start, () => ({ at: start, where, thread: name, name: "switch", text: `to ${name || "a thread"}`, lost: false }));
  }
}

function wakeUps(report: Report, arrows: Arrows, range: Span, words: string[], taken: Taken): void {
  const { lanes } = report.timeline;
  const take = taken.source();
  for (let place = 0; place < arrows.count; place++) {
    const at = arrows.to[place]!;
    if (at < range.from || at > range.to) continue;
    const [from, to] = [lanes[arrows.fromLane[place]!], lanes[arrows.toLane[place]!]];
    const name = arrows.kinds[arrows.kind[place]!] ?? "";
    if (!from || !to) continue;
    const [whence, where] = [laneTitle(from), laneTitle(to)];
    if (hasAll(words, name, whence, where)) take(at, () => ({ at, where, thread: "", name, text: `from ${whence}`, lost: false }));
  }
}
