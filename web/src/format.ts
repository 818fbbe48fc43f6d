// Formats numbers for readers. A value that was not recorded is never a number.

import type { Known } from "./data/report";

/** Stands for a value that was not recorded. */
export const NOT_RECORDED = "–";

const STEPS: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "us"],
];

function threeDigits(value: number): string {
  if (value < 9.995) return value.toFixed(2);
  if (value < 99.95) return value.toFixed(1);
  return value.toFixed(0);
}

/** A count with separated thousands. */
export function count(value: Known): string {
  return value === null ? NOT_RECORDED : Math.round(value).toLocaleString("en-US");
}

/** A duration with three digits and its unit; ticks if there are no nanoseconds. */
export function time(value: Known, nanoseconds = true): string {
  if (value === null) return NOT_RECORDED;
  if (!nanoseconds) return count(value);
  const size = Math.abs(value);
  for (const [step, unit] of STEPS) {
    if (size >= step) return `${value < 0 ? "-" : ""}${threeDigits(size / step)} ${unit}`;
  }
  return `${Math.round(value)} ns`;
}

/** A share of a total in percent. */
export function share(part: Known, whole: Known, digits = 2): string {
  return part === null || !whole ? NOT_RECORDED : `${((part * 100) / whole).toFixed(digits)}%`;
}

/** A value in its metric's unit. */
export function measured(metric: string, value: Known): string {
  if (metric.endsWith("_ns_per_s")) return share(value, value === null ? null : 1e9);
  if (metric.includes("_ns")) return time(value);
  if (metric.includes("share")) return share(value, value === null ? null : 1);
  if (value !== null && Math.abs(value) < 100) return value.toFixed(2);
  return count(value);
}

/** A number with a factor's sign. */
export function factor(value: Known): string {
  return value === null ? NOT_RECORDED : `${value.toFixed(2)}×`;
}

/** A timestamp on the recording's clock in seconds, to the nanosecond. `offset` is from the origin. */
export function timestamp(origin: string, offset: number, nanoseconds = true): string {
  const at = BigInt(origin) + BigInt(Math.round(offset));
  if (!nanoseconds) return at.toString();
  const digits = at.toString().padStart(10, "0");
  return `${digits.slice(0, -9)}.${digits.slice(-9)} s`;
}

/** A step for an axis: 1, 2 or 5 times a power of ten, at least `least`. */
export function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  for (const times of [1, 2, 5]) if (power * times >= least * 0.9999999) return power * times;
  return power * 10;
}

/** A label of an axis with this `step`: no more digits than are needed to distinguish labels. */
export function axisTime(value: number, step: number, nanoseconds = true): string {
  if (!nanoseconds) return count(value);
  const [scale, unit] = STEPS.find(([size]) => step >= size || Math.abs(value) >= size * 1000) ?? [1, "ns"];
  const digits = Math.max(0, -Math.floor(Math.log10(step / scale) + 1e-9));
  return `${(value / scale).toFixed(Math.min(digits, 9))} ${unit}`;
}
