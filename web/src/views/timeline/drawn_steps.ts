// A request of a path, or the waits of a task, drawn step by step from lane to lane.

import type { Arrow } from "../../data/arrows";
import type { PathExample, Report } from "../../data/report";
import { time } from "../../format";
import { offsetOf } from "./arrows";

export interface DrawnSteps {
  title: string;
  steps: { ts_ns: number; what: string; on: string }[];
  /** By step, its lane. */
  lanes: (number | null)[];
}

const WHICH: Record<PathExample["of"], string> = { p50: "a usual one", p99: "a slow one", worst: "the slowest" };

/** The steps with a name in an address: `PATH.KIND` is a request, `PLACE.wait` one of the longest waits. */
export function stepsNamed(report: Report, name: string): DrawnSteps | null {
  const [, at, of] = /^(\d{1,4})\.(p50|p99|worst|wait)$/.exec(name) ?? [];
  if (of === undefined) return null;
  return of === "wait" ? wait(report, Number(at)) : request(report, Number(at), of);
}

function request(report: Report, at: number, of: string): DrawnSteps | null {
  const path = report.path?.paths[at];
  const place = path?.examples?.findIndex((one) => one.of === of) ?? -1;
  const example = path?.examples?.[place];
  const lanes = report.arrows?.request_lanes[at]?.[place];
  if (!path || !example || !lanes) return null;
  const title = `${path.vm ? `${path.vm}: ` : ""}${path.name}, ${WHICH[example.of]}: ${time(example.total_ns)}`;
  return { title, steps: example.steps, lanes };
}

function wait(report: Report, at: number): DrawnSteps | null {
  const { task, waits } = report.critical ?? { task: "", waits: [] };
  const one = waits[at];
  if (!one) return null;
  const steps = one.steps.map(({ from_ns, what, machine, thread }) => ({ ts_ns: from_ns, what, on: `${machine} ${thread}` }));
  steps.push({ ts_ns: one.to_ns, what: "goes on", on: task });
  return { title: `What ${task} waited for, ${time(one.to_ns - one.from_ns, report.nanoseconds)}`, steps, lanes: [...one.steps.map(({ lane }) => lane), one.lane] };
}

/** From step to step, over lanes in the page. */
export function arrowsOfSteps(report: Report, { steps, lanes }: DrawnSteps): Arrow[] {
  const ends = steps.flatMap((step, at) => (lanes[at] == null ? [] : [{ lane: lanes[at], at: offsetOf(report, step.ts_ns) }]));
  return ends.slice(1).map((to, at) => ({ kind: "request", from: ends[at]!, to }));
}
