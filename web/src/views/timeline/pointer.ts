// Pointer input of the timeline: a drag selects or moves, a wheel zooms, a click opens a span.

import type { Report } from "../../data/report";
import { hideTooltip, showTooltip } from "../../tooltip";
import { moved, zoomed, type Range } from "./range";
import type { LaneRow } from "./rows";
import type { Match } from "./search";
import { describeAt } from "./words";

/** The elements under the pointer, and its actions. */
export interface Pointed {
  report: Report;
  whole: Range;
  shown: () => Range;
  /** The lanes of unfolded groups. */
  rows: () => LaneRow[];
  /** The scroll position of the lanes. */
  scrolled: () => number;
  show: (range: Range) => void;
  select: (range: Range) => void;
  open: (match: Match | null) => void;
  zoomToSpan: (match: Match) => void;
  /** The pointer is at that time, or has left. */
  follow: (at: number | null) => void;
}

export class Pointer {
  /** The canvas of the lanes, which does not scroll with them, comes first in `area`. */
  constructor(
    private readonly area: HTMLElement,
    private readonly of: Pointed,
  ) {
    area.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    area.addEventListener("pointerdown", (event) => this.press(event));
    area.addEventListener("pointermove", (event) => this.hover(event));
    area.addEventListener("pointerleave", () => this.leave());
    area.addEventListener("dblclick", (event) => this.zoomTo(event));
  }

  private timeAt(event: MouseEvent): number {
    const box = this.area.getBoundingClientRect();
    const { from, to } = this.of.shown();
    return from + ((event.clientX - box.left) / box.width) * (to - from);
  }

  private rowAt(event: MouseEvent): LaneRow | null {
    const y = event.clientY - this.area.firstElementChild!.getBoundingClientRect().top + this.of.scrolled();
    return this.of.rows().find((row) => y >= row.y && y < row.y + row.height) ?? null;
  }

  private spanAt(event: MouseEvent): Match | null {
    const row = this.rowAt(event);
    const at = row?.lane?.at(this.timeAt(event)) ?? null;
    return row && at !== null ? { row, at } : null;
  }

  private wheel(event: WheelEvent): void {
    const zoom = event.ctrlKey || event.metaKey;
    const by = event.deltaX !== 0 ? event.deltaX : event.shiftKey ? event.deltaY : 0;
    if (!zoom && by === 0) return;
    event.preventDefault();
    const { whole, show } = this.of;
    const shown = this.of.shown();
    if (zoom) show(zoomed(shown, 1.0018 ** event.deltaY, this.timeAt(event), whole));
    else show(moved(shown, (by / this.area.clientWidth) * (shown.to - shown.from), whole));
  }

  /** A drag selects; with a finger, the middle button or Shift it moves. */
  private press(event: PointerEvent): void {
    if (event.button > 1) return;
    const { area, of } = this;
    area.focus({ preventScroll: true });
    area.setPointerCapture(event.pointerId);
    const [begun, x, shown] = [this.timeAt(event), event.clientX, of.shown()];
    const moves = event.pointerType === "touch" || event.button === 1 || event.shiftKey;
    let dragged = false;
    const drag = (now: PointerEvent) => {
      dragged ||= Math.abs(now.clientX - x) > 3;
      if (!dragged) return;
      if (moves) return of.show(moved(shown, ((x - now.clientX) / area.clientWidth) * (shown.to - shown.from), of.whole));
      const other = this.timeAt(now);
      of.select({ from: Math.max(0, Math.min(begun, other)), to: Math.min(of.whole.to, Math.max(begun, other)) });
    };
    const end = () => {
      area.removeEventListener("pointermove", drag);
      area.removeEventListener("pointerup", end);
      area.removeEventListener("pointercancel", end);
      if (!dragged) of.open(this.spanAt(event));
    };
    area.addEventListener("pointermove", drag);
    area.addEventListener("pointerup", end);
    area.addEventListener("pointercancel", end);
  }

  private hover(event: PointerEvent): void {
    const at = this.timeAt(event);
    this.of.follow(at);
    const row = this.rowAt(event);
    if (!row?.lane || event.buttons > 0) return hideTooltip();
    const { from, to } = this.of.shown();
    showTooltip(event.clientX, event.clientY, describeAt(this.of.report, row, at, (to - from) / this.area.clientWidth));
  }

  private leave(): void {
    this.of.follow(null);
    hideTooltip();
  }

  private zoomTo(event: MouseEvent): void {
    const match = this.spanAt(event);
    if (match) this.of.zoomToSpan(match);
  }
}
