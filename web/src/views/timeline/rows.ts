// The lanes below each other: grouped by machine and kind, groups folded or not.

import type { Lane } from "../../data/lane";
import type { LaneInfo } from "../../data/report";

/** Between the bars of two lanes. */
const GAP = 6;
/** Depths of a stack lie as close as callers and callees do. */
const CALL_GAP = 1;
const GROUP_HEIGHT = 28;

export interface LaneRow {
  info: LaneInfo;
  lane: Lane | null;
  y: number;
  /** Height of its bar. */
  height: number;
  group: Group;
}

export interface Group {
  title: string;
  y: number;
  folded: boolean;
  rows: LaneRow[];
}

const KINDS: Record<LaneInfo["kind"], string> = {
  cpu: "CPUs",
  vcpu: "vCPUs",
  thread: "other threads",
  task: "tasks",
  call: "calls of",
};

const ORDER: LaneInfo["kind"][] = ["vcpu", "call", "cpu", "task", "thread"];

function kindOf(group: Group): LaneInfo["kind"] {
  return group.rows[0]?.info.kind ?? "thread";
}

/** Groups with more lanes are folded at first. */
const MANY = 16;

export function groupsOf(infos: LaneInfo[]): Group[] {
  const groups = new Map<string, Group>();
  for (const info of infos) {
    const of = info.vm && info.kind !== "cpu" && info.vm !== info.machine ? `${info.vm}, on ${info.machine}` : info.machine;
    // Each thread's stack is a group of its own.
    const title = `${of}: ${KINDS[info.kind]}${info.kind === "call" ? ` ${info.name}` : ""}`;
    const group = groups.get(title) ?? { title, y: 0, folded: false, rows: [] };
    group.rows.push({ info, lane: null, y: 0, height: 0, group });
    groups.set(title, group);
  }
  const all = [...groups.values()].sort((a, b) => ORDER.indexOf(kindOf(a)) - ORDER.indexOf(kindOf(b)));
  // Stacks are deep: that of the thread with most calls is shown.
  const stack = all.find((group) => kindOf(group) === "call");
  for (const group of all) group.folded = group !== stack && (kindOf(group) === "call" || group.rows.length > MANY) && all.length > 1;
  return all;
}

/** Gives all rows their places; returns the height of all. */
export function place(groups: Group[]): number {
  let y = 0;
  const room = heights(unfolded(groups));
  for (const group of groups) {
    group.y = y;
    y += GROUP_HEIGHT;
    for (const row of group.rows) {
      row.y = y;
      row.height = room[row.info.kind];
      if (!group.folded) y += row.height + (row.info.kind === "call" ? CALL_GAP : GAP);
    }
    if (!group.folded && kindOf(group) === "call") y += GAP;
  }
  return y;
}

/** vCPUs are what most look for: where they are few they are high, so that shares can be read. */
function heights(rows: LaneRow[]): Record<LaneInfo["kind"], number> {
  const vcpus = rows.filter((row) => row.info.kind === "vcpu").length;
  const vcpu = Math.round(Math.min(64, Math.max(20, 200 / Math.max(1, vcpus))));
  return { vcpu, cpu: 22, task: 18, thread: 18, call: 15 };
}

/** Lanes that are not folded away. */
export function unfolded(groups: Group[]): LaneRow[] {
  return groups.filter((group) => !group.folded).flatMap((group) => group.rows);
}

/** What a lane is called within its group. */
export function nameOf({ kind, name, depth }: LaneInfo): string {
  return kind === "call" ? `depth ${depth}` : name;
}
