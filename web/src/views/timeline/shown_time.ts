// The shown time, with animated changes.

import { between, within, type Range } from "./range";

/** Duration of an animated zoom. */
const ZOOM_MS = 130;

export class ShownTime {
  private way: { from: Range; to: Range; begun: number } | null = null;

  constructor(
    readonly whole: Range,
    private range: Range,
  ) {}

  get now(): Range {
    return this.range;
  }

  /** The end of a zoom in progress: consecutive key presses add up. */
  get target(): Range {
    return this.way?.to ?? this.range;
  }

  get isWhole(): boolean {
    return this.target.from <= this.whole.from && this.target.to >= this.whole.to;
  }

  get isOnItsWay(): boolean {
    return this.way !== null;
  }

  /** Goes there, within the recording: immediately, or in many steps unless the reader prefers no motion. */
  goTo(range: Range, smoothly: boolean): void {
    const to = within(range, this.whole);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.way = smoothly && !still ? { from: this.range, to, begun: performance.now() } : null;
    if (!this.way) this.range = to;
  }

  /** Takes the next step, if any. */
  step(now: number): boolean {
    if (!this.way) return false;
    const share = Math.min(1, (now - this.way.begun) / ZOOM_MS);
    this.range = between(this.way.from, this.way.to, 1 - (1 - share) ** 3);
    if (share >= 1) this.way = null;
    return true;
  }

  /** The time in an address, limited to the recording. */
  fromAddress(range: Range | null): Range | null {
    if (!range || range.from >= this.whole.to) return null;
    return within({ from: range.from, to: Math.min(range.to, this.whole.to) }, this.whole);
  }
}
