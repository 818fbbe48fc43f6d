// One clock for all: what the axis and the tooltip say, the search understands.

import { afterEach, expect, test } from "vitest";
import { axisLabel, firstStep, timestampOf, readTimestamp, setClockMode } from "../src/clock";

const REPORT = { origin: "12345678901234", length_ns: 6e9, nanoseconds: true };

afterEach(() => setClockMode("relative"));

test.each(["relative", "absolute"] as const)("timestamps of the %s clock are understood as they are shown", (mode) => {
  setClockMode(mode);
  for (const offset of [0, 1, 999, 1_234_567, 5_999_999_999]) expect(readTimestamp(REPORT, timestampOf(REPORT, offset))).toBe(offset);
});

test("the clocks are not confused", () => {
  expect(timestampOf(REPORT, 1_500)).toBe("+0.000001500 s");
  setClockMode("absolute");
  expect(timestampOf(REPORT, 1_500)).toBe("12345.678902734 s");
});

test("what people write is found on either clock", () => {
  expect(readTimestamp(REPORT, "1.5 ms")).toBe(1_500_000);
  expect(readTimestamp(REPORT, "+2")).toBe(2e9);
  expect(readTimestamp(REPORT, "12345.678902:")).toBe(766);
  expect(readTimestamp(REPORT, "250us")).toBe(250_000);
  for (const words of ["npf", "0", "7 s", "12344.5", "1.5.2", "", "+", "1e3 s", "-1 ms", "99999999999999999999"]) expect(readTimestamp(REPORT, words)).toBeNull();
});

test("what fits both clocks is of the one shown", () => {
  const both = { origin: "1000000000", length_ns: 5e9, nanoseconds: true };
  expect(readTimestamp(both, "2.5 s")).toBe(2.5e9);
  setClockMode("absolute");
  expect(readTimestamp(both, "2.5 s")).toBe(1.5e9);
  expect(readTimestamp(both, "+2.5 s")).toBe(2.5e9);
});

test("labels of the axis are round on the clock shown", () => {
  setClockMode("absolute");
  const step = 500_000_000;
  const at = firstStep(REPORT, 0, step);
  expect(axisLabel(REPORT, at, step)).toBe("12346.0 s");
  expect(axisLabel(REPORT, firstStep(REPORT, 0, 1e9), 1e9)).toBe("12346 s");
  expect(axisLabel(REPORT, firstStep(REPORT, 0, 10), 10)).toBe("12345.67890124 s");
  setClockMode("relative");
  expect(firstStep(REPORT, 1, step)).toBe(step);
});
