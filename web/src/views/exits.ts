// The exits table: every number of `hyperscope exits`, with the reader's sort order and filters.

import type { Heat } from "../data/heat";
import { groupsOf, histogramOf } from "../data/heat";
import type { ExitRow } from "../data/report";
import { el, section } from "../dom";
import { describe, EVERYTHING, inFocus, type Context } from "../focus";
import { count } from "../format";
import { columnsFor, type Column } from "./exit_columns";
import { rangeOf } from "./sparkline";

export function exits(context: Context, heat: Heat | null): HTMLElement {
  const table = new ExitsTable(context, heat);
  return section("exits", "Exits", table.controls, el("div", { class: "scroll wide", tabindex: 0, role: "region", "aria-label": "Exits table" }, table.element), table.note);
}

/** Max rows shown: others can be found by sorting or filtering. */
const MOST_ROWS = 1000;

class ExitsTable {
  readonly element = el("table", { class: "exits" });
  readonly controls: HTMLElement;
  readonly note = el("p", { class: "note" });
  private readonly columns: Column[];
  private sortBy = "share";
  private ascending = false;
  private all = false;

  constructor(
    private readonly context: Context,
    heat: Heat | null,
  ) {
    const { report } = context;
    const groups = groupsOf(report.exits.rows, heat?.groups ?? []);
    const histograms = new Map(report.exits.rows.map((row, at) => [row, histogramOf(groups[at] ?? [])]));
    const range = rangeOf([...histograms.values()]);
    this.columns = columnsFor(report, histograms, range, heat?.info.rows_per_octave ?? 4);
    this.controls = this.makeControls();
    context.focus.follow(() => this.draw());
  }

  private makeControls(): HTMLElement {
    const filter = el("input", {
      type: "search",
      id: "exits-filter",
      placeholder: "Filter: VM, reason, code …",
      "aria-label": "Filter exits by text",
      value: this.context.view.value.exits,
      oninput: () => {
        this.context.view.update({ exits: filter.value });
        this.draw();
      },
    });
    this.context.view.follow((view) => {
      filter.value = view.exits;
      this.draw();
    });
    const more = el("button", {
      type: "button",
      "aria-pressed": "false",
      onclick: () => {
        this.all = !this.all;
        more.setAttribute("aria-pressed", String(this.all));
        this.draw();
      },
    }, "All numbers");
    const focused = el("button", { type: "button", class: "chip", hidden: true, onclick: () => this.context.focus.set(EVERYTHING) });
    this.context.focus.follow((focus) => {
      const words = describe(focus);
      focused.hidden = words === "";
      focused.textContent = `${words}  ✕`;
      focused.setAttribute("aria-label", `Shown are only ${words}: show everything`);
    });
    return el("div", { class: "controls" }, filter, more, focused);
  }

  private shown(): ExitRow[] {
    const { report, focus } = this.context;
    const words = this.context.view.value.exits.toLowerCase();
    const matches = (row: ExitRow) =>
      `${row.vm} ${row.level === 2 ? "l2 level 2" : "l1 level 1"} ${row.reason} ${row.code} ${row.isa} ${row.source}`
        .toLowerCase()
        .includes(words);
    const rows = report.exits.rows.filter((row) => inFocus(focus.value, row) && matches(row));
    const column = this.columns.find((one) => one.key === this.sortBy);
    if (!column) return rows;
    const sign = this.ascending ? 1 : -1;
    return rows.sort((a, b) => {
      const [left, right] = [column.sort(a), column.sort(b)];
      // Values that were not recorded come last in both directions.
      if (left === null || right === null) return Number(left === null) - Number(right === null);
      return left < right ? -sign : left > right ? sign : 0;
    });
  }

  private draw(): void {
    const { report } = this.context;
    const rows = this.shown();
    const columns = this.columns.filter((column) => this.all || column.main);
    const head = el("thead", {}, el("tr", {}, ...columns.map((column) => this.heading(column))));
    const body = el("tbody", {}, ...rows.slice(0, MOST_ROWS).map((row) => this.row(row, columns)));
    const cut = rows.length > MOST_ROWS ? `; the first ${count(MOST_ROWS)} are shown: sort or filter for others` : "";
    const caption = el("caption", {}, `${count(rows.length)} of ${count(report.exits.rows.length)} groups of exits, by VM, level and reason${cut}`);
    this.element.replaceChildren(caption, head, body);
    const timed = report.exits.rows.every((row) => row.count === row.paired);
    this.note.textContent = [
      "– not recorded.",
      timed ? "" : "Exits without an entry, or during which events were lost, are counted but not timed.",
      this.all ? "" : "“All numbers” shows the rest; hyperscope exits prints the same.",
    ].filter(Boolean).join(" ");
  }

  private heading(column: Column): HTMLElement {
    const sorted = this.sortBy === column.key;
    const sort = () => {
      this.ascending = sorted ? !this.ascending : column.text;
      this.sortBy = column.key;
      this.draw();
      this.element.querySelector<HTMLElement>(`[data-key="${column.key}"] button`)?.focus();
    };
    const arrow = sorted ? (this.ascending ? " ▲" : " ▼") : "";
    return el(
      "th",
      { scope: "col", "data-key": column.key, class: column.text ? null : "number", "aria-sort": sorted ? (this.ascending ? "ascending" : "descending") : "none", title: column.hint },
      el("button", { type: "button", onclick: sort }, column.title, el("span", { "aria-hidden": "true" }, arrow)),
    );
  }

  private row(row: ExitRow, columns: Column[]): HTMLElement {
    const cells = columns.map((column, at) => {
      const cell = el(at === 0 ? "th" : "td", {
        "data-key": column.key,
        "data-value": column.value(row),
        class: column.text ? null : "number",
        scope: at === 0 ? "row" : null,
      });
      cell.append(...column.cell(row, () => this.look(row)));
      return cell;
    });
    // The button in the row does the same for readers without a pointer.
    const pointed = (event: Event) => {
      if (!(event.target instanceof Element && event.target.closest("button"))) this.look(row);
    };
    return el("tr", { class: row.waiting ? "waiting" : null, onclick: pointed }, ...cells);
  }

  /** Focuses all figures on a row, and shows it in the drawer. */
  private look(row: ExitRow): void {
    this.context.focus.set({ vm: row.vm, level: row.level, reason: row.reason });
    this.context.inspect();
  }
}
