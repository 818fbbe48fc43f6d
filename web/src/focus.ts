// The focus: the VM, level and reason to which all figures are limited.

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

/** A focus from an address, if the report has it. */
export function knownFocus(report: Report, focus: Focus): Focus {
  return report.exits.rows.some((row) => inFocus(focus, row)) ? focus : EVERYTHING;
}

export function describe(focus: Focus): string {
  const parts = [focus.vm, focus.level === null ? null : `level ${focus.level}`, focus.reason];
  return parts.filter((part) => part !== null).join(" · ");
}

/** The focus, and its listeners. */
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

/** Shared by all views. */
export interface Context {
  report: Report;
  focus: FocusStore;
  /** The reader's view, kept in the page's address. */
  view: ViewStore;
  /** Shows an interval in the timeline. */
  showTime: (from: number, to: number) => void;
  /** Finds the next span in the timeline that matches these words. */
  findInTimeline: (words: string) => void;
  /** Shows the selection in the drawer; without a selection, the complete recording. */
  inspect: () => void;
  /** Selects an interval in the timeline, and shows it with its surroundings. */
  selectTime: (from: number, to: number) => void;
  /** Draws a request in the timeline, as `PATH.KIND`, or a wait, as `PLACE.wait`. */
  showRequest: (name: string) => void;
  /** Shows a function of the code that ran between its callers and callees. */
  openFunction: (key: string) => void;
  /** Clears the selection of the timeline. */
  deselect: () => void;
  /** Announces a text to screen readers. */
  announce: (words: string) => void;
}
