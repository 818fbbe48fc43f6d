// A flame graph: callers above; the width of a frame is the time in it and its callees.

import { timeOf, type CallNode } from "../data/report";
import { el } from "../dom";
import { count, share, time } from "../format";
import { hideTooltip, showTooltip } from "../tooltip";

const ROW = 18;
/** Narrower frames, in shares of the figure, are not drawn. */
const NARROWEST = 0.0004;

interface Frame {
  node: CallNode;
  /** Shares of the total. */
  left: number;
  width: number;
  total: number;
  element: HTMLElement;
}

/** Stacks of a recording with times; `nodes` have callees below their callers. */
export class Flame {
  readonly element = el("div", { class: "flame" });
  readonly whole: number;
  private readonly frames: Frame[];
  private readonly about = el("p", { class: "note", role: "status" });
  private zoomed: Frame | null = null;

  constructor(
    nodes: CallNode[],
    private readonly ns: boolean,
    title: string,
  ) {
    const total = (node: CallNode) => timeOf(node, "total", ns) ?? 0;
    this.whole = nodes.filter((node) => node.depth === 0).reduce((sum, node) => sum + total(node), 0);
    this.frames = this.laidOut(nodes, total);
    const deepest = Math.max(0, ...nodes.map((node) => node.depth));
    const picture = el("div", { class: "frames", role: "img", "aria-label": title, style: `height: ${(deepest + 1) * ROW}px` }, ...this.frames.map((one) => one.element));
    picture.addEventListener("pointerleave", hideTooltip);
    this.element.append(picture, this.about);
    this.draw();
  }

  private laidOut(nodes: CallNode[], total: (node: CallNode) => number): Frame[] {
    // By depth: the left edge of the next callee.
    const next = [0];
    return nodes.map((node) => {
      const left = next[node.depth] ?? 0;
      const width = total(node) / Math.max(1, this.whole);
      next[node.depth] = left + width;
      next[node.depth + 1] = left;
      const style = `top: ${node.depth * ROW}px; background: ${colourOf(node)}`;
      const element = el("div", { class: node.depth === 0 ? "thread" : null, style }, node.name);
      const frame = { node, left, width, total: total(node), element };
      element.addEventListener("click", () => this.zoom(this.zoomed === frame || node.depth === 0 ? null : frame));
      element.addEventListener("pointermove", (event) => showTooltip(event.clientX, event.clientY, this.words(frame)));
      return frame;
    });
  }

  private words({ node, total }: Frame): string[] {
    const of = (what: string) => timeOf(node, what, this.ns);
    const lines = [node.name, `${time(total, this.ns)} in it and its callees (${share(total, this.whole, 1)})`];
    if (node.depth === 0) return lines;
    const off = of("off_cpu");
    return [...lines, `${time(of("self"), this.ns)} in itself${off ? `, ${time(off, this.ns)} off CPU` : ""}`, `${count(node.count)} calls by these callers`];
  }

  private zoom(to: Frame | null): void {
    this.zoomed = to;
    this.draw();
  }

  private draw(): void {
    const { left: from, width } = this.zoomed ?? { left: 0, width: 1 };
    const near = 1e-9;
    for (const { left, width: wide, element } of this.frames) {
      const begin = Math.max(0, (left - from) / width);
      const end = Math.min(1, (left + wide - from) / width);
      element.hidden = end - begin < NARROWEST || left + wide < from + near || left > from + width - near;
      element.style.left = `${begin * 100}%`;
      element.style.width = `calc(${(end - begin) * 100}% - 1px)`;
    }
    const { zoomed } = this;
    this.about.replaceChildren(zoomed ? `${zoomed.node.name}: ${time(zoomed.total, this.ns)}. ` : "A click enlarges a frame. ");
    if (zoomed) this.about.append(el("button", { type: "button", onclick: () => this.zoom(null) }, "Show all"));
  }

  /** Marks frames whose names match these words; returns their share of time, including callees. */
  mark(words: string): number | null {
    let [sum, reached] = [0, 0];
    for (const { node, left, width, element } of this.frames) {
      const found = words !== "" && node.name.toLowerCase().includes(words);
      element.classList.toggle("found", found);
      // A match within another match counts once: callees come after their callers.
      if (!found || left + width <= reached + 1e-12) continue;
      sum += left + width - Math.max(left, reached);
      reached = left + width;
    }
    return words === "" ? null : sum;
  }
}

/** The timeline's colour for such functions, lighter or darker by name. */
function colourOf({ name, depth }: CallNode): string {
  if (depth === 0 || name.startsWith("[")) return "var(--lane)";
  const module = / \[(.*)\]$/.exec(name)?.[1];
  const isKvm = module?.startsWith("kvm") ?? name.startsWith("kvm_");
  const variable = isKvm ? "--call-kvm" : module === undefined ? "--call-kernel" : "--call-module";
  let hash = 0;
  for (let at = 0; at < name.length; at++) hash = (hash * 31 + name.charCodeAt(at)) >>> 0;
  return `color-mix(in srgb, var(${variable}) ${100 - (hash % 8) * 6}%, white)`;
}
