// Loads more detail of the shown time from the recording, if the page is served: merged spans are replaced by the
// recorded ones.

import { hasMerged, withDetail } from "../../data/deeper";
import type { Lane } from "../../data/lane";
import type { LaneInfo } from "../../data/report";
import { askLanes, type LanesAnswer } from "../../data/served";
import type { Context } from "../../focus";
import { moved, type Range } from "./range";
import type { LaneRow } from "./rows";

/** Delay after the last movement before more is requested. */
const WAIT_MS = 200;

export interface DeepenActions {
  rows: () => { all: LaneRow[]; open: LaneRow[] };
  /** Lanes change while `apply` runs. */
  change: (apply: () => void) => void;
  /** A message for the reader: the progress, or an error. */
  say: (words: string) => void;
}

const keyOf = ({ machine, kind, name, vm, depth }: LaneInfo) => JSON.stringify([machine, kind, name, vm, depth]);

export class Deepening {
  /** Lanes as stored in the page. */
  private readonly held = new Map<LaneRow, Lane>();
  private loaded: Range | null = null;
  private asked: AbortController | null = null;
  private timer = 0;

  constructor(
    private readonly context: Context,
    private readonly actions: DeepenActions,
  ) {}

  follow(range: Range): void {
    if (!this.context.report.served || this.context.report.timeline.merged_below_ns === 0) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(range), WAIT_MS) as unknown as number;
  }

  private async ask(range: Range): Promise<void> {
    const isLoaded = this.loaded && this.loaded.from <= range.from && range.to <= this.loaded.to;
    // Spans loaded for a wider interval may have been merged again.
    const isMerged = this.actions.rows().open.some(({ lane }) => lane && hasMerged(lane, range));
    if (!isMerged || (isLoaded && this.loaded!.to - this.loaded!.from <= 2.5 * (range.to - range.from))) return;
    this.asked?.abort();
    const asked = new AbortController();
    this.asked = asked;
    const whole = { from: 0, to: this.context.report.length_ns };
    const length = range.to - range.from;
    const wide = moved({ from: range.from - length / 2, to: range.to + length / 2 }, 0, whole);
    this.actions.say("Loading this part from the recording …");
    try {
      const answer = await askLanes(wide, asked.signal);
      if (asked.signal.aborted) return;
      this.actions.change(() => this.take(answer, wide));
      this.loaded = wide;
      this.actions.say("");
    } catch (error) {
      if (!asked.signal.aborted) this.actions.say(`Not loaded from the recording: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  private take({ lanes, labels }: LanesAnswer, interval: Range): void {
    const deeper = new Map(lanes.map(({ info, lane }) => [keyOf(info), lane]));
    const numbers = this.numbersOf(labels);
    for (const row of this.actions.rows().all) {
      if (!row.lane) continue;
      const held = this.held.get(row) ?? row.lane;
      this.held.set(row, held);
      const lane = deeper.get(keyOf(row.info));
      row.lane = lane ? withDetail(held, lane, interval, (label) => numbers[label] ?? 0) : held;
    }
  }

  /** The page's numbers of labels; adds new ones. */
  private numbersOf(labels: string[]): number[] {
    const own = this.context.report.timeline.labels;
    const known = new Map(own.map((label, at) => [label, at]));
    return labels.map((label) => {
      const at = known.get(label);
      if (at !== undefined) return at;
      known.set(label, own.push(label) - 1);
      return own.length - 1;
    });
  }
}
