// Which lanes are shown: each once, pinned ones first, and none that a reader did not ask for.

import { expect, test } from "vitest";
import type { LaneInfo } from "../src/data/report";
import { groupsOf, nameOf, place, unfolded, type Wanted } from "../src/views/timeline/rows";
import { laneTitle } from "../src/views/timeline/words";

const info = (kind: LaneInfo["kind"], machine: string, name: string, more: Partial<LaneInfo> = {}): LaneInfo => ({ columns_in: "", machine, kind, name, vm: null, depth: null, quiet: false, spans: 0, ...more });

const LANES = [
  info("vcpu", "host", "vCPU 0", { vm: "web" }),
  info("vcpu", "host", "vCPU 1", { vm: "web" }),
  info("vcpu", "host", "vCPU 0", { vm: "db" }),
  info("cpu", "host", "CPU 0"),
  info("thread", "host", "vhost-12"),
  info("thread", "host", "kworker-3", { quiet: true }),
  info("task", "web", "nginx-80"),
  info("call", "host", "qemu-1", { depth: 0 }),
  info("call", "host", "qemu-1", { depth: 1 }),
];

const PLAIN: Wanted = { lanes: "", quiet: false, pinned: [], hidden: [] };

function shown(wanted: Partial<Wanted>): string[] {
  const groups = groupsOf(LANES);
  const height = place(groups, { ...PLAIN, ...wanted });
  const rows = unfolded(groups);
  // None lies over another one.
  const sorted = [...rows].sort((a, b) => a.y - b.y);
  expect(sorted).toEqual(rows);
  sorted.forEach((row, at) => expect(row.y + row.height).toBeLessThanOrEqual(sorted[at + 1]?.y ?? height));
  return rows.map((row) => laneTitle(row.info));
}

test("lanes of several VMs are named apart", () => {
  const groups = groupsOf(LANES);
  place(groups, { ...PLAIN, pinned: [8] });
  const names = unfolded(groups).map((row) => nameOf(row, row.at === 8));
  expect(names).toEqual(["host qemu-1, depth 1", "web vCPU 0", "web vCPU 1", "db vCPU 0", "depth 0", "CPU 0", "nginx-80", "vhost-12"]);
});

test("pinned lanes are at the top, in the order of their pinning, and nowhere else", () => {
  expect(shown({ pinned: [4, 2] })).toEqual(["host vhost-12", "db vCPU 0", "web vCPU 0", "web vCPU 1", "host qemu-1, depth 0", "host qemu-1, depth 1", "host CPU 0", "web nginx-80"]);
});

test("hidden lanes are not shown, nor those that the report does not have", () => {
  const left = shown({ hidden: [0, 7, 8, 99], pinned: [1234] });
  expect(left).toEqual(["web vCPU 1", "db vCPU 0", "host CPU 0", "web nginx-80", "host vhost-12"]);
});

test("lanes that ran least are shown when asked for, or looked for", () => {
  expect(shown({})).not.toContain("host kworker-3");
  expect(shown({ quiet: true })).toContain("host kworker-3");
  expect(shown({ lanes: "kwork" })).toEqual(["host kworker-3"]);
  expect(shown({ pinned: [5] })[0]).toBe("host kworker-3");
});

test("a filter wants all of its words, and keeps pinned lanes", () => {
  expect(shown({ lanes: "VCPU web" })).toEqual(["web vCPU 0", "web vCPU 1"]);
  expect(shown({ lanes: "  db  ", pinned: [3] })).toEqual(["host CPU 0", "db vCPU 0"]);
  expect(shown({ lanes: "nothing has this" })).toEqual([]);
});
