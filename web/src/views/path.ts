// Paths of requests: each hop with its place and duration, and one example.

import type { PathDocument, PathExample } from "../data/report";
import { el, plainTable, section, tableBehind } from "../dom";
import type { Context } from "../focus";
import { count, share, time } from "../format";

type Path = PathDocument["paths"][number];

/** The colour of a hop's place. */
const COLOURS: Record<string, string> = {
  guest: "--guest",
  vcpu: "--kernel",
  kernel: "--kernel",
  iothread: "--user",
  vmm: "--user",
  vhost: "--halt-poll",
  recorder: "--waiting",
};

export function paths(context: Context): HTMLElement | null {
  const all = context.report.path?.paths ?? [];
  if (all.length === 0) return null;
  return section(
    "path",
    "Paths of requests",
    el("p", { class: "note" }, "From the start of a request to where the guest continues. Times are the median and the 99th percentile; each bar shows one typical request, to scale."),
    ...all.map((path, at) => picture(context, path, at)),
  );
}

const WHICH: Record<PathExample["of"], [string, string]> = {
  p50: ["a usual one", "the request that the bars show"],
  p99: ["a slow one", "a request near the 99th percentile"],
  worst: ["the slowest", "the request that took longest"],
};

/** Links to requests, which the timeline draws: a typical one, a slow one, the slowest. */
function shown({ report, showRequest }: Context, path: Path, at: number): HTMLElement | null {
  const examples = (path.examples ?? []).filter((one) => one.total_ns > 0);
  if (examples.length === 0 || report.timeline.lanes.length === 0) return null;
  const link = ({ of, total_ns }: PathExample) => {
    const [name, title] = WHICH[of];
    return el("button", { type: "button", class: "shown", "data-of": of, title: `Draw ${title} in the timeline`, onclick: () => showRequest(`${at}.${of}`) }, `${name}, ${time(total_ns)}`);
  };
  return el("p", { class: "examples" }, "Show in the timeline: ", ...examples.map(link));
}

function picture(context: Context, path: Path, at: number): HTMLElement {
  const { total } = path;
  const rows = path.hops.map((hop) => [`${hop.from} → ${hop.to}`, hop.on, taken(path, hop), time(hop.p50_ns), time(hop.p90_ns), time(hop.p99_ns)]);
  const vm = path.vm ? `${path.vm}: ` : "";
  return el(
    "details",
    { class: "path", open: at < 2 },
    el("summary", {}, el("b", {}, vm + path.name), el("span", { class: "figures" }, `${count(path.count)} times · half within ${time(total.p50_ns)} · 90% within ${time(total.p90_ns)} · 99% within ${time(total.p99_ns)}`)),
    el("ol", { class: "hops" }, ...hopsOf(path)),
    shown(context, path, at),
    tableBehind("Table behind this figure", () => plainTable(`Hops of ${path.name}`, ["hop", "on", "taken", "p50", "p90", "p99"], rows)),
  );
}

/** How many of the path's requests took a hop. */
const taken = (path: Path, hop: Path["hops"][number]): string => count(hop.count ?? path.count);

/** The mark of an optional step. */
function optional(path: Path, hop: Path["hops"][number]): string {
  const some = hop.count ?? path.count;
  return some === path.count ? "" : `, in ${share(some, path.count)} of them`;
}

/** One line per hop; its bar shows the hop in one request, to scale. */
function hopsOf(path: Path): HTMLElement[] {
  const steps = path.example ?? [];
  const first = steps[0]?.ts_ns ?? 0;
  const length = Math.max(1, (steps.at(-1)?.ts_ns ?? 0) - first);
  return path.hops.map((hop, at) => {
    // A step that the request didn't take has no bar.
    const end = steps.findIndex((step, place) => (step.hop ?? place - 1) === at && place > 0);
    const [from, to] = [steps[end - 1]?.ts_ns ?? 0, steps[end]?.ts_ns ?? 0];
    const place = `left: ${(100 * (from - first)) / length}%; width: ${(100 * (to - from)) / length}%; background: var(${COLOURS[hop.on] ?? "--other"})`;
    return el(
      "li",
      {},
      el("span", { class: "what" }, at === 0 ? `${hop.from} → ${hop.to}` : `→ ${hop.to}`, el("small", {}, ` on ${hop.on}${optional(path, hop)}`)),
      el("span", { class: "took" }, time(hop.p50_ns), el("small", {}, ` 99% ${time(hop.p99_ns)}`)),
      end > 0 ? el("span", { class: "lane", title: `in this request: ${time(to - from)}` }, el("i", { style: place })) : null,
    );
  });
}
