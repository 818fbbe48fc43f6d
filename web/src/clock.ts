// Timestamps in the reader's chosen form, the same everywhere: since the beginning, or on the
// recording's clock.

import { axisTime, count, timestamp } from "./format";

/** The facts of a report that timestamps need. */
export interface ClockOf {
  origin: string;
  length_ns: number;
  nanoseconds: boolean;
}

export type ClockMode = "relative" | "absolute";

let mode: ClockMode = "relative";

export function clockMode(): ClockMode {
  return mode;
}

/** Figures redraw at this event. */
export function setClockMode(wanted: ClockMode): void {
  if (wanted === mode) return;
  mode = wanted;
  globalThis.dispatchEvent?.(new Event("hyperscope:clock"));
}

/** A timestamp to the nanosecond; since the beginning, it has a plus sign. */
export function timestampOf(report: ClockOf, offset: number): string {
  if (mode === "absolute") return timestamp(report.origin, offset, report.nanoseconds);
  return report.nanoseconds ? `+${timestamp("0", offset)}` : `+${count(offset)}`;
}

/** The first label of an axis that begins at `from`: a round number on the shown clock. */
export function firstStep(report: ClockOf, from: number, step: number): number {
  const past = mode === "absolute" && step >= 1 ? Number(BigInt(report.origin) % BigInt(Math.round(step))) : 0;
  return Math.ceil((from + past) / step) * step - past;
}

/** A label of an axis, with no more digits than are needed to distinguish labels. */
export function axisLabel(report: ClockOf, at: number, step: number): string {
  if (mode === "relative") return axisTime(at, step, report.nanoseconds);
  const whole = timestamp(report.origin, at, report.nanoseconds);
  if (!report.nanoseconds) return whole;
  const digits = Math.min(9, Math.max(0, 9 - Math.floor(Math.log10(step) + 1e-9)));
  const seconds = whole.slice(0, -2);
  return `${digits === 0 ? seconds.slice(0, -10) : seconds.slice(0, seconds.length - 9 + digits)} s`;
}

const UNITS: Record<string, number> = { s: 9, ms: 6, us: 3, ns: 0 };

/**
 * The offset of a timestamp such as `1.5 ms`, `+0.25 s` or `12345.678901:`; null: it is no timestamp of this recording.
 * With a plus sign it is since the beginning. Otherwise, a value that fits only one clock is on that one; a value that
 * fits both is on the shown clock.
 */
export function readTimestamp(report: ClockOf, words: string): number | null {
  const [, plus, whole, part, unit] = /^(\+?)(\d{1,18})(?:\.(\d{1,9}))?:?\s*(s|ms|us|ns)?$/.exec(words.trim()) ?? [];
  if (whole === undefined || !report.nanoseconds) return null;
  if (unit === undefined && part === undefined && !plus) return null;
  const power = UNITS[unit ?? "s"] ?? 9;
  const ns = BigInt(whole) * 10n ** BigInt(power) + BigInt((part ?? "").padEnd(power, "0").slice(0, power) || "0");
  const within = (offset: bigint) => (offset >= 0n && offset <= BigInt(Math.ceil(report.length_ns)) ? Number(offset) : null);
  const [since, on] = [within(ns), plus ? null : within(ns - BigInt(report.origin))];
  return mode === "absolute" ? (on ?? since) : (since ?? on);
}
