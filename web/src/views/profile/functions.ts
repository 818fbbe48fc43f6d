// The functions that ran, with self time and total time.

import type { FunctionTime } from "../../data/stacks";
import { el } from "../../dom";
import { count, share, time } from "../../format";
import { TITLES } from "./layers";

/** Functions shown by default, and max functions. */
const [FIRST, MOST] = [15, 1000];

type SortBy = "own" | "total" | "name";

export class Functions {
  readonly element: HTMLElement;
  private readonly table = el("table", { class: "exits called" });
  private readonly more = el("button", { type: "button", "aria-pressed": "false", onclick: () => this.showAll() }, "All of them");
  private all: FunctionTime[] = [];
  private whole = 0;
  private wanted: ((name: string) => boolean) | null = null;
  private sortBy: SortBy = "own";
  private shownAll = false;

  constructor(
    private readonly ns: boolean,
    private readonly open: (key: string) => void,
  ) {
    this.element = el("div", { class: "code-functions" }, el("div", { class: "controls" }, this.more), el("div", { class: "scroll most", tabindex: 0, role: "region", "aria-label": "Functions that ran" }, this.table));
  }

  show(all: FunctionTime[], whole: number, wanted: ((name: string) => boolean) | null): void {
    [this.all, this.whole, this.wanted] = [all, whole, wanted];
    this.draw();
  }

  private showAll(): void {
    this.shownAll = !this.shownAll;
    this.more.setAttribute("aria-pressed", String(this.shownAll));
    this.draw();
  }

  private draw(): void {
    const { sortBy, wanted, ns, whole } = this;
    const found = wanted ? this.all.filter(({ name }) => wanted(name)) : [...this.all];
    found.sort((a, b) => (sortBy === "name" ? 0 : b[sortBy] - a[sortBy]) || a.name.localeCompare(b.name));
    const shown = found.slice(0, this.shownAll || wanted ? MOST : FIRST);
    const number = (key: string, value: number, words: string) => el("td", { class: "number", "data-key": key, "data-value": value }, words);
    const rows = shown.map((one) =>
      el("tr", { "data-function": one.key },
        el("th", { scope: "row" }, el("button", { type: "button", class: "reason", title: "Its callers and callees", onclick: () => this.open(one.key) }, one.name)),
        el("td", {}, TITLES[one.layer]),
        number("own", one.own, time(one.own, ns)), number("own-share", one.own, share(one.own, whole)),
        number("total", one.total, time(one.total, ns)), number("total-share", one.total, share(one.total, whole))),
    );
    this.table.replaceChildren(
      el("caption", {}, `${count(shown.length)} of ${count(this.all.length)} functions`),
      el("thead", {}, el("tr", {}, this.heading("name", "function", "By name"), el("th", { scope: "col" }, el("span", { class: "plain" }, "whose")),
        this.heading("own", "self", "In the function itself"), el("th", { scope: "col", class: "number" }, el("span", { class: "plain" }, "self%")),
        this.heading("total", "total", "Including all callees, once per stack"), el("th", { scope: "col", class: "number" }, el("span", { class: "plain" }, "total%")))),
      el("tbody", {}, ...rows),
    );
  }

  private heading(by: SortBy, title: string, hint: string): HTMLElement {
    const sorted = by === this.sortBy;
    const sort = () => {
      this.sortBy = by;
      this.draw();
      this.table.querySelector<HTMLElement>(`th[data-key="${by}"] button`)?.focus();
    };
    return el("th", { scope: "col", class: by === "name" ? null : "number", "data-key": by, title: hint, "aria-sort": sorted ? (by === "name" ? "ascending" : "descending") : "none" },
      el("button", { type: "button", onclick: sort }, title, el("span", { "aria-hidden": "true" }, sorted ? (by === "name" ? " ▲" : " ▼") : "")));
  }
}
