// Title, where the recording came from, links to the sections, light or dark.

import { el } from "../dom";
import type { Context } from "../focus";
import { count, timestamp, time } from "../format";

export function header({ report }: Context): HTMLElement {
  const vms = report.exits.vms.length;
  const exits = report.exits.rows.reduce((sum, row) => sum + row.count, 0);
  const facts = [
    `${count(exits)} VM exits`,
    `${count(vms)} VM${vms === 1 ? "" : "s"}`,
    `${time(report.length_ns, report.nanoseconds)} from ${timestamp(report.origin, 0, report.nanoseconds)}`,
  ];
  return el(
    "header",
    { class: "top" },
    el("div", {}, el("p", { class: "brand" }, "Hyperscope"), el("h1", {}, report.title), el("p", { class: "facts" }, facts.join(" · "))),
    el("div", { class: "tools" }, themeButton()),
  );
}

/** Links to the sections that there are. */
export function contents(sections: HTMLElement[]): HTMLElement {
  const link = (one: HTMLElement) => el("a", { href: `#${one.id}` }, one.querySelector("h2")?.textContent ?? one.id);
  return el("nav", { class: "contents", "aria-label": "Sections" }, ...sections.map(link));
}

/** The system's choice of light or dark, until the reader makes another one. The style sheet knows the attribute alone. */
function themeButton(): HTMLElement {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = el("button", { type: "button", class: "theme" });
  let chosen = false;
  const show = (theme: "dark" | "light") => {
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "☀ Light" : "☾ Dark";
    dispatchEvent(new Event("hyperscope:theme"));
  };
  const followSystem = () => chosen || show(system.matches ? "dark" : "light");
  button.addEventListener("click", () => {
    chosen = true;
    show(root.dataset.theme === "dark" ? "light" : "dark");
  });
  system.addEventListener("change", followSystem);
  followSystem();
  return button;
}
