// Title, where the recording came from, links to the sections, light or dark.

import { el } from "../dom";
import type { Context } from "../focus";
import { count, moment, time } from "../format";

export function header({ report }: Context): HTMLElement {
  const vms = report.exits.vms.length;
  const exits = report.exits.rows.reduce((sum, row) => sum + row.count, 0);
  const facts = [
    `${count(exits)} VM exits`,
    `${count(vms)} VM${vms === 1 ? "" : "s"}`,
    `${time(report.length_ns, report.nanoseconds)} from ${moment(report.origin, 0, report.nanoseconds)}`,
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

function themeButton(): HTMLElement {
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const button = el("button", { type: "button", class: "theme" });
  const tell = () => {
    button.textContent = dark() ? "☀ Light" : "☾ Dark";
    dispatchEvent(new Event("hyperscope:theme"));
  };
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    tell();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell);
  tell();
  return button;
}
