import { describe, expect, it } from "vitest";
import type { ExitRow } from "../src/data/report";
import { partsOf } from "../src/views/parts_bar";

/** Interrupts of a VM that waited much longer in the run queue than they cost. */
const ROW = {
  waiting: false,
  time_ns: 3_964,
  cost_ns: 860,
  before_exit_ns: 616,
  kernel_ns: 244,
  user_ns: 0,
  not_split_ns: 0,
  off_cpu_ns: 3_720,
  off_cpu_runnable_ns: 3_720,
  off_cpu_blocked_ns: 0,
  halt_poll_ns: 0,
} as unknown as ExitRow;

const sum = (parts: { value: number }[]) => parts.reduce((all, part) => all + part.value, 0);
const titles = (parts: { title: string }[]) => parts.map((part) => part.title);

describe("who pays", () => {
  it("is the cost with what ran before the exit, and without waits", () => {
    const { of, whole, parts, besides } = partsOf(ROW, true);
    expect([of, whole, sum(parts)]).toEqual(["cost", 860, 860]);
    expect(titles(parts)).toEqual(["before exit", "kernel"]);
    expect(titles(besides)).toEqual(["run queue"]);
  });

  it("is the time where exits wait, or their cost is not known", () => {
    for (const row of [{ ...ROW, waiting: true }, { ...ROW, cost_ns: null, before_exit_ns: null }]) {
      const { of, whole, parts, besides } = partsOf(row as unknown as ExitRow, true);
      expect([of, whole, sum(parts), besides.length]).toEqual(["time", 3_964, 3_964, 0]);
      expect(titles(parts)).toEqual(["kernel", "run queue"]);
    }
  });
});
