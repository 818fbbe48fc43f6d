// The end of the page: losses, clocks, the recorder's cost, merged spans.

import { timeOf } from "../data/report";
import { el } from "../dom";
import type { Context } from "../focus";
import { count, share, time } from "../format";

export function status({ report }: Context): HTMLElement {
  return el(
    "footer",
    { class: "status", "aria-label": "Quality of this recording" },
    ...[losses(report), clocks(report), cost(report), merged(report)].map(([good, title, words, hint]) =>
      el("div", { class: good, title: hint }, el("b", {}, title), ` ${words}`),
    ),
  );
}

type Said = ["good" | "warn" | "plain", string, string, string];
type Report = Context["report"];

function losses({ exits }: Report): Said {
  const { events_lost, uncounted_losses, events_missing, pages_damaged, pairs_dropped, known } = exits.losses;
  if (events_lost + uncounted_losses + events_missing + pages_damaged + pairs_dropped === 0) {
    if (!known) return ["plain", "Losses", "none seen", "The recording does not say whether events are missing at its end"];
    return ["good", "Losses", "none", "No event was lost, every page could be read"];
  }
  const parts = [
    events_lost ? `${count(events_lost)} events` : "",
    uncounted_losses ? `${count(uncounted_losses)} uncounted` : "",
    events_missing ? `${count(events_missing)} events missing` : "",
    pages_damaged ? `${count(pages_damaged)} places unreadable` : "",
    pairs_dropped ? `${count(pairs_dropped)} exits left out` : "",
  ];
  return ["warn", "Losses", parts.filter(Boolean).join(", "), "Times cover only complete exits; nothing is estimated across a loss"];
}

function clocks({ align, nanoseconds }: Report): Said {
  if (!align || align.guests.length === 0) return ["plain", "Clocks", "one clock", "No guest's recording had to be aligned"];
  const chosen = align.guests.map((guest) => guest.methods.find((one) => one.method === guest.method));
  const outside = chosen.reduce((sum, one) => sum + (one?.violations ?? 0), 0);
  const events = chosen.reduce((sum, one) => sum + (one?.events ?? 0), 0);
  const bounds = align.rows.map((row) => timeOf(row, "bound", nanoseconds));
  const known = bounds.length > 0 && bounds.every((bound) => bound !== null);
  const within = known ? `within ${time(Math.max(...(bounds as number[])), nanoseconds)}` : "no bound stated";
  const methods = [...new Set(align.guests.map((guest) => guest.method ?? "not aligned"))].join(", ");
  const good = outside === 0 && chosen.every((one) => one !== undefined);
  return [good ? "good" : "warn", "Clocks", `${methods}, ${within}, ${count(outside)} of ${count(events)} outside`, "Guest events outside all times at which their vCPU ran its guest"];
}

function cost({ exits }: Report): Said {
  const cost = exits.recorder_cost;
  if (!cost) return ["plain", "Recorder’s cost", "not recorded", "The recorder did not report its own cost"];
  return ["plain", "Recorder’s cost", `${time(cost.cpu_ns)} of CPU time, ${share(cost.cpu_ns, cost.available_ns)}`, "CPU time of the recorder, and its share of the recorded CPUs' time"];
}

function merged({ timeline, nanoseconds }: Report): Said {
  if (timeline.merged_below_ns === 0) return ["good", "Timeline", "every span kept", `${count(timeline.spans)} spans`];
  return ["plain", "Timeline", `below ${time(timeline.merged_below_ns, nanoseconds)} merged`, `${count(timeline.spans)} spans were recorded; short neighbours are merged, their sums are exact`];
}
