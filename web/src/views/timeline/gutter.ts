// Names of lanes, left of them; headings of groups fold their lanes away.

import { el } from "../../dom";
import { count } from "../../format";
import { nameOf, type Group, type LaneRow } from "./rows";

export class Gutter {
  readonly element = el("div", { class: "gutter" });
  private readonly headings = new Map<Group, HTMLElement>();
  private readonly names = new Map<LaneRow, HTMLElement>();

  constructor(
    private readonly groups: Group[],
    changed: () => void,
  ) {
    for (const group of groups) {
      const fold = () => {
        group.folded = !group.folded;
        changed();
      };
      const heading = el("button", { type: "button", class: "group", onclick: fold, title: group.title });
      this.headings.set(group, heading);
      this.element.append(heading);
      for (const row of group.rows) {
        const name = el("div", { class: "name", title: `${group.title}: ${nameOf(row.info)}` }, nameOf(row.info));
        this.names.set(row, name);
        this.element.append(name);
      }
    }
  }

  /** Puts all names where the rows are. */
  place(): void {
    for (const group of this.groups) {
      const heading = this.headings.get(group)!;
      heading.style.top = `${group.y}px`;
      heading.setAttribute("aria-expanded", String(!group.folded));
      heading.textContent = `${group.folded ? "▸" : "▾"} ${group.title}${group.folded ? ` (${count(group.rows.length)})` : ""}`;
      for (const row of group.rows) {
        const name = this.names.get(row)!;
        name.style.top = `${row.y}px`;
        name.style.height = name.style.lineHeight = `${row.height}px`;
        name.hidden = group.folded;
      }
    }
  }

  mark(chosen: LaneRow | null): void {
    for (const [row, name] of this.names) name.classList.toggle("chosen", row === chosen);
  }
}
