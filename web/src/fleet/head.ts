// Title, both sides, links to the sections, light or dark.

import { el } from "../dom";
import { count, time } from "../format";
import { themeButton } from "../views/header";
import type { Context } from "./context";
import type { Side } from "./data";

const plural = (value: number, word: string) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;

export function head({ fleet, view }: Context): HTMLElement {
  const { diff, since } = fleet;
  const days = since.from_day ? ` · sessions from ${since.from_day} to ${since.to_day}` : "";
  return el(
    "header",
    { class: "top" },
    el(
      "div",
      {},
      el("p", { class: "brand" }, "Hyperscope fleet"),
      el("h1", {}, fleet.title),
      el("p", { class: "facts" }, `${plural(diff.paired, "host")} on both sides${days}`),
      el("dl", { class: "sides" }, ...side("A", diff.a), ...side("B", diff.b), ...control(fleet)),
    ),
    el("div", { class: "tools" }, themeButton(view)),
  );
}

function side(name: string, { condition, hosts, sessions, covered_ns }: Side): HTMLElement[] {
  const facts = `${plural(hosts, "host")}, ${plural(sessions, "session")}, ${time(covered_ns)} recorded`;
  return [el("dt", {}, name), el("dd", {}, el("code", {}, condition), ` ${facts}`)];
}

function control({ diff }: Context["fleet"]): HTMLElement[] {
  if (diff.control === null) return [];
  return [el("dt", {}, "controls"), el("dd", {}, el("code", {}, diff.control), ` ${plural(diff.controls, "host")}`)];
}

/** Links to the existing sections. */
export function contents({ goTo }: Context, sections: HTMLElement[]): HTMLElement {
  const go = (event: Event, id: string) => {
    event.preventDefault();
    goTo(id);
  };
  const link = (one: HTMLElement) => el("a", { href: `#${one.id}`, onclick: (event) => go(event, one.id) }, one.querySelector("h2")?.textContent ?? one.id);
  return el("nav", { class: "contents", "aria-label": "Sections" }, ...sections.map(link));
}

/** Omissions, and the program that wrote the page. */
export function foot({ fleet }: Context): HTMLElement {
  const { left_out } = fleet.diff;
  const words: Record<string, string> = {
    lost: "that lost too many events",
    host_unknown: "of unknown hosts",
    on_both_sides: "that are on both sides",
    control_in_part: "of hosts that are controls for only a part of B",
  };
  const some = Object.entries(left_out).filter(([, sessions]) => sessions > 0);
  const said = some.map(([why, sessions]) => `Left out: ${plural(sessions, "session")} ${words[why] ?? why}.`);
  return el("footer", { class: "foot note" }, [...said, `Written by ${fleet.generator}.`].join(" "));
}
