// Finds spans by reason, thread, state, lane, or the detail of an exit: MSR, port, address.

import { isPaired, type EachExit } from "../../data/each_exit";
import { MERGED } from "../../data/lane";
import type { Report } from "../../data/report";
import type { LaneRow } from "./rows";
import { laneTitle } from "./words";

export interface Match {
  row: LaneRow;
  at: number;
}

export class Search {
  private readonly labels: Set<number>;
  private readonly states: Set<number>;
  private readonly lanes: Set<LaneRow>;
  /** By lane, begin and end of the matching exits, in order of time. */
  readonly about: Map<LaneRow, { from: Float64Array; to: Float64Array }>;
  private readonly guests: Set<number>;
  readonly empty: boolean;

  constructor(
    report: Report,
    private readonly rows: LaneRow[],
    words: string,
    lists: EachExit[] = [],
  ) {
    const wanted = words.trim().toLowerCase();
    this.empty = wanted === "";
    const matching = (texts: string[]) => new Set(texts.flatMap((text, at) => (text.toLowerCase().includes(wanted) ? [at] : [])));
    this.labels = this.empty ? new Set() : matching(report.timeline.labels);
    this.states = this.empty ? new Set() : matching(report.timeline.states.map((state) => state.title));
    const named = ({ info }: LaneRow) => `${info.machine} ${laneTitle(info)}`.toLowerCase().includes(wanted);
    this.lanes = new Set(this.empty ? [] : rows.filter(named));
    this.about = this.empty ? new Map() : exitsAbout(rows, lists, matching);
    this.guests = new Set(report.timeline.states.flatMap(({ key }, at) => (key.includes("guest") ? [at] : [])));
  }

  private matches(row: LaneRow, at: number): boolean {
    const lane = row.lane!;
    const state = lane.state[at]!;
    if (state === MERGED) return false;
    return this.labels.has(lane.label[at]!) || this.states.has(state) || this.lanes.has(row) || this.isOfExit(row, at, state);
  }

  /** Whether a span is part of a matching exit. */
  private isOfExit(row: LaneRow, at: number, state: number): boolean {
    const exits = this.about.get(row);
    if (!exits || this.guests.has(state)) return false;
    const [from, to] = [row.lane!.from[at]!, row.lane!.to[at]!];
    let [low, high] = [0, exits.from.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (exits.to[middle]! <= from) low = middle + 1;
      else high = middle;
    }
    return low < exits.from.length && exits.from[low]! < to;
  }

  /** Spans that match, over all lanes. */
  count(): number {
    let sum = 0;
    if (this.labels.size + this.states.size + this.lanes.size + this.about.size === 0) return 0;
    for (const row of this.rows) {
      for (let at = 0; at < (row.lane?.count ?? 0); at++) if (this.matches(row, at)) sum++;
    }
    return sum;
  }

  /** The rank of a span among all matches, by time and then by lane; null: it is no match. */
  rank(of: Match): number | null {
    if (!this.matches(of.row, of.at)) return null;
    const [start, order] = [of.row.lane!.from[of.at]!, this.rows.indexOf(of.row)];
    let rank = 0;
    this.rows.forEach((row, place) => {
      const { lane } = row;
      if (!lane) return;
      const until = lane.begunBy(start);
      for (let at = 0; at < until; at++) {
        if (!this.matches(row, at)) continue;
        if (lane.from[at]! < start || (place === order ? at <= of.at : place < order)) rank++;
      }
    });
    return rank;
  }

  /** The next (or previous) match after a span, by time and then by lane. */
  next(after: Match | null, from: number, forward: boolean): Match | null {
    const start = after ? after.row.lane!.from[after.at]! : from;
    const order = after ? this.rows.indexOf(after.row) : forward ? -1 : this.rows.length;
    let best: Match | null = null;
    this.rows.forEach((row, place) => {
      const found = this.nextIn(row, start, forward, forward ? place > order : place < order);
      if (found === null) return;
      const [time, known] = [row.lane!.from[found]!, best && best.row.lane!.from[best.at]!];
      const nearer = known === null || (forward ? time < known : time >= known);
      if (nearer) best = { row, at: found };
    });
    return best;
  }

  private nextIn(row: LaneRow, start: number, forward: boolean, same: boolean): number | null {
    const { lane } = row;
    if (!lane) return null;
    const begun = lane.begunBy(start);
    if (forward) {
      const first = same && begun > 0 && lane.from[begun - 1] === start ? begun - 1 : begun;
      for (let at = first; at < lane.count; at++) if (this.matches(row, at)) return at;
      return null;
    }
    const isAt = begun > 0 && lane.from[begun - 1] === start;
    for (let at = begun - 1 - (isAt && !same ? 1 : 0); at >= 0; at--) if (this.matches(row, at)) return at;
    return null;
  }
}

/** Exits, by the lane of their vCPU, whose arguments or guest positions match. */
function exitsAbout(rows: LaneRow[], lists: EachExit[], matching: (texts: string[]) => Set<number>): Search["about"] {
  const found = new Map<LaneRow, [number, number][]>();
  for (const list of lists) {
    const values = matching(list.info.values);
    if (values.size === 0) continue;
    list.info.groups.forEach((group, of) => {
      const row = rows.find(({ info }) => info.kind === "vcpu" && info.vm === group.vm && info.name === `vCPU ${group.vcpu}`);
      if (!row) return;
      const all = found.get(row) ?? [];
      for (let at = list.begins[of]!; at < list.begins[of + 1]!; at++) {
        if (!isPaired(list, at) || (!values.has(list.about[at]! - 1) && !values.has(list.pc[at]! - 1))) continue;
        all.push([list.start[at]!, list.start[at]! + list.length[at]!]);
      }
      if (all.length > 0) found.set(row, all);
    });
  }
  const columns = (all: [number, number][]) => {
    all.sort((a, b) => a[0] - b[0]);
    return { from: Float64Array.from(all, ([from]) => from), to: Float64Array.from(all, ([, to]) => to) };
  };
  return new Map([...found].map(([row, all]) => [row, columns(all)]));
}
