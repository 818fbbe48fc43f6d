// Numbers are shown as the command line shows them, and what was not recorded is no number.

import { expect, test } from "vitest";
import { axisTime, count, factor, timestamp, niceStep, share, time } from "../src/format";

test("durations keep three digits", () => {
  expect([999, 1000, 12345, 999_499, 8_942_000_000, -1500].map((value) => time(value))).toEqual([
    "999 ns", "1.00 us", "12.3 us", "999 us", "8.94 s", "-1.50 us",
  ]);
  expect(time(123456, false)).toBe("123,456");
});

test("what was not recorded is not zero", () => {
  expect([time(null), count(null), share(null, 5), share(5, null), share(5, 0), factor(null)]).toEqual(Array(6).fill("–"));
  expect([time(0), count(0), share(0, 5)]).toEqual(["0 ns", "0", "0.00%"]);
});

test("moments are exact past what a double holds", () => {
  expect(timestamp("9007199254740993", 0)).toBe("9007199.254740993 s");
  expect(timestamp("5", 10)).toBe("0.000000015 s");
  expect(timestamp("5", 10, false)).toBe("15");
});

test("steps of an axis are 1, 2 or 5 times a power of ten, and never too small", () => {
  for (let least = 0.3; least < 1e12; least *= 1.37) {
    const step = niceStep(least);
    expect(step).toBeGreaterThanOrEqual(least * 0.999);
    expect(step).toBeLessThanOrEqual(least * 2.6);
    expect([1, 2, 5]).toContain(Math.round(step / 10 ** Math.floor(Math.log10(step) + 1e-9)));
  }
});

test("labels of an axis differ from one another", () => {
  for (const step of [1, 20, 500, 1000, 2e4, 5e6, 1e9, 2e10]) {
    for (const begin of [0, 1e6, 3e9, 1.2e12]) {
      const labels = Array.from({ length: 8 }, (_, at) => axisTime(begin + at * step, step));
      expect(new Set(labels).size, labels.join()).toBe(8);
    }
  }
});
