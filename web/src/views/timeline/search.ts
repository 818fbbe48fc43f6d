// Finds spans by what they are about: reason, thread, state or lane.

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
  readonly empty: boolean;

  constructor(
    report: Report,
    private readonly rows: LaneRow[],
    words: string,
  ) {
    const wanted = words.trim().toLowerCase();
    this.empty = wanted === "";
    const matching = (texts: string[]) => new Set(texts.flatMap((text, at) => (text.toLowerCase().includes(wanted) ? [at] : [])));
    this.labels = this.empty ? new Set() : matching(report.timeline.labels);
    this.states = this.empty ? new Set() : matching(report.timeline.states.map((state) => state.title));
    const named = ({ info }: LaneRow) => `${info.machine} ${laneTitle(info)}`.toLowerCase().includes(wanted);
    this.lanes = new Set(this.empty ? [] : rows.filter(named));
  }

  private matches(row: LaneRow, at: number): boolean {
    const lane = row.lane!;
    const state = lane.state[at]!;
    return state !== MERGED && (this.labels.has(lane.label[at]!) || this.states.has(state) || this.lanes.has(row));
  }

  /** Spans that match, over all lanes. */
  count(): number {
    let sum = 0;
    if (this.labels.size + this.states.size + this.lanes.size === 0) return 0;
    for (const row of this.rows) {
      for (let at = 0; at < (row.lane?.count ?? 0); at++) if (this.matches(row, at)) sum++;
    }
    return sum;
  }

  /** Which of all matches, by time and then from lane to lane, a span is; null: it is none. */
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

  /** The match that begins next after a span (or before it), by time and then from lane to lane. */
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
