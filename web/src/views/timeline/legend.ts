// The legend: states that occur in the lanes, with their colours. A state can be emphasized or hidden.

import { variableOf } from "../../colours";
import { el } from "../../dom";
import type { Context } from "../../focus";
import type { LaneRow } from "./rows";

export class Legend {
  readonly element = el("ul", { class: "legend acts-on-states", "aria-label": "Colours of states; click to highlight one" });

  constructor(
    private readonly context: Context,
    private readonly changed: () => void,
  ) {}

  /** Shows the states that occur in these lanes. */
  show(rows: LaneRow[]): void {
    const { report, view } = this.context;
    const there = new Set(rows.flatMap((row) => row.lane?.states ?? []));
    const entries = report.timeline.states.filter((_, state) => there.has(state));
    const { states, without } = view.value;
    const nameless = (words: string | null | undefined) => words?.replace(/^(show|hide) /, "* ") ?? null;
    const focused = this.element.contains(document.activeElement) ? nameless(document.activeElement?.getAttribute("aria-label")) : null;
    const items = entries.map(({ key, title }) => this.entry(key, title, states.includes(key), without.includes(key)));
    const all = el("button", { type: "button", class: "all", "aria-label": "Reset all states", onclick: () => this.update([], []) }, "All states");
    this.element.replaceChildren(...items, ...(states.length + without.length > 0 ? [el("li", {}, all)] : []));
    const again = focused ? [...this.element.querySelectorAll("button")].find((one) => nameless(one.getAttribute("aria-label")) === focused) : null;
    again?.focus({ preventScroll: true });
  }

  private entry(key: string, title: string, out: boolean, hidden: boolean): HTMLElement {
    const { view } = this.context;
    const turned = (all: string[]) => (all.includes(key) ? all.filter((one) => one !== key) : [...all, key]);
    const without = (all: string[]) => all.filter((one) => one !== key);
    const stand = () => this.update(turned(view.value.states), without(view.value.without));
    const hide = () => this.update(without(view.value.states), turned(view.value.without));
    return el(
      "li",
      { class: hidden ? "left-out" : null },
      el("button", { type: "button", "aria-pressed": String(out), "aria-label": `${title}: highlight it`, title: "Highlight it", onclick: stand }, el("i", { style: `background: var(${variableOf(key)})` }), title),
      el("button", { type: "button", class: "hide", "aria-pressed": String(hidden), "aria-label": `${hidden ? "show" : "hide"} ${title}`, title: hidden ? "Draw it again" : "Don’t draw it", onclick: hide }, hidden ? "show" : "hide"),
    );
  }

  private update(states: string[], without: string[]): void {
    this.context.view.update({ states, without });
    this.changed();
  }
}
