// A number of the typical host over days, of all hosts and of each kind, with the days on which its level changed.

import { el, plainTable, section, svg, tableBehind } from "../dom";
import { measured } from "../format";
import type { Context } from "./context";
import { idOf, nameOf, type Change, type Curve } from "./data";
import { times } from "./findings";

const [HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [260, 76, 16, 22, 28];

/** Lines of kinds, distinguished by both colour and dashes. */
const STYLES: [string, string][] = [
  ["--accent", ""],
  ["--user", "6 3"],
  ["--good", "2 3"],
  ["--preempted", "8 3 2 3"],
  ["--muted", "4 4"],
];

const LEAST_TICK = 90;

export function series(context: Context): HTMLElement {
  const { fleet, view } = context;
  if (fleet.curves.length === 0) return section("days", "Over days", el("p", { class: "note" }, "A change is visible only if at least four days have three hosts with ten exits of a kind each. This fleet has fewer."));
  const figure = el("figure", { class: "days" });
  let drawn = 0;
  const show = () => {
    drawn = figure.clientWidth;
    figure.replaceChildren(...drawing(context, drawn));
  };
  view.follow(show);
  // Its height depends on folded parts, whose state must stay.
  new ResizeObserver(() => figure.clientWidth !== drawn && show()).observe(figure);
  return section("days", "Over days", figure);
}

const title = (curve: Curve) => (curve.stratum === null ? "all hosts" : curve.stratum);

function drawing(context: Context, width: number): HTMLElement[] {
  const { fleet, view } = context;
  const { metric, key } = view.value;
  const is = (one: { metric: string }, of: Parameters<typeof idOf>[0]) => one.metric === metric && idOf(of) === key;
  // All hosts last, so that their curve is drawn on top.
  const curves = fleet.curves.filter((one) => is(one, one.key)).sort((one, other) => Number(one.stratum === null) - Number(other.stratum === null));
  const changes = fleet.since.changes.filter((one) => is(one, one));
  const what = `${curves[0] ? nameOf(curves[0].key) : "These exits"}, ${metric}`;
  if (curves.length === 0 || width === 0) return [el("p", { class: "note" }, `${what}: too few days have enough exits.`)];
  const words = changes.length === 0 ? "no day on which the level changed" : changes.map(said).join("; ");
  return [
    el("figcaption", {}, el("b", {}, what), ` of the typical host: ${words}.`),
    el("div", {}, picture(context, curves, changes, width, `${what} of the typical host over days: ${words}.`)),
    el("ul", { class: "legend" }, ...curves.map((curve, at) => legend(curve, at))),
    tableBehind("Table behind this figure", () => {
      const value = (curve: Curve, step: number) => measured(metric, curve.levels[curve.steps.indexOf(step)] ?? null);
      return plainTable(what, ["day", ...curves.map(title)], fleet.dates.map((date, step) => [date, ...curves.map((curve) => value(curve, step))]));
    }),
  ];
}

function said(change: Change): string {
  const note = change.went_away ? ", went away" : change.shifted_with ? `, ${change.shifted_with} makes up for it` : "";
  return `${times(change.ratio)} since ${change.day} (${change.stratum ?? "all hosts"}${note})`;
}

const styleOf = (curve: Curve, at: number): [string, string] => (curve.stratum === null ? ["--text", ""] : STYLES[at % STYLES.length]!);

function legend(curve: Curve, at: number): HTMLElement {
  const [colour, dashes] = styleOf(curve, at);
  const line = svg("line", { x1: 0, y1: 5, x2: 26, y2: 5, style: `stroke: var(${colour})`, "stroke-dasharray": dashes || null, "stroke-width": 2.5 });
  return el("li", {}, svg("svg", { width: 26, height: 10, "aria-hidden": "true" }, line), ` ${title(curve)}`);
}

function picture(context: Context, curves: Curve[], changes: Change[], width: number, label: string): SVGSVGElement {
  const { fleet, view } = context;
  const levels = curves.flatMap((curve) => curve.levels);
  const [least, most] = [Math.min(...levels), Math.max(...levels)];
  const margin = (most - least || most || 1) * 0.12;
  const [low, high] = [Math.max(0, least - margin), most + margin];
  const steps = Math.max(1, fleet.dates.length - 1);
  const x = (step: number) => LEFT + (step / steps) * (width - LEFT - RIGHT);
  const y = (level: number) => TOP + (1 - (level - low) / (high - low || 1)) * (HEIGHT - TOP - BOTTOM);
  const lines = curves.map((curve, at) => {
    const [colour, dashes] = styleOf(curve, at);
    const points = curve.steps.map((step, place) => `${x(step).toFixed(1)},${y(curve.levels[place]!).toFixed(1)}`);
    const wide = curve.stratum === null ? 3 : 2.2;
    return svg("polyline", { points: points.join(" "), style: `stroke: var(${colour})`, "stroke-width": wide, "stroke-dasharray": dashes || null });
  });
  const days = [...new Set(changes.map((change) => change.day))];
  const marks = days.flatMap((day) => {
    const at = x(Math.max(0, fleet.dates.indexOf(day)) - 0.5);
    return [svg("line", { class: "change", x1: at, x2: at, y1: TOP - 6, y2: HEIGHT - BOTTOM }), svg("text", { x: Math.min(at + 4, width - 90), y: TOP - 8 }, `since ${day}`)];
  });
  return svg("svg", { width, height: HEIGHT, role: "img", "aria-label": label }, ...axes(view.value.metric, [low, high], y), ...dates(fleet.dates, x, width), ...marks, ...lines);
}

/** Three values, with lines across. */
function axes(metric: string, [low, high]: [number, number], y: (level: number) => number): SVGElement[] {
  return [0.1, 0.5, 0.9].flatMap((part) => {
    const level = low + (high - low) * part;
    return [svg("line", { class: "across", x1: LEFT, x2: "100%", y1: y(level), y2: y(level) }), svg("text", { x: LEFT - 8, y: y(level) + 4, "text-anchor": "end" }, measured(metric, level))];
  });
}

function dates(all: string[], x: (step: number) => number, width: number): SVGElement[] {
  const every = Math.max(1, Math.ceil((all.length * LEAST_TICK) / (width - LEFT - RIGHT)));
  return all.flatMap((date, step) => {
    if (step % every !== 0) return [];
    const anchor = step === 0 ? "start" : x(step) > width - LEAST_TICK / 2 ? "end" : "middle";
    return [svg("line", { class: "across", x1: x(step), x2: x(step), y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 5 }), svg("text", { x: x(step), y: HEIGHT - 8, "text-anchor": anchor }, date)];
  });
}
