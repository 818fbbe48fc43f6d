// The search field of the timeline: the number of matching spans, the chosen one, and the next.

import { readTimestamp, timestampOf } from "../../clock";
import type { EachExit } from "../../data/each_exit";
import { el } from "../../dom";
import type { Context } from "../../focus";
import { count } from "../../format";
import type { LaneRow } from "./rows";
import { Search, type Match } from "./search";

export class Finder {
  readonly field: HTMLInputElement;
  readonly said = el("span", { class: "found", role: "status" });
  private search: Search;
  private matches = 0;

  constructor(
    private readonly context: Context,
    private readonly of: () => { rows: LaneRow[]; lists: EachExit[]; chosen: Match | null },
  ) {
    this.search = new Search(context.report, [], "");
    this.field = el("input", { type: "search", placeholder: "Find reason, MSR, thread, time …  ( / )", "aria-label": "Find in the timeline, or go to a time", value: context.view.value.find, oninput: () => this.find() });
  }

  /** Shows the search text of an address. */
  enter(words: string): void {
    this.field.value = words;
    this.find();
  }

  find(): void {
    this.context.view.update({ find: this.field.value });
    const { rows, lists } = this.of();
    this.search = new Search(this.context.report, rows, this.field.value, lists);
    this.matches = this.search.count();
    this.say();
  }

  /** Shows the number of matches and the chosen one; for a timestamp, the effect of Enter. */
  say(): void {
    const at = this.timestamp;
    const { chosen } = this.of();
    const rank = chosen && !this.search.empty ? this.search.rank(chosen) : null;
    if (at !== null) this.said.textContent = `Enter: go to ${timestampOf(this.context.report, at)}`;
    else if (this.search.empty) this.said.textContent = "";
    else this.said.textContent = rank === null ? `${count(this.matches)} spans` : `${count(rank)} of ${count(this.matches)}`;
  }

  /** The entered timestamp, if it is one. */
  get timestamp(): number | null {
    return readTimestamp(this.context.report, this.field.value);
  }

  next(from: number, forward: boolean): Match | null {
    return this.search.empty ? null : this.search.next(this.of().chosen, from, forward);
  }
}
