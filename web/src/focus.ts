// What the reader looks at: the VM, level and reason that all figures are narrowed to.

import type { Report } from "./data/report";
import type { ViewStore } from "./view";

export interface Focus {
  vm: string | null;
  level: number | null;
  reason: string | null;
}

export const EVERYTHING: Focus = { vm: null, level: null, reason: null };

export function inFocus(focus: Focus, what: { vm: string | null; level: number | null; reason: string | null }): boolean {
  return (
    (focus.vm === null || focus.vm === what.vm) &&
    (focus.level === null || focus.level === what.level) &&
    (focus.reason === null || focus.reason === what.reason)
  );
}

/** A focus that an address names, if the report has it. */
export function knownFocus(report: Report, focus: Focus): Focus {
  return report.exits.rows.some((row) => inFocus(focus, row)) ? focus : EVERYTHING;
}

export function describe(focus: Focus): string {
  const parts = [focus.vm, focus.level === null ? null : `level ${focus.level}`, focus.reason];
  return parts.filter((part) => part !== null).join(" · ");
}

/** The focus, and who wants to hear of it. */
export class FocusStore {
  private current = EVERYTHING;
  private readonly listeners: ((focus: Focus) => void)[] = [];

  get value(): Focus {
    return this.current;
  }

  set(focus: Focus): void {
    this.current = focus;
    for (const listener of this.listeners) listener(focus);
  }

  /** Calls `listener` now and at every change. */
  follow(listener: (focus: Focus) => void): void {
    this.listeners.push(listener);
    listener(this.current);
  }
}

/** What views share. */
export interface Context {
  report: Report;
  focus: FocusStore;
  /** What the reader looks at, as the page's address keeps it. */
  view: ViewStore;
  /** Shows a stretch of time in the timeline. */
  showTime: (from: number, to: number) => void;
  /** Finds what begins next in the timeline and has these words. */
  findInTimeline: (words: string) => void;
  /** Shows in the drawer what is selected; without a selection, all of the recording. */
  inspect: () => void;
  /** Selects a stretch of time in the timeline, and shows it with what is around it. */
  selectTime: (from: number, to: number) => void;
  /** Draws a request in the timeline, as `PATH.KIND`, or a wait, as `PLACE.wait`. */
  showRequest: (name: string) => void;
  /** Shows a function of the code that ran between its callers and callees. */
  openFunction: (key: string) => void;
  /** Takes the selection of the timeline back. */
  deselect: () => void;
  /** Says something to readers who don't see it. */
  announce: (words: string) => void;
}
