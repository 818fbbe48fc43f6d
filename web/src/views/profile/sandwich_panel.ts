// A function with its callers above it, and its callees below.

import { LAYERS, type Stacks } from "../../data/stacks";
import { el } from "../../dom";
import { share, time } from "../../format";
import { Picture, type Tree } from "./picture";
import { sandwich } from "./sandwich";

export class SandwichPanel {
  readonly element = el("div", { class: "sandwich", hidden: true, role: "group", tabindex: -1 });
  private readonly title = el("h3", {});
  private readonly words = el("p", { class: "note", role: "status" });
  private readonly callers: Picture;
  private readonly callees: Picture;
  private drawn: { tree: Tree; total: Float64Array }[] = [];
  private whole = 0;
  private isFunction: (key: string) => boolean = () => false;

  constructor(
    private readonly ns: boolean,
    private readonly open: (key: string) => void,
  ) {
    const picture = (at: number, title: string) =>
      new Picture(title, { words: (node) => this.describe(at, node), open: (node) => this.openNode(at, node), choose: (node) => (this.words.textContent = this.describe(at, node).join(" · ")), key: (event) => this.key(event) });
    this.callers = picture(0, "Callers, nearest at the bottom");
    this.callees = picture(1, "What it calls");
    const close = el("button", { type: "button", "aria-label": "Close callers and callees", onclick: () => this.open("") }, "Close");
    this.element.append(el("div", { class: "controls" }, this.title, close), this.callers.element, this.callees.element, this.words);
  }

  show(stacks: Stacks, total: Float64Array, key: string): void {
    const made = key === "" ? null : sandwich(stacks, total, key);
    this.element.hidden = key === "";
    if (key === "") return;
    const name = key.slice(key.indexOf(":") + 1);
    this.element.setAttribute("aria-label", `Callers and callees of ${name}`);
    for (const one of [this.callers, this.callees]) one.element.hidden = made === null;
    this.title.textContent = name;
    if (!made) {
      this.words.textContent = "It does not occur in the code shown.";
      return;
    }
    this.whole = total[0]!;
    this.isFunction = (one) => sandwich(stacks, total, one) !== null;
    this.drawn = [{ tree: made.callers, total: made.callersTotal }, { tree: made.callees, total: made.calleesTotal }];
    this.title.textContent = `${name}: ${time(made.callersTotal[0]!, this.ns)}, ${share(made.callersTotal[0]!, this.whole)} of all`;
    this.words.textContent = "Callers above, callees below; click a function to show it instead.";
    this.callers.show({ tree: made.callers, total: made.callersTotal, zoom: 0, up: true, found: null, out: [] });
    this.callees.show({ tree: made.callees, total: made.calleesTotal, zoom: 0, up: false, found: null, out: [] });
  }

  private describe(at: number, node: number): string[] {
    const { tree, total } = this.drawn[at]!;
    return [tree.names[node]!, `${time(total[node]!, this.ns)}, ${share(total[node]!, total[0]!)} of ${tree.names[0]}, ${share(total[node]!, this.whole)} of all`];
  }

  private openNode(at: number, node: number): void {
    const { tree } = this.drawn[at]!;
    const key = `${LAYERS[tree.layer[node]!]}:${tree.names[node]}`;
    // VMs, states and threads are not functions.
    if (node > 0 && this.isFunction(key)) this.open(key);
  }

  private key(event: KeyboardEvent): void {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    this.open("");
  }
}
