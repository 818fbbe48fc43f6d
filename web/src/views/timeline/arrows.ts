// The arrows of a chosen span or request, their descriptions, and their drawing.

import type { Arrow, Arrows } from "../../data/arrows";
import type { Report } from "../../data/report";
import { timestampOf } from "../../clock";
import { time } from "../../format";
import type { Palette } from "./paint";
import type { Range } from "./range";
import type { LaneRow } from "./rows";
import type { Match } from "./search";
import { laneTitle } from "./words";

/** Max drawn arrows of one span: more could not be distinguished. */
export const MOST_DRAWN = 60;

/** The shown arrows, and the number of others. */
export interface ShownArrows {
  arrows: Arrow[];
  more: number;
}

export const NO_ARROWS: ShownArrows = { arrows: [], more: 0 };

/** States in which the guest itself runs. */
const isGuests = (report: Report, state: number) => /^guest/.test(report.timeline.states[state]?.key ?? "");

/** Wake-ups and injections of a span; for an exit, also where the guest ran before and after. */
export function arrowsOf(report: Report, rows: LaneRow[], { row, at }: Match, all: Arrows | null): ShownArrows {
  const lane = row.lane!;
  const [from, to] = [lane.from[at]!, lane.to[at]!];
  const { into, outOf } = all?.touching(row.at, from, to) ?? { into: [], outOf: [] };
  // An arrow at the end of a span belongs to the next span, and one at its begin to this span.
  const own = [...into.filter((one) => one.to.at < to || to === from), ...outOf.filter((one) => one.from.at > from || one.from.at === from && !into.includes(one))];
  // The entry after an exit: the thread that raised the interrupt which the guest receives with it.
  const entered = into.filter((one) => one.kind === "inject" && one.to.at === to);
  const found = [...new Set([...handOver(report, rows, { row, at }), ...own, ...entered])];
  return { arrows: found.slice(0, MOST_DRAWN), more: Math.max(0, found.length - MOST_DRAWN) };
}

/** For a vCPU's exit, or a guest's task in one: from the task to the vCPU's thread, and back. */
function handOver(report: Report, rows: LaneRow[], { row, at }: Match): Arrow[] {
  const lane = row.lane!;
  const { kind, vm, machine } = row.info;
  const state = lane.state[at]!;
  if ((kind !== "vcpu" && kind !== "task") || isGuests(report, state)) return [];
  const [from, to] = [lane.from[at]!, lane.to[at]!];
  const isOther = ({ info }: LaneRow) => (kind === "vcpu" ? info.kind === "task" && info.machine === vm : info.kind === "vcpu" && info.vm === machine);
  // The same span in the other lane: the guest's task had the vCPU that the host works for.
  const isSame = ({ lane }: LaneRow) => {
    const other = lane?.at((from + to) / 2) ?? null;
    return other !== null && lane!.state[other] === state && lane!.from[other] === from && lane!.to[other] === to;
  };
  const other = rows.find((one) => isOther(one) && isSame(one));
  if (!other) return [];
  const [vcpu, task] = kind === "vcpu" ? [row, other] : [other, row];
  const [begin, end] = exitAround(report, vcpu, (from + to) / 2);
  return [
    { kind: "exit", from: { lane: task.at, at: begin }, to: { lane: vcpu.at, at: begin } },
    { kind: "entry", from: { lane: vcpu.at, at: end }, to: { lane: task.at, at: end } },
  ];
}

/** From the end of the guest's run to the begin of the next, in the lane of its vCPU. */
function exitAround(report: Report, { lane }: LaneRow, time: number): [number, number] {
  let first = lane!.at(time) ?? 0;
  let last = first;
  const goesOn = (before: number, next: number) => next >= 0 && next < lane!.count && !isGuests(report, lane!.state[next]!) && lane!.to[before] === lane!.from[before + 1];
  while (goesOn(first - 1, first - 1)) first--;
  while (goesOn(last, last + 1)) last++;
  return [lane!.from[first]!, lane!.to[last]!];
}

/** A time of a document, relative to the recording's begin. */
export const offsetOf = (report: Report, ns: number): number => Number(BigInt(Math.round(ns)) - BigInt(report.origin));

const WORDS: Record<string, string> = { wake: "wakes", inject: "raises an interrupt for", exit: "exits to", entry: "enters" };

/** An arrow in words. */
export function describeArrow(report: Report, { kind, from, to }: Arrow): [string, string] {
  const name = (lane: number) => (report.timeline.lanes[lane] ? laneTitle(report.timeline.lanes[lane]) : "?");
  const took = to.at > from.at ? `, ${time(to.at - from.at, report.nanoseconds)} later` : "";
  return [timestampOf(report, from.at), `${name(from.lane)} ${WORDS[kind] ?? kind} ${name(to.lane)}${took}`];
}

/** Dashes of arrows by kind: distinguishable without colours. */
const DASHES: Record<string, number[]> = { wake: [], request: [], inject: [6, 3], exit: [2, 3], entry: [2, 3] };
const HEAD = 7;

/** Draws arrows over the visible lanes; returns the number of arrows with an end in a hidden lane. */
export function paintArrows(canvas: HTMLCanvasElement, colours: Palette, shown: Range, { arrows, rows, top }: { arrows: Arrow[]; rows: LaneRow[]; top: number }): number {
  const pen = canvas.getContext("2d");
  if (!pen) return 0;
  const scale = devicePixelRatio || 1;
  const width = canvas.width / scale;
  const places = new Map(rows.map((row) => [row.at, row.y - top + row.height / 2]));
  // Limits how far lines extend beyond the sides: canvases can't draw as far as a zoom goes.
  const x = (at: number) => Math.max(-40, Math.min(width + 40, ((at - shown.from) / (shown.to - shown.from)) * width));
  let unseen = 0;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.lineJoin = "round";
  for (const { kind, from, to } of arrows) {
    const [fromY, toY] = [places.get(from.lane), places.get(to.lane)];
    if (fromY === undefined || toY === undefined) unseen++;
    else if (Math.max(from.at, to.at) >= shown.from && Math.min(from.at, to.at) <= shown.to) paintArrow(pen, colours, kind, [x(from.at), fromY, x(to.at), toY]);
  }
  pen.setLineDash([]);
  pen.setTransform(1, 0, 0, 1, 0, 0);
  return unseen;
}

/** A line with a border, so that it is visible on any state; with a head at its end. */
function paintArrow(pen: CanvasRenderingContext2D, colours: Palette, kind: string, [fromX, fromY, toX, toY]: [number, number, number, number]): void {
  const length = Math.hypot(toX - fromX, toY - fromY);
  if (length < 1) return;
  const [alongX, alongY] = [(toX - fromX) / length, (toY - fromY) / length];
  const head = Math.min(HEAD, length);
  const line = new Path2D();
  line.moveTo(fromX, fromY);
  line.lineTo(toX - alongX * head, toY - alongY * head);
  const tip = new Path2D();
  tip.moveTo(toX, toY);
  for (const side of [1, -1]) tip.lineTo(toX - alongX * head - side * alongY * head * 0.55, toY - alongY * head + side * alongX * head * 0.55);
  tip.closePath();
  pen.setLineDash([]);
  pen.strokeStyle = colours.background;
  pen.lineWidth = 5;
  pen.stroke(line);
  pen.lineWidth = 3;
  pen.stroke(tip);
  pen.strokeStyle = pen.fillStyle = kind === "request" ? colours.accent : colours.text;
  pen.lineWidth = kind === "request" ? 2.5 : 1.7;
  pen.setLineDash(DASHES[kind] ?? []);
  pen.stroke(line);
  pen.fill(tip);
}
