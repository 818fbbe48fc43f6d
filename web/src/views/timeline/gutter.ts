// Names of lanes, left of them; headings of groups fold their lanes. Pointing at a name shows buttons
// that pin and hide its lane; keys do the same for the chosen one.

import { el } from "../../dom";
import { count } from "../../format";
import { nameOf, type Group, type LaneRow } from "./rows";
import { laneTitle } from "./words";

export interface LaneActions {
  /** A group was folded or unfolded. */
  changed: () => void;
  pin: (row: LaneRow) => void;
  hide: (row: LaneRow) => void;
}

interface Name {
  element: HTMLElement;
  words: HTMLElement;
  pin: HTMLElement;
}

export class Gutter {
  readonly element = el("div", { class: "gutter" });
  private readonly headings = new Map<Group, HTMLElement>();
  private readonly names = new Map<LaneRow, Name>();

  constructor(
    private readonly groups: Group[],
    private readonly actions: LaneActions,
  ) {
    for (const group of groups) {
      const fold = () => {
        group.folded = group.open;
        actions.changed();
      };
      const heading = el("button", { type: "button", class: "group", onclick: fold, title: group.title });
      this.headings.set(group, heading);
      this.element.append(heading);
      for (const row of group.rows) this.element.append(this.nameFor(row));
    }
  }

  /** Buttons of names are not reachable by Tab: hundreds of lanes would have hundreds of stops. */
  private nameFor(row: LaneRow): HTMLElement {
    const title = laneTitle(row.info);
    const button = (words: string, press: () => void) =>
      el("button", { type: "button", tabindex: -1, "aria-label": `${words} ${title}`, onclick: press }, words);
    const pin = button("Pin", () => this.actions.pin(row));
    const words = el("span", {});
    const element = el("div", { class: "name", title: `${row.group.title}: ${title}` }, el("span", { class: "acts" }, pin, button("Hide", () => this.actions.hide(row))), words);
    this.names.set(row, { element, words, pin });
    return element;
  }

  /** Moves all names to their rows. */
  place(): void {
    for (const { element } of this.names.values()) element.hidden = true;
    for (const group of this.groups) {
      const heading = this.headings.get(group)!;
      heading.hidden = group.wanted.length === 0;
      heading.style.top = `${group.y}px`;
      heading.setAttribute("aria-expanded", String(group.open));
      heading.textContent = `${group.open ? "▾" : "▸"} ${group.title}${group.open ? "" : ` (${count(group.wanted.length)})`}`;
      if (group.open) for (const row of group.wanted) this.placeName(row, group.pinned);
    }
  }

  private placeName(row: LaneRow, pinned: boolean): void {
    const { element, words, pin } = this.names.get(row)!;
    element.hidden = false;
    element.style.top = `${row.y}px`;
    element.style.height = element.style.lineHeight = `${row.height}px`;
    words.textContent = nameOf(row, pinned);
    pin.textContent = pinned ? "Unpin" : "Pin";
    pin.setAttribute("aria-label", `${pin.textContent} ${laneTitle(row.info)}`);
  }

  mark(chosen: LaneRow | null): void {
    for (const [row, { element }] of this.names) element.classList.toggle("chosen", row === chosen);
  }
}
