// Selects the shown lanes: a filter by words, lanes that ran least, hidden lanes.

import { el } from "../../dom";
import type { Context } from "../../focus";
import { count } from "../../format";
import { unfolded, type Group, type LaneRow } from "./rows";
import { laneTitle } from "./words";

export class LaneBar {
  readonly element: HTMLElement;
  private readonly filter: HTMLInputElement;
  private readonly quiet: HTMLButtonElement;
  private readonly shown = el("span", { class: "found", role: "status" });
  private readonly hidden = el("span", { class: "hidden-lanes" });

  constructor(
    private readonly context: Context,
    private readonly groups: Group[],
    private readonly changed: () => void,
  ) {
    const { view } = context;
    this.filter = el("input", {
      type: "search",
      placeholder: "Lanes: VM, vCPU, thread …",
      "aria-label": "Show only lanes with these words",
      oninput: () => this.update({ lanes: this.filter.value }),
    });
    this.quiet = el("button", { type: "button", onclick: () => this.update({ quiet: !view.value.quiet }) });
    this.element = el("div", { class: "controls lane-bar" }, this.filter, this.shown, this.quiet, this.hidden);
  }

  private update(part: { lanes?: string; quiet?: boolean; hidden?: number[]; pinned?: number[] }): void {
    this.context.view.update(part);
    this.changed();
  }

  /** Pins a lane to the top, or puts it back. */
  pin({ at }: LaneRow): void {
    const { pinned, hidden } = this.context.view.value;
    const put = pinned.includes(at) ? pinned.filter((one) => one !== at) : [...pinned, at];
    this.update({ pinned: put, hidden: hidden.filter((one) => one !== at) });
  }

  hide({ at }: LaneRow): void {
    const { pinned, hidden } = this.context.view.value;
    this.update({ pinned: pinned.filter((one) => one !== at), hidden: [...new Set([...hidden, at])] });
  }

  /** Makes a lane visible. */
  bring(row: LaneRow): void {
    const { hidden, lanes, quiet } = this.context.view.value;
    row.group.folded = false;
    this.update({ hidden: hidden.filter((one) => one !== row.at), lanes: unfolded(this.groups).includes(row) ? lanes : "", quiet: quiet || row.info.quiet });
  }

  /** Updates the bar; call it once lanes are placed. */
  show(): void {
    const { view, report } = this.context;
    const { lanes, quiet, hidden } = view.value;
    if (this.filter.value !== lanes) this.filter.value = lanes;
    const few = report.timeline.lanes.filter((lane) => lane.quiet).length;
    this.quiet.hidden = few === 0;
    this.quiet.textContent = quiet ? `Hide ${count(few)} that ran least` : `Show ${count(few)} more that ran least`;
    const wanted = this.groups.reduce((sum, group) => sum + group.wanted.length, 0);
    this.shown.textContent = `${count(wanted)} of ${count(report.timeline.lanes.length)} lanes`;
    const rows = this.groups.flatMap((group) => group.rows).filter((row) => hidden.includes(row.at));
    const chip = (row: LaneRow) => {
      const title = laneTitle(row.info);
      const back = () => this.update({ hidden: view.value.hidden.filter((one) => one !== row.at) });
      return el("button", { type: "button", class: "chip", "aria-label": `Show ${title} again`, onclick: back }, `${title}  ✕`);
    };
    const all = el("button", { type: "button", onclick: () => this.update({ hidden: [] }) }, "Show hidden lanes");
    this.hidden.replaceChildren(...(rows.length > 0 ? ["Hidden: ", ...rows.slice(0, 8).map(chip), rows.length > 8 ? `and ${count(rows.length - 8)} more ` : "", all] : []));
  }
}
