// The time that a timeline shows gets where it is sent, at once or in steps.

import { afterEach, expect, test, vi } from "vitest";
import { ShownTime } from "../src/views/timeline/shown_time";

const whole = { from: 0, to: 1_000_000 };

afterEach(() => vi.unstubAllGlobals());

function shown(prefersStill: boolean): ShownTime {
  vi.stubGlobal("matchMedia", () => ({ matches: prefersStill }));
  return new ShownTime(whole, whole);
}

test("a zoom ends where it was to, and keys pressed meanwhile add up", () => {
  const time = shown(false);
  const begun = performance.now();
  time.goTo({ from: 100_000, to: 200_000 }, true);
  expect([time.now, time.target, time.isOnItsWay, time.isWhole]).toEqual([whole, { from: 100_000, to: 200_000 }, true, false]);
  expect(time.step(begun + 60)).toBe(true);
  expect(time.now.from).toBeGreaterThan(0);
  expect(time.now.from).toBeLessThan(100_000);
  expect(time.step(begun + 1000)).toBe(true);
  expect([time.now, time.isOnItsWay, time.step(begun + 1001)]).toEqual([{ from: 100_000, to: 200_000 }, false, false]);
});

test("readers who want no motion are there at once, within the recording", () => {
  const time = shown(true);
  time.goTo({ from: 950_000, to: 1_050_000 }, true);
  expect([time.now, time.isOnItsWay]).toEqual([{ from: 900_000, to: 1_000_000 }, false]);
  time.goTo(whole, true);
  expect(time.isWhole).toBe(true);
});

test("an address names a time of the recording, or none", () => {
  const time = shown(true);
  expect(time.fromAddress(null)).toBeNull();
  expect(time.fromAddress({ from: 1_000_000, to: 2_000_000 })).toBeNull();
  expect(time.fromAddress({ from: 900_000, to: 2_000_000 })).toEqual({ from: 900_000, to: 1_000_000 });
});
