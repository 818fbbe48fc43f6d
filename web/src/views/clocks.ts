// The alignment of guests' clocks to their host's, with its precision.

import { timeOf } from "../data/report";
import { el, plainTable, scrolled, section } from "../dom";
import type { Context } from "../focus";
import { count, time } from "../format";

/** Max rows of a table; the JSON of `hyperscope align` has all. */
const MOST_ROWS = 32;

export function clocks({ report }: Context): HTMLElement | null {
  const { align } = report;
  if (!align || align.guests.length === 0) return null;
  const ns = report.nanoseconds;
  const methods = align.guests.flatMap((guest) =>
    guest.methods.map((one) => [
      `${guest.vm}: ${one.method}${one.method === guest.method ? " (taken)" : ""}`,
      one.usable ? "yes" : "no",
      one.usable ? count(one.events) : "–",
      one.usable ? count(one.violations) : "–",
      one.usable ? time(timeOf(one, "worst", ns), ns) : "–",
      one.reason ?? "",
    ]),
  );
  const rows = align.rows.slice(0, MOST_ROWS).map((row) => [
    `${row.vm}, vCPU ${row.vcpu}`,
    row.method,
    count(timeOf(row, "offset", ns)),
    time(timeOf(row, "bound", ns), ns),
    count(row.drift_ppb),
    count(row.events),
    count(row.violations),
  ]);
  return section(
    "clocks",
    "Clocks of guests",
    ...report.align_summaries.map((words) => el("p", {}, `${words}.`)),
    scrolled("Each method", plainTable("Each method, compared with the times at which vCPUs ran their guests", ["method", "usable", "events", "outside", "worst", "why not"], methods)),
    scrolled("Guests", plainTable(
      `Host time = guest time + offset${align.rows.length > MOST_ROWS ? `; ${count(align.rows.length - MOST_ROWS)} more intervals are in hyperscope align` : ""}`,
      ["vCPU", "method", "offset, ns", "bound", "drift, ppb", "events", "outside"],
      rows,
    )),
  );
}
