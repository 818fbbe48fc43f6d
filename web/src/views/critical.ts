// The waits of a task: summed, and its longest waits, each with a link to the timeline.

import type { CriticalDocument } from "../data/report";
import { timestampOf } from "../clock";
import { el, rowsTable, section } from "../dom";
import type { Context } from "../focus";
import { count, share, time } from "../format";
import { offsetOf } from "./timeline/arrows";

/** Parts shown by default. */
const FIRST = 12;

type Part = Pick<CriticalDocument["parts"][number], "machine" | "thread" | "what" | "time_ns"> & { count: number | null };

export function critical(context: Context): HTMLElement | null {
  const of = context.report.critical;
  if (!of) return null;
  const others: Part[] = of.others_ns > 0 ? [{ machine: "", thread: "all others", what: "", time_ns: of.others_ns, count: null }] : [];
  const parts: Part[] = [...of.parts, ...others];
  const note = "Each wait is followed back through its causes: another task, its vCPU in a run queue, an exit, a thread of the VMM, a timer. The parts add up to the time waited.";
  return section(
    "critical",
    `What ${of.task} waited for`,
    el("p", { class: "note" }, note),
    ...(of.waits.length > 0 ? [waits(context, of)] : []),
    el("div", { class: "scroll" }, table(context, of, parts.slice(0, FIRST))),
    parts.length > FIRST ? all(context, of, parts) : null,
  );
}

function all(context: Context, of: CriticalDocument, parts: Part[]): HTMLElement {
  const further = parts.slice(FIRST);
  const details = el("details", { class: "behind" }, el("summary", {}, `${count(further.length)} more`));
  details.addEventListener("toggle", () => {
    if (details.open && !details.querySelector("table")) details.append(el("div", { class: "scroll" }, table(context, of, further)));
  });
  return details;
}

function table({ report }: Context, { task, waited_ns }: CriticalDocument, parts: Part[]): HTMLTableElement {
  const ns = report.nanoseconds;
  const rows = parts.map(({ machine, thread, what, time_ns, count: times }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, machine ? `${machine}: ${thread}` : thread),
      el("td", {}, what),
      el("td", { class: "number", "data-value": time_ns }, time(time_ns, ns)),
      el("td", {}, el("span", { class: "leafbar" }, el("i", { style: `width: ${(100 * time_ns) / Math.max(1, waited_ns)}%; background: var(--accent)` })), ` ${share(time_ns, waited_ns, 1)}`),
      el("td", { class: "number" }, times === null ? "" : count(times)),
    ),
  );
  return rowsTable(`${time(waited_ns, ns)} that ${task} waited`, ["who", "did", "time", "share of it", "times"], rows, 2);
}

/** Links to waits, which the timeline draws. */
function waits({ report, showRequest }: Context, of: CriticalDocument): HTMLElement {
  const link = ({ from_ns, to_ns }: CriticalDocument["waits"][number], at: number) => {
    const title = `Draw it in the timeline, from ${timestampOf(report, offsetOf(report, from_ns))} on`;
    return el("button", { type: "button", class: "shown", "data-of": `${at}.wait`, title, onclick: () => showRequest(`${at}.wait`) }, time(to_ns - from_ns, report.nanoseconds));
  };
  return el("p", { class: "examples" }, "The longest, in the timeline: ", ...of.waits.map(link));
}
