// Requests of an interval by path, the longest ones, and the drawn one.

import { requestsWithin, type EachRequest, type RequestGroup, type RequestSums } from "../../data/each_request";
import type { Report } from "../../data/report";
import { timestampOf } from "../../clock";
import { el, plainTable, rowsTable } from "../../dom";
import { count, share, time } from "../../format";
import { offsetOf } from "../timeline/arrows";
import type { DrawnSteps } from "../timeline/drawn_steps";
import type { Range } from "../timeline/range";
import { laneTitle } from "../timeline/words";
import { command, toTheEnd } from "./exits";

/** Max individual requests in the list: the longest, of a path and of all. */
const [SLOWEST_OF_PATH, SLOWEST] = [20, 20];

export interface AskedRequests {
  report: Report;
  range: Range;
  /** Only this VM. */
  vm: string | null;
  all: EachRequest | null;
  /** The drawn request. */
  drawn: DrawnSteps | null;
  /** Shows an interval in the timeline. */
  reveal: (from: number, to: number) => void;
}

/** The drawn request, step by step. */
function drawn(report: Report, { title, steps, lanes }: DrawnSteps): HTMLElement[] {
  const begun = steps[0]?.ts_ns ?? 0;
  const rows = steps.map((step, at) => {
    const lane = report.timeline.lanes[lanes[at] ?? -1];
    const before = steps[at - 1]?.ts_ns ?? step.ts_ns;
    return [timestampOf(report, offsetOf(report, step.ts_ns)), time(step.ts_ns - begun), time(step.ts_ns - before), step.what, step.on, lane ? laneTitle(lane) : "in no lane of this page"];
  });
  return [el("p", { class: "request" }, el("b", {}, title)), plainTable(`Steps of ${title}`, ["at", "since the beginning", "since the step before", "what", "on", "lane"], rows)];
}

export function requests(asked: AskedRequests): HTMLElement[] {
  const { report, all } = asked;
  if (asked.drawn) return drawn(report, asked.drawn);
  if (!report.path) return [el("p", {}, "No requests were found in this recording.")];
  if (!all) {
    const words = "There are too many requests to store each in this page: “Paths of requests” summarises the whole recording. For the selection: ";
    return [el("p", { class: "note" }, words + pathCommand(asked))];
  }
  return within(asked, all);
}

const pathCommand = ({ report, range }: AskedRequests) => command("path", report, range);

function within(asked: AskedRequests, all: EachRequest): HTMLElement[] {
  const { report, vm } = asked;
  const { from, to } = toTheEnd(report, asked.range);
  const { sums, cut } = requestsWithin(all, from, to, (group) => vm === null || group.vm === vm, SLOWEST_OF_PATH);
  const note = [
    "Exact: counts each request that begins and ends in the selection.",
    cut > 0 ? `${count(cut)} that only begin or end in it are omitted.` : "",
    `The same: ${pathCommand(asked)}, which may group paths that differ in optional steps differently.`,
  ];
  const notes = el("p", { class: "note" }, note.filter(Boolean).join(" "));
  if (sums.length === 0) return [notes, el("p", {}, "No request begins and ends in the selection.")];
  return [notes, byPath(report, sums), slowest(asked, sums)];
}

const nameOf = ({ vm, path }: RequestGroup) => (path === null ? "all other paths" : `${vm === null ? "" : `${vm}: `}${path}`);

function byPath(report: Report, sums: RequestSums[]): HTMLElement {
  const ns = report.nanoseconds;
  const whole = sums.reduce((sum, { lengths }) => sum + lengths.sum, 0);
  const requests = sums.reduce((sum, { lengths }) => sum + lengths.count, 0);
  const number = (key: string, value: number | null, words: string) => el("td", { class: "number", "data-key": key, "data-value": value }, words);
  const rows = sums.map(({ group, lengths }) => {
    const length = (key: string, value: number | null) => number(key, value, time(value, ns));
    return el(
      "tr",
      { "data-vm": group.vm, "data-path": group.path },
      el("th", { scope: "row", class: "path-name", "data-key": "path", "data-value": nameOf(group) }, nameOf(group)),
      number("count", lengths.count, count(lengths.count)),
      length("time", lengths.sum),
      number("share", null, share(lengths.sum, whole)),
      length("p50", lengths.at(500)),
      length("p90", lengths.at(900)),
      length("p99", lengths.at(990)),
      length("max", lengths.max),
    );
  });
  const titles = ["path", "requests", "time", "time%", "p50", "p90", "p99", "max"];
  return rowsTable(`${count(requests)} requests in the selection by path, longest total time first`, titles, rows, 1, "picked");
}

/** Each links to its time in the timeline; the selection stays. */
function slowest({ report, reveal }: AskedRequests, sums: RequestSums[]): HTMLElement {
  const each = sums.flatMap(({ group, lengths, slowest }) => slowest.map((one) => ({ ...one, group, usual: lengths.at(500) ?? 0 })));
  each.sort((a, b) => b.length - a.length || a.start - b.start);
  const rows = each.slice(0, SLOWEST).map(({ group, start, length, usual }) => {
    const show = () => reveal(start - length / 2, start + length * 1.5);
    const at = timestampOf(report, start);
    return el(
      "tr",
      {},
      el("td", {}, el("button", { type: "button", class: "reason", title: "Show it in the timeline", "data-at": start, onclick: show }, at)),
      el("th", { scope: "row", class: "path-name" }, nameOf(group)),
      el("td", { class: "number" }, time(length, report.nanoseconds)),
      el("td", { class: "number" }, usual > 0 ? `${(length / usual).toFixed(1)}×` : ""),
    );
  });
  return rowsTable("The slowest of them", ["at", "path", "took", "of its path’s p50"], rows, 2, "picked");
}
