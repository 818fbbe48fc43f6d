// Arrows come out of the page as they went in, and a span has those that touch it.

import { describe, expect, test } from "vitest";
import { Arrows, readArrows } from "../src/data/arrows";
import { Lane } from "../src/data/lane";
import type { Report } from "../src/data/report";
import { arrowsOf, describeArrow, MOST_DRAWN } from "../src/views/timeline/arrows";
import { arrowsOfSteps, stepsNamed } from "../src/views/timeline/drawn_steps";
import type { LaneRow } from "../src/views/timeline/rows";
import { packed } from "./packed";
import { random } from "./random";

const KINDS = ["wake", "inject"];

function some(count: number): { arrows: Arrows; made: { from: number; to: number; kind: number; fromLane: number; toLane: number }[] } {
  const next = random(7);
  let to = 0;
  const made = Array.from({ length: count }, () => {
    to += Math.floor(next() * 300);
    return { from: Math.max(0, to - Math.floor(next() * 2000)), to, kind: Math.floor(next() * 2), fromLane: Math.floor(next() * 5), toLane: Math.floor(next() * 5) };
  });
  const columns = [made.map((one, at) => one.to - (made[at - 1]?.to ?? 0)), made.map((one) => one.to - one.from), made.map((one) => one.kind), made.map((one) => one.fromLane), made.map((one) => one.toLane)];
  const info = { columns_in: "", arrows: count, kinds: KINDS, left_out: 0, left_out_below_ns: 0, without_lane: 0, request_lanes: [] };
  return { arrows: readArrows(packed(columns.flat()), info), made };
}

describe("arrows", () => {
  test("come out as they went in, by lane and time", () => {
    const { arrows, made } = some(2000);
    expect(arrows.count).toBe(2000);
    for (const [lane, from, to] of [[0, 1000, 20_000], [3, 0, 1e9], [4, 50_000, 50_100], [9, 0, 1e9]] as const) {
      const { into, outOf } = arrows.touching(lane, from, to);
      const shown = (one: (typeof made)[number]) => ({ kind: KINDS[one.kind], from: { lane: one.fromLane, at: one.from }, to: { lane: one.toLane, at: one.to } });
      expect(into).toEqual(made.filter((one) => one.toLane === lane && one.to >= from && one.to <= to).map(shown));
      const expected = made.filter((one) => one.fromLane === lane && one.from >= from && one.from <= to).map(shown);
      expect(outOf.length).toBe(expected.length);
      for (const one of outOf) expect(expected).toContainEqual(one);
    }
  });
});

const info = (kind: string, machine: string, vm: string | null, name: string) => ({ columns_in: "", machine, kind, name, vm, depth: null, quiet: false, spans: 3 });

/** A vCPU and its guest's task: the guest, an exit in two parts, the guest; a thread that raises an interrupt. */
function machine(): { report: Report; rows: LaneRow[] } {
  const lanes = [info("vcpu", "host", "web", "vCPU 0"), info("task", "web", null, "fio-7"), info("thread", "host", null, "qemu-9")];
  const states = ["guest_kernel", "exit_kernel", "exit_user", "running"].map((key) => ({ key, title: key }));
  const of = (state: number[], from: number[], to: number[]) => new Lane(Float64Array.from(from), Float64Array.from(to), Uint8Array.from(state), new Uint32Array(state.length), []);
  const all = [of([0, 1, 2, 0], [0, 100, 150, 300], [100, 150, 300, 400]), of([0, 1, 2, 0], [0, 100, 150, 300], [100, 150, 300, 400]), of([3], [120], [280])];
  const step = (ts_ns: number, what: string) => ({ hop: null, ts_ns: ts_ns + 1000, what, on: "vcpu", source: null, cpu: 0, tid: 1 });
  const examples = [{ of: "worst", total_ns: 190, steps: [step(110, "mmio"), step(130, "lost"), step(200, "irq"), step(300, "entry")] }];
  const report = {
    origin: "1000",
    nanoseconds: true,
    length_ns: 400,
    timeline: { lanes, states, labels: [""] },
    arrows: { request_lanes: [[[0, null, 2, 0]]] },
    path: { paths: [{ name: "a path", examples }] },
  } as unknown as Report;
  const rows = lanes.map((one, at) => ({ info: one, at, lane: all[at]!, y: 20 * at, height: 18 }) as unknown as LaneRow);
  return { report, rows };
}

const made = (list: [number, number, number, number, number][]) =>
  new Arrows(KINDS, Float64Array.from(list, (one) => one[0]), Float64Array.from(list, (one) => one[1]), Uint8Array.from(list, (one) => one[2]), Uint32Array.from(list, (one) => one[3]), Uint32Array.from(list, (one) => one[4]));

describe("arrows of a span", () => {
  const { report, rows } = machine();
  test("an exit has the way out of the guest, wake-ups from it, what it enters with, and the way back", () => {
    const all = made([[120, 125, 0, 0, 2], [200, 300, 1, 2, 0], [350, 360, 0, 0, 2]]);
    const { arrows, more } = arrowsOf(report, rows, { row: rows[0]!, at: 2 }, all);
    expect(arrows.map((one) => [one.kind, one.from.lane, one.from.at, one.to.lane, one.to.at])).toEqual([
      ["exit", 1, 100, 0, 100],
      ["entry", 0, 300, 1, 300],
      ["inject", 2, 200, 0, 300],
    ]);
    expect(more).toBe(0);
    const first = arrowsOf(report, rows, { row: rows[0]!, at: 1 }, all).arrows;
    expect(first.map((one) => one.kind)).toEqual(["exit", "entry", "wake"]);
  });
  test("the guest's own spans have no hand-over, and a lane without arrows has none", () => {
    expect(arrowsOf(report, rows, { row: rows[0]!, at: 0 }, null).arrows).toEqual([]);
    expect(arrowsOf(report, rows, { row: rows[2]!, at: 0 }, made([])).arrows).toEqual([]);
  });
  test("more than can be told apart are counted", () => {
    const all = made(Array.from({ length: 100 }, (_, at) => [121 + at, 300 + at, 0, 2, 0] as [number, number, number, number, number]));
    const { arrows, more } = arrowsOf(report, rows, { row: rows[2]!, at: 0 }, all);
    expect([arrows.length, more]).toEqual([MOST_DRAWN, 100 - MOST_DRAWN]);
  });
  test("are named by their lanes", () => {
    expect(describeArrow(report, { kind: "inject", from: { lane: 2, at: 200 }, to: { lane: 0, at: 300 } })[1]).toBe("host qemu-9 raises an interrupt for web vCPU 0, 100 ns later");
  });
});

describe("requests", () => {
  const { report } = machine();
  test("go from lane to lane, over steps that have none", () => {
    const request = stepsNamed(report, "0.worst")!;
    expect(request.title).toBe("a path, the slowest: 190 ns");
    expect(arrowsOfSteps(report, request).map((one) => [one.from.lane, one.from.at, one.to.lane, one.to.at])).toEqual([[0, 110, 2, 200], [2, 200, 0, 300]]);
  });
  test("waits go from who was waited for to who goes on", () => {
    const of = { machine: "host", thread: "qemu", what: "running", lane: 2 };
    const steps = [{ ...of, from_ns: 1100, to_ns: 1150 }, { ...of, from_ns: 1150, to_ns: 1200, lane: null }];
    const critical = { task: "fio", waited_ns: 100, parts: [], others_ns: 0, waits: [{ machine: "web", tid: 7, from_ns: 1100, to_ns: 1200, lane: 1, cut: false, steps }] };
    const wait = stepsNamed({ ...report, critical }, "0.wait")!;
    expect([wait.title, wait.steps.length]).toEqual(["What fio waited for, 100 ns", 3]);
    expect(arrowsOfSteps(report, wait).map((one) => [one.from.lane, one.from.at, one.to.lane, one.to.at])).toEqual([[2, 100, 1, 200]]);
  });
  test("that an address makes up are none", () => {
    for (const name of ["", "0.p50", "7.worst", "0.best", "x", "0.worst.1", "0.wait"]) expect(stepsNamed(report, name)).toBeNull();
  });
});
