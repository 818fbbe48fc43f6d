// Requests of a stretch of time, and the one that is drawn.

import type { Report } from "../../data/report";
import { timestampOf } from "../../clock";
import { el, plainTable } from "../../dom";
import { time } from "../../format";
import { offsetOf, type ShownRequest } from "../timeline/arrows";
import type { Range } from "../timeline/range";
import { laneTitle } from "../timeline/words";
import { command } from "./exits";

const WHICH = { p50: "a usual one", p99: "a slow one", worst: "the slowest" };

/** The request that is drawn, step by step. */
function drawn(report: Report, { path, example, lanes }: ShownRequest): HTMLElement[] {
  const begun = example.steps[0]?.ts_ns ?? 0;
  const rows = example.steps.map((step, at) => {
    const lane = report.timeline.lanes[lanes[at] ?? -1];
    const before = example.steps[at - 1]?.ts_ns ?? step.ts_ns;
    return [timestampOf(report, offsetOf(report, step.ts_ns)), time(step.ts_ns - begun), time(step.ts_ns - before), step.what, step.on, lane ? laneTitle(lane) : "in no lane of this page"];
  });
  const title = `${path.vm ? `${path.vm}: ` : ""}${path.name}, ${WHICH[example.of]}: ${time(example.total_ns)}`;
  return [el("p", { class: "request" }, el("b", {}, title)), plainTable(`Steps of ${title}`, ["at", "since the beginning", "since the step before", "what", "on", "lane"], rows)];
}

export function requests(report: Report, range: Range, request: ShownRequest | null): HTMLElement[] {
  if (request) return drawn(report, request);
  if (!report.path) return [el("p", {}, "No requests were found in this recording.")];
  const words = "The page holds requests of the whole recording only, in “Paths of requests”. Those of the selection: ";
  return [el("p", { class: "note" }, `${words}${command(report, range).replace("hyperscope exits", "hyperscope path")}`)];
}
