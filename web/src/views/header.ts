// Title, source of the recording, links to the sections, light or dark.

import { setClockMode } from "../clock";
import { el } from "../dom";
import type { Context } from "../focus";
import type { ViewStore } from "../view";
import { count, timestamp, time } from "../format";

export function header({ report, view }: Context): HTMLElement {
  const vms = report.exits.vms.length;
  const exits = report.exits.rows.reduce((sum, row) => sum + row.count, 0);
  const threads = vms === 0 ? (report.profile?.owners ?? []) : [];
  const recorded = [
    `${count(exits)} VM exits`,
    `${count(vms)} VM${vms === 1 ? "" : "s"}`,
    `${time(report.length_ns, report.nanoseconds)} from ${timestamp(report.origin, 0, report.nanoseconds)}`,
  ];
  // Samples without a VM may come without any event.
  const sampled = [
    `${time(threads.reduce((sum, one) => sum + one.time_ns, 0), report.nanoseconds)} of CPU time, by samples`,
    `${count(threads.length)} thread${threads.length === 1 ? "" : "s"}`,
  ];
  const facts = threads.length > 0 ? sampled : recorded;
  return el(
    "header",
    { class: "top" },
    el("div", {}, el("p", { class: "brand" }, "Hyperscope"), el("h1", {}, report.title), el("p", { class: "facts" }, facts.join(" · "))),
    el("div", { class: "tools" }, clockButton(view), themeButton(view)),
  );
}

/** Links to the existing sections. */
export function contents({ view }: Context, sections: HTMLElement[]): HTMLElement {
  // The rest of the view stays in the address.
  const go = (event: Event, one: HTMLElement) => {
    event.preventDefault();
    view.update({ at: one.id });
    one.scrollIntoView({ block: "start" });
    one.focus({ preventScroll: true });
  };
  const link = (one: HTMLElement) => el("a", { href: `#${one.id}`, onclick: (event) => go(event, one) }, one.querySelector("h2")?.textContent ?? one.id);
  return el("nav", { class: "contents", "aria-label": "Sections" }, ...sections.map(link));
}

/** Stores the choice of a light or dark page. */
export interface ThemeKeeper {
  readonly value: { theme: "light" | "dark" | null };
  update(part: { theme: "light" | "dark" }): void;
  follow(listener: () => void): void;
}

/**
 * The system's choice of light or dark, until the reader makes another one. The style sheet uses only the attribute.
 */
export function themeButton(view: ThemeKeeper): HTMLElement {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = el("button", { type: "button", class: "theme" });
  const show = (theme: "dark" | "light") => {
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "☀ Light" : "☾ Dark";
    dispatchEvent(new Event("hyperscope:theme"));
  };
  const follow = () => show(view.value.theme ?? (system.matches ? "dark" : "light"));
  button.addEventListener("click", () => {
    view.update({ theme: root.dataset.theme === "dark" ? "light" : "dark" });
    follow();
  });
  system.addEventListener("change", follow);
  view.follow(follow);
  follow();
  return button;
}

/** Timestamps since the beginning, or on the recording's clock. */
function clockButton(view: ViewStore): HTMLElement {
  const button = el("button", { type: "button", class: "clock", title: "Times since the beginning, or on the recording’s clock" });
  const follow = () => {
    setClockMode(view.value.clock);
    const absolute = view.value.clock === "absolute";
    button.textContent = "Recording’s clock";
    button.setAttribute("aria-pressed", String(absolute));
  };
  button.addEventListener("click", () => {
    view.update({ clock: view.value.clock === "absolute" ? "relative" : "absolute" });
    follow();
  });
  view.follow(follow);
  follow();
  return button;
}
