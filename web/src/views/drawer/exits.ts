// Exits of an interval by reason: from individual exits if the page has them, otherwise from its slices.

import { sumsWithin, type EachExit, type ExitSums } from "../../data/each_exit";
import { rowBegin, type Heat, type HeatGroup } from "../../data/heat";
import type { ExitGroupInfo, Report } from "../../data/report";
import { timestampOf } from "../../clock";
import { el, rowsTable } from "../../dom";
import { inFocus, type Focus } from "../../focus";
import { count, NOT_RECORDED, share, time } from "../../format";
import type { Range } from "../timeline/range";

/** The question: exits of an interval, some vCPUs, and the focus. */
export interface Asked {
  report: Report;
  range: Range;
  focus: Focus;
  isShown: (group: ExitGroupInfo) => boolean;
  lists: EachExit[];
  heat: Heat | null;
}

interface Line {
  vm: string;
  level: number;
  reason: string;
  code: string;
  waiting: boolean;
  cells: [key: string, value: number | null, words: string][];
  rank: number;
}

export function exitsOf(asked: Asked): HTMLElement[] {
  const { report } = asked;
  const listed = new Set(asked.lists.map((list) => list.info.source));
  const rest = report.exits.sources.filter((source) => !listed.has(source) && report.exits.rows.some((row) => row.source === source));
  const parts: HTMLElement[] = [];
  if (listed.size > 0) parts.push(...exact(asked));
  if (rest.length > 0) parts.push(...rounded(asked, rest));
  return parts.length > 0 ? parts : [el("p", {}, "No exits were recorded.")];
}

/** Includes the last event if a selection extends to the end: otherwise a range excludes its end. */
export function toTheEnd(report: Report, { from, to }: Range): Range {
  return { from, to: to >= report.length_ns ? Math.max(to, report.length_ns) + 1 : to };
}

function exact(asked: Asked): HTMLElement[] {
  const { report, focus, lists } = asked;
  const range = toTheEnd(report, asked.range);
  const ns = report.nanoseconds;
  const rows = sumsWithin(lists, range.from, range.to, (group) => inFocus(focus, group) && asked.isShown(group));
  const all = rows.filter((row) => !waits(report, row.source, row.group)).reduce((sum, row) => sum + (row.cost ?? 0), 0);
  const lines = rows.map((row) => lineOf(row, report, all));
  const open = rows.reduce((sum, row) => sum + row.count - row.paired, 0);
  const note = [
    "Exact: counts each exit that begins in the selection.",
    open > 0 ? `${count(open)} without an end in it are counted without a time.` : "",
    ns ? `The same: ${command("exits", report, asked.range)}` : "",
  ];
  return [el("p", { class: "note" }, note.filter(Boolean).join(" ")), table(lines, "Exits in the selection, by cost")];
}

/** The command that prints the same numbers. */
export function command(verb: string, report: Report, range: Range): string {
  const { from, to } = toTheEnd(report, range);
  const at = (offset: number) => {
    const digits = (BigInt(report.origin) + BigInt(Math.round(offset))).toString().padStart(10, "0");
    return `${digits.slice(0, -9)}.${digits.slice(-9)}`;
  };
  const quoted = report.sources.map((source) => (/^[\w./-]+$/.test(source) ? source : `'${source.replaceAll("'", "'\\''")}'`));
  return `hyperscope ${verb} ${quoted.join(" ")} --from ${at(from)} --to ${at(to)}`;
}

function waits(report: Report, source: string, { vm, level, reason, code }: ExitGroupInfo): boolean {
  return report.exits.rows.some((row) => row.source === source && row.vm === vm && row.level === level && row.reason === reason && row.code === code && row.waiting);
}

function lineOf(row: ExitSums, report: Report, all: number): Line {
  const ns = report.nanoseconds;
  const { group, durations, costs } = row;
  const waiting = waits(report, row.source, group);
  const length = (key: string, value: number | null): Line["cells"][number] => [key, value, time(value, ns)];
  return {
    ...named(group),
    waiting,
    rank: waiting ? -1 : (row.cost ?? durations.sum),
    cells: [
      ["count", row.count, count(row.count)],
      length("cost", row.cost),
      ["cost_share", null, waiting || row.cost === null ? NOT_RECORDED : share(row.cost, all, 1)],
      length("cost_p50", costs?.at(500) ?? null),
      length("cost_p99", costs?.at(990) ?? null),
      length("time", durations.sum),
      length("p50", durations.at(500)),
      length("p90", durations.at(900)),
      length("p99", durations.at(990)),
      length("max", durations.max),
    ],
  };
}

const named = ({ vm, level, reason, code }: { vm: string; level: number; reason: string; code: unknown }) => ({ vm, level, reason, code: code === null ? "" : String(code) });

const TITLES: Record<string, string> = { count: "exits", cost: "cost", cost_share: "cost%", cost_p50: "cost p50", cost_p99: "cost p99", time: "time", p50: "time p50", p90: "time p90", p99: "time p99", max: "time max" };

function table(lines: Line[], caption: string): HTMLElement {
  const sorted = [...lines].sort((a, b) => b.rank - a.rank || a.reason.localeCompare(b.reason));
  const titles = ["VM", "level", "reason", ...(sorted[0]?.cells ?? []).map(([key]) => TITLES[key] ?? key)];
  const body = sorted.map((line) =>
    el(
      "tr",
      { class: line.waiting ? "waiting" : null, "data-code": line.code },
      el("td", { "data-key": "vm", "data-value": line.vm }, line.vm),
      el("td", { "data-key": "level", "data-value": line.level, class: "number" }, String(line.level)),
      el("th", { scope: "row", "data-key": "reason", "data-value": line.reason }, line.reason),
      ...line.cells.map(([key, value, words]) => el("td", { class: "number", "data-key": key, "data-value": value }, words)),
    ),
  );
  if (sorted.length === 0) return el("p", {}, "No exit begins in the selection.");
  return rowsTable(caption, titles, body, 3, "picked");
}

/** Rounds to the heat map: whole columns, and times between steps of a quarter octave. */
function rounded(asked: Asked, sources: string[]): HTMLElement[] {
  const { report, range, focus, heat } = asked;
  if (!heat) return [];
  const { from_ns, column_ns, columns, rows_per_octave } = heat.info;
  const first = Math.max(0, Math.floor((range.from - from_ns) / column_ns));
  const end = Math.min(columns, Math.max(first + 1, Math.ceil((range.to - from_ns) / column_ns)));
  const groups = heat.groups.filter((group) => sources.includes(group.source) && inFocus(focus, group));
  const lines = groups.flatMap((group) => roundedLine(group, first, end, rows_per_octave, report));
  const [from, to] = [from_ns + first * column_ns, from_ns + end * column_ns];
  const note =
    `Rounded to ${time(column_ns, report.nanoseconds)} slices: the page does not hold each of so much recording’s exits. Of all vCPUs, from ${timestampOf(report, Math.max(0, from))} to ${timestampOf(report, to)}; ` +
    `percentiles lie below what is shown, by a fifth at most. Exact: ${command("exits", report, range)}`;
  return [el("p", { class: "note rounded" }, note), table(lines, "Timed exits near the selection, rounded")];
}

function roundedLine(group: HeatGroup, first: number, end: number, perOctave: number, report: Report): Line[] {
  const byRow = new Map<number, number>();
  let all = 0;
  for (let at = 0; at < group.cells; at++) {
    if (group.column[at]! < first || group.column[at]! >= end) continue;
    byRow.set(group.row[at]!, (byRow.get(group.row[at]!) ?? 0) + group.count[at]!);
    all += group.count[at]!;
  }
  if (all === 0) return [];
  const sorted = [...byRow].sort((a, b) => a[0] - b[0]);
  const below = (perMille: number) => {
    let left = Math.ceil((all * perMille) / 1000);
    for (const [row, exits] of sorted) if ((left -= exits) <= 0) return rowBegin(row + 1, perOctave);
    return null;
  };
  const length = (key: string, value: number | null): Line["cells"][number] => [key, null, value === null ? NOT_RECORDED : `≤ ${time(value, report.nanoseconds)}`];
  const waiting = report.exits.rows.some((row) => row.source === group.source && row.vm === group.vm && row.level === group.level && row.reason === group.reason && row.code === group.code && row.waiting);
  return [{ ...named(group), waiting, rank: waiting ? -1 : all, cells: [["count", null, `≈ ${count(all)}`], length("p50", below(500)), length("p90", below(900)), length("p99", below(990))] }];
}
