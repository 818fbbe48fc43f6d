// The vertical order of lanes: grouped by machine and kind, with folded groups.

import type { Lane } from "../../data/lane";
import type { LaneInfo } from "../../data/report";
import { laneTitle } from "./words";

/** Distance between the bars of two lanes. */
const GAP = 6;
/** Distance between depths of a stack, as small as between callers and callees. */
const CALL_GAP = 1;
const GROUP_HEIGHT = 28;

export interface LaneRow {
  info: LaneInfo;
  /** Its index in the report, also used in the page's address. */
  at: number;
  lane: Lane | null;
  y: number;
  /** Height of its bar. */
  height: number;
  /** Its group, unless it is pinned. */
  group: Group;
}

export interface Group {
  title: string;
  /** Whether it holds pinned lanes of other groups, at the top. */
  pinned: boolean;
  y: number;
  folded: boolean;
  /** Whether its lanes are shown. */
  open: boolean;
  rows: LaneRow[];
  /** Its lanes, or the pinned ones, that match the filter. */
  wanted: LaneRow[];
}

/** The filter of lanes. */
export interface Wanted {
  /** Words that must all be in the name of a lane, its group or its kind. */
  lanes: string;
  /** Includes lanes that ran least. */
  quiet: boolean;
  pinned: number[];
  hidden: number[];
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
  return (group.pinned ? group.wanted : group.rows)[0]?.info.kind ?? "thread";
}

/** Groups with more lanes are folded by default. */
const MANY = 16;

/** All groups; the first one is for pinned lanes. */
export function groupsOf(infos: LaneInfo[]): Group[] {
  const groups = new Map<string, Group>();
  const make = (title: string, pinned: boolean): Group => ({ title, pinned, y: 0, folded: false, open: true, rows: [], wanted: [] });
  for (const [at, info] of infos.entries()) {
    const of = info.vm && info.kind !== "cpu" && info.vm !== info.machine ? `${info.vm}, on ${info.machine}` : info.machine;
    // Each thread's stack is a separate group.
    const title = `${of}: ${KINDS[info.kind]}${info.kind === "call" ? ` ${info.name}` : ""}`;
    const group = groups.get(title) ?? make(title, false);
    group.rows.push({ info, at, lane: null, y: 0, height: 0, group });
    groups.set(title, group);
  }
  const all = [...groups.values()].sort((a, b) => ORDER.indexOf(kindOf(a)) - ORDER.indexOf(kindOf(b)));
  // Stacks are deep: only that of the thread with most calls is unfolded.
  const stack = all.find((group) => kindOf(group) === "call");
  const loud = (group: Group) => group.rows.filter((row) => !row.info.quiet).length;
  for (const group of all) group.folded = group !== stack && (kindOf(group) === "call" || loud(group) > MANY) && all.length > 1;
  return [make("Pinned", true), ...all];
}

/** Whether a lane has all of these words; an empty filter matches every lane. */
export function hasWords({ info, group }: LaneRow, words: string): boolean {
  const named = `${laneTitle(info)} ${group.title} ${info.kind === "vcpu" ? "vcpu" : ""}`.toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => named.includes(word));
}

/** Places all rows that match; returns the total height. */
export function place(groups: Group[], wanted: Wanted): number {
  const [pinned, hidden] = [new Set(wanted.pinned), new Set(wanted.hidden)];
  const rows = new Map(groups.flatMap((group) => group.rows.map((row) => [row.at, row])));
  const filtered = wanted.lanes.trim() !== "";
  const isWanted = (row: LaneRow) => !hidden.has(row.at) && !pinned.has(row.at) && (filtered ? hasWords(row, wanted.lanes.trim()) : wanted.quiet || !row.info.quiet);
  for (const group of groups) {
    group.wanted = group.pinned ? wanted.pinned.flatMap((at) => rows.get(at) ?? []) : group.rows.filter(isWanted);
    // A filter by name shows its lanes.
    group.open = group.wanted.length > 0 && (!group.folded || (filtered && !group.pinned));
  }
  return stack(groups);
}

function stack(groups: Group[]): number {
  let y = 0;
  const room = heights(unfolded(groups));
  for (const group of groups.filter((one) => one.wanted.length > 0)) {
    group.y = y;
    y += GROUP_HEIGHT;
    if (!group.open) continue;
    for (const row of group.wanted) {
      row.y = y;
      row.height = room[row.info.kind];
      y += row.height + (row.info.kind === "call" ? CALL_GAP : GAP);
    }
    if (kindOf(group) === "call") y += GAP;
  }
  return y;
}

/** vCPUs are the most important lanes: if there are few, they are high, so that shares are readable. */
function heights(rows: LaneRow[]): Record<LaneInfo["kind"], number> {
  const vcpus = rows.filter((row) => row.info.kind === "vcpu").length;
  const vcpu = Math.round(Math.min(64, Math.max(20, 200 / Math.max(1, vcpus))));
  return { vcpu, cpu: 22, task: 18, thread: 18, call: 15 };
}

/** Lanes that are visible, or reachable by scrolling. */
export function unfolded(groups: Group[]): LaneRow[] {
  return groups.flatMap((group) => (group.open ? group.wanted : []));
}

/** The name of a lane: a vCPU's includes its VM; that of a depth includes its thread if it is among other lanes. */
export function nameOf({ info }: LaneRow, pinned: boolean): string {
  if (info.kind === "call" && !pinned) return `depth ${info.depth}`;
  return info.kind === "vcpu" || pinned ? laneTitle(info) : info.name;
}

/** The lanes of the overview: the vCPUs, if there are any. */
export function overview(rows: LaneRow[]): LaneRow[] {
  const vcpus = rows.filter((row) => row.info.kind === "vcpu");
  return vcpus.length > 0 ? vcpus : rows;
}
