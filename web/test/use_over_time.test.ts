// Stretches of time have all that lanes have, each machine's by itself.

import { describe, expect, test } from "vitest";
import { Lane } from "../src/data/lane";
import type { LaneInfo } from "../src/data/report";
import { useOf } from "../src/data/use_over_time";

function lane(spans: [number, number, number][]): Lane {
  const of = (at: 0 | 1 | 2) => spans.map((span) => span[at]);
  return new Lane(Float64Array.from(of(0)), Float64Array.from(of(1)), Uint8Array.from(of(2)), new Uint32Array(spans.length), []);
}

function info(kind: LaneInfo["kind"], machine: string, vm: string | null): LaneInfo {
  return { columns_in: "", machine, kind, name: "0", vm, depth: null, quiet: false, spans: 1 };
}

describe("use over time", () => {
  const all = [
    { info: info("vcpu", "host", "web"), lane: lane([[0, 30, 1], [30, 100, 2]]) },
    { info: info("vcpu", "host", "web"), lane: lane([[50, 100, 1]]) },
    { info: info("cpu", "host", null), lane: lane([[10, 20, 0], [90, 95, 3]]) },
    { info: info("vcpu", "host", "db"), lane: lane([[0, 100, 2]]) },
    { info: info("task", "web", "web"), lane: lane([[0, 100, 4]]) },
    { info: info("cpu", "host", null), lane: null },
  ];

  test("is of each machine's CPUs, then of each VM's vCPUs", () => {
    expect(useOf(all, 0, 100, 4).map(({ kind, name, lanes }) => [kind, name, lanes])).toEqual([["cpu", "host", 1], ["vcpu", "web", 2], ["vcpu", "db", 1]]);
  });

  test("has in each stretch what lanes have there", () => {
    const [cpu, web] = useOf(all, 0, 100, 4);
    expect(cpu!.bins.map((bin) => Object.fromEntries(bin))).toEqual([{ 0: 10 }, {}, {}, { 3: 5 }]);
    expect(web!.bins.map((bin) => Object.fromEntries(bin))).toEqual([{ 1: 25 }, { 1: 5, 2: 20 }, { 1: 25, 2: 25 }, { 1: 25, 2: 25 }]);
  });

  test.each([1, 7, 33, 120])("loses nothing in %i stretches", (count) => {
    for (const use of useOf(all, 0, 100, count)) {
      const whole = useOf(all, 0, 100, 1).find((one) => one.kind === use.kind && one.name === use.name)!;
      for (const [state, ns] of whole.bins[0]!) {
        const sum = use.bins.reduce((so_far, bin) => so_far + (bin.get(state) ?? 0), 0);
        expect(Math.abs(sum - ns)).toBeLessThanOrEqual(count * 0.5);
      }
    }
  });
});
