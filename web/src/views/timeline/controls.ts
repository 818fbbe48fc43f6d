// The controls above and below the lanes: buttons, keys, and notes for the reader.

import type { Report } from "../../data/report";
import { el } from "../../dom";
import { count, time } from "../../format";
import { KEYS, type Command } from "./keys";

export function controls(field: HTMLElement, found: HTMLElement, run: (command: Command) => void, ...more: HTMLElement[]): HTMLElement {
  const button = (label: string, title: string, command: Command) =>
    el("button", { type: "button", title, "aria-label": title, onclick: () => run(command) }, label);
  const keys = KEYS.flatMap(([names, what]) => [el("dt", {}, names), el("dd", {}, what)]);
  return el(
    "div",
    { class: "controls" },
    field,
    button("‹", "Previous match", "previousMatch"),
    button("›", "Next match", "nextMatch"),
    found,
    el("span", { class: "gap" }),
    ...more,
    button("−", "Zoom out (- or S)", "zoomOut"),
    button("+", "Zoom in (+ or W)", "zoomIn"),
    button("Fit", "Fit: show everything (0)", "fit"),
    el("details", { class: "keys" }, el("summary", {}, "Keys"), el("dl", {}, ...keys)),
  );
}

export function note({ timeline, nanoseconds }: Report): HTMLElement {
  const { spans, merged_below_ns, lanes_left_out } = timeline;
  const notes = [
    `${count(spans)} spans.`,
    "Each pixel column shows its whole time: the height of each colour is the share of its state.",
    "Drag selects, Ctrl + wheel zooms, Shift + wheel or a drag in the strip above moves.",
    merged_below_ns > 0
      ? `Neighbours below ${time(merged_below_ns, nanoseconds)} are merged: the times of their states are exact, their order and labels are not kept.`
      : "",
    lanes_left_out > 0 ? `Lanes of ${count(lanes_left_out)} threads and tasks that ran least are omitted.` : "",
  ];
  return el("p", { class: "note" }, notes.filter(Boolean).join(" "));
}
