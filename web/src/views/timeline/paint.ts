// Paints the timeline on its canvas: the raster of the lanes, words on wide spans, the time axis.

import { axisLabel, clockMode, firstStep, timestampOf } from "../../clock";
import { rgb, variableOf, word } from "../../colours";
import { MERGED } from "../../data/lane";
import type { Report } from "../../data/report";
import { niceStep } from "../../format";
import { drawLane, type Raster } from "./raster";
import type { Range } from "./range";
import type { LaneRow } from "./rows";

/** Min width of spans with a line at their begin, and of spans with words. */
const [LINE_FROM, WORDS_FROM] = [5, 34];

/** Colours of the theme. */
export interface Palette {
  colours: Uint32Array;
  empty: number;
  background: string;
  text: string;
  muted: string;
  line: string;
  accent: string;
  selected: string;
  font: string;
  /** Colour of text on a state. */
  on: string[];
}

/** Emphasized states, and hidden states. */
export interface Marks {
  states: string[];
  without: string[];
}

/** Remaining strength of a faded state's colour. */
const FADED = 0.16;

export function palette(report: Report, marks: Marks): Palette {
  const lane = rgb("--lane");
  const faded = (colour: [number, number, number]) => colour.map((part, at) => Math.round(part * FADED + lane[at]! * (1 - FADED))) as [number, number, number];
  const states = report.timeline.states.map(({ key }) => {
    if (marks.without.includes(key)) return lane;
    const colour = rgb(variableOf(key));
    return marks.states.length === 0 || marks.states.includes(key) ? colour : faded(colour);
  });
  const styles = getComputedStyle(document.documentElement);
  const property = (name: string) => styles.getPropertyValue(name).trim();
  // Dark text on light colours, and vice versa.
  const bright = ([red, green, blue]: [number, number, number]) => red * 0.299 + green * 0.587 + blue * 0.114 > 140;
  return {
    colours: Uint32Array.from({ length: 256 }, (_, at) => word(states[at] ?? [128, 128, 128])),
    empty: word(lane),
    background: property("--page"),
    text: property("--text"),
    muted: property("--muted"),
    line: property("--line"),
    accent: property("--accent"),
    selected: property("--selected"),
    font: property("--sans"),
    on: states.map((colour) => (bright(colour) ? "#111" : "#fff")),
  };
}

/** Draws all visible rows; `top` is the scroll position. */
export function paintLanes(
  canvas: HTMLCanvasElement,
  rows: LaneRow[],
  report: Report,
  colours: Palette,
  shown: Range,
  top: number,
): void {
  const pen = canvas.getContext("2d");
  if (!pen) return;
  const scale = devicePixelRatio || 1;
  const { width, height } = canvas;
  const image = pictureFor(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const page = word(rgb("--page"));
  pixels.fill(page);
  const raster: Raster = { pixels, width, colours: colours.colours, empty: colours.empty };
  // Below the innermost call there is nothing, whereas a thread always has a state.
  const ofCalls: Raster = { ...raster, empty: page };
  const inSight: [LaneRow, number][] = [];
  for (const row of rows) {
    const y = Math.round((row.y - top) * scale);
    const bar = Math.round(row.height * scale);
    if (!row.lane || y >= height || y + bar <= 0) continue;
    const cut = { from: Math.max(0, y), to: Math.min(height, y + bar) };
    drawLane(row.info.kind === "call" ? ofCalls : raster, row.lane, shown, cut.from, cut.to - cut.from);
    inSight.push([row, row.y - top]);
  }
  pen.putImageData(image, 0, 0);
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  for (const [row, y] of inSight) paintWords(pen, row, y, report, colours, shown, width / scale);
  pen.setTransform(1, 0, 0, 1, 0, 0);
}

let kept: ImageData | null = null;

/** An image of that size, reused while the size stays the same. */
function pictureFor(width: number, height: number): ImageData {
  if (kept?.width !== width || kept.height !== height) kept = new ImageData(width, height);
  return kept;
}

function paintWords(
  pen: CanvasRenderingContext2D,
  row: LaneRow,
  y: number,
  report: Report,
  colours: Palette,
  shown: Range,
  width: number,
): void {
  const lane = row.lane!;
  const scale = width / (shown.to - shown.from);
  const [first, end] = [Math.max(0, lane.begunBy(shown.from) - 1), lane.begunBy(shown.to)];
  // Draws only as many spans as can be distinguished; otherwise most are too narrow for lines and
  // words.
  if (end - first > width / LINE_FROM + 2) return;
  pen.font = `11px ${colours.font}`;
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  for (let at = first; at < end; at++) {
    const [from, to] = [(lane.from[at]! - shown.from) * scale, (lane.to[at]! - shown.from) * scale];
    if (to - from < LINE_FROM) continue;
    pen.fillStyle = colours.background;
    if (from > 0) pen.fillRect(from, y, 1, row.height);
    const left = Math.max(0, from);
    const room = Math.min(width, to) - left - 8;
    if (room < WORDS_FROM) continue;
    const state = lane.state[at]!;
    const words = state === MERGED ? `${lane.spansIn(at)} spans` : report.timeline.labels[lane.label[at]!] || (report.timeline.states[state]?.title ?? "");
    pen.fillStyle = state === MERGED ? "#111" : (colours.on[state] ?? colours.text);
    pen.fillText(fitted(pen, words, room), left + 4, y + row.height / 2 + 0.5, room + 4);
  }
}

/** Cached widths of words: measuring them is the slowest step here. */
const widths = new Map<string, number>();

function widthOf(pen: CanvasRenderingContext2D, words: string): number {
  const known = widths.get(words);
  if (known !== undefined) return known;
  if (widths.size > 20_000) widths.clear();
  const { width } = pen.measureText(words);
  widths.set(words, width);
  return width;
}

/** As many letters of the words as fit, by the mean width of a letter. */
function fitted(pen: CanvasRenderingContext2D, words: string, room: number): string {
  const width = widthOf(pen, words);
  if (width <= room) return words;
  const length = Math.floor((words.length * room) / width) - 1;
  return length > 1 ? `${words.slice(0, length)}…` : "";
}

/** The time axis: times since the recording's begin. */
export function paintAxis(canvas: HTMLCanvasElement, report: Report, colours: Palette, shown: Range): void {
  const pen = canvas.getContext("2d");
  if (!pen) return;
  const scale = devicePixelRatio || 1;
  const [width, height] = [canvas.width / scale, canvas.height / scale];
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.fillStyle = colours.background;
  pen.fillRect(0, 0, width, height);
  pen.font = `11px ${colours.font}`;
  pen.textBaseline = "middle";
  const length = shown.to - shown.from;
  const step = niceStep((length / width) * (clockMode() === "absolute" ? 150 : 110));
  canvas.setAttribute("aria-label", `Time axis from ${timestampOf(report, shown.from)} to ${timestampOf(report, shown.to)}`);
  for (let at = firstStep(report, shown.from, step); at <= shown.to; at += step) {
    const x = ((at - shown.from) / length) * width;
    pen.fillStyle = colours.line;
    pen.fillRect(Math.round(x), height - 6, 1, 6);
    pen.fillStyle = colours.muted;
    const words = axisLabel(report, at, step);
    const half = pen.measureText(words).width / 2;
    pen.textAlign = "center";
    pen.fillText(words, Math.min(width - half, Math.max(half, x)), height / 2 - 2);
  }
  pen.setTransform(1, 0, 0, 1, 0, 0);
}

/** Selection, cursor and chosen span, on a separate canvas over the lanes. */
export function paintOverlay(
  canvas: HTMLCanvasElement,
  colours: Palette,
  shown: Range,
  marks: { selection: Range | null; cursor: number | null; chosen: { from: number; to: number; y: number; height: number } | null },
): void {
  const pen = canvas.getContext("2d");
  if (!pen) return;
  const scale = devicePixelRatio || 1;
  const [width, height] = [canvas.width / scale, canvas.height / scale];
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  const x = (time: number) => ((time - shown.from) / (shown.to - shown.from)) * width;
  if (marks.selection) {
    const [from, to] = [x(marks.selection.from), x(marks.selection.to)];
    pen.fillStyle = colours.selected;
    pen.fillRect(from, 0, to - from, height);
    pen.fillStyle = colours.accent;
    pen.fillRect(from, 0, 1.5, height);
    pen.fillRect(to - 1.5, 0, 1.5, height);
  }
  if (marks.cursor !== null) {
    pen.fillStyle = colours.text;
    pen.globalAlpha = 0.5;
    pen.fillRect(Math.round(x(marks.cursor)), 0, 1, height);
    pen.globalAlpha = 1;
  }
  if (marks.chosen) {
    const [from, to] = [Math.max(-4, x(marks.chosen.from)), Math.min(width + 4, x(marks.chosen.to))];
    pen.strokeStyle = colours.text;
    pen.lineWidth = 2;
    pen.strokeRect(from - 1, marks.chosen.y - 1, Math.max(3, to - from) + 2, marks.chosen.height + 2);
  }
  pen.setTransform(1, 0, 0, 1, 0, 0);
}
