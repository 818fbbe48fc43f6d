// A tree of frames on a canvas; the width of a frame is its time. Frames narrower than half a pixel are
// not drawn.

import { LAYERS } from "../../data/stacks";
import { css } from "../../colours";
import { el } from "../../dom";
import { hideTooltip, showTooltip } from "../../tooltip";
import { FOUND, fills, shadeOf, type Fill } from "./layers";

/** Nodes with callers before callees; 0 is the root. */
export interface Tree {
  names: string[];
  parent: number[];
  layer: number[];
  callees: number[][];
}

/** The drawn tree, with display options. */
export interface Shown {
  tree: Tree;
  total: Float64Array;
  /** The node that fills the width. */
  zoom: number;
  /** Callees above their callers. */
  up: boolean;
  found: Uint8Array | null;
  /** Emphasized layers; empty: none. */
  out: string[];
}

export interface Actions {
  /** The description of a node, in lines. */
  words: (node: number) => string[];
  /** Called at a click on it, or Enter. */
  open: (node: number) => void;
  /** Called when it becomes the chosen one. */
  choose: (node: number) => void;
  /** Called at another key. */
  key?: (event: KeyboardEvent, node: number) => void;
}

const [ROW, NARROWEST, WORDS_FROM, LETTER] = [18, 0.5, 22, 6.2];

/** Frames of a row from left to right. */
interface Row {
  node: number[];
  x: number[];
  width: number[];
}

export class Picture {
  readonly element: HTMLElement;
  private readonly canvas = el("canvas", {});
  private rows: Row[] = [];
  private shown: Shown | null = null;
  private chosen = 0;
  private hovered = -1;
  private frame = 0;
  private fills: Fill[][] = [];
  private readonly shades = new Map<string, number>();

  constructor(
    title: string,
    private readonly actions: Actions,
  ) {
    const how = "Arrow keys go from frame to frame, Enter opens one.";
    this.element = el("div", { class: "code-picture", tabindex: 0, role: "application", "aria-label": `${title}. ${how}` }, this.canvas);
    this.element.addEventListener("pointermove", (event) => this.hover(event));
    this.element.addEventListener("pointerleave", () => this.leave());
    this.element.addEventListener("click", (event) => this.click(event));
    this.element.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.schedule()).observe(this.element);
    addEventListener("hyperscope:theme", () => {
      this.fills = [];
      this.schedule();
    });
  }

  show(shown: Shown): void {
    if (this.shown?.tree !== shown.tree || this.shown.zoom !== shown.zoom) this.chosen = shown.zoom;
    this.shown = shown;
    this.schedule();
  }

  private schedule(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const begun = performance.now();
      this.draw();
      this.element.dispatchEvent(new CustomEvent("hyperscope:drawn", { bubbles: true, detail: performance.now() - begun }));
    });
  }

  /** Places frames: those around the zoomed one have the full width, its callees the width of their time. */
  private place(width: number): void {
    const { tree, total, zoom } = this.shown!;
    const above: number[] = [];
    for (let up = zoom; ; up = tree.parent[up]!) {
      above.unshift(up);
      if (up === 0) break;
    }
    this.rows = above.map((node) => ({ node: [node], x: [0], width: [width] }));
    const scale = total[zoom]! > 0 ? width / total[zoom]! : 0;
    let row = this.rows.at(-1)!;
    for (;;) {
      const next: Row = { node: [], x: [], width: [] };
      for (let at = 0; at < row.node.length; at++) {
        let x = row.x[at]!;
        for (const callee of tree.callees[row.node[at]!]!) {
          const wide = total[callee]! * scale;
          if (wide >= NARROWEST) {
            next.node.push(callee);
            next.x.push(x);
            next.width.push(wide);
          }
          x += wide;
        }
      }
      if (next.node.length === 0) return;
      this.rows.push(next);
      row = next;
    }
  }

  private top(depth: number): number {
    return (this.shown!.up ? this.rows.length - 1 - depth : depth) * ROW;
  }

  private draw(): void {
    if (!this.shown) return;
    const width = this.element.clientWidth;
    if (width === 0) return;
    if (this.fills.length === 0) this.fills = fills();
    this.place(width);
    const [height, ratio] = [this.rows.length * ROW, Math.min(3, devicePixelRatio || 1)];
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d")!;
    context.scale(ratio, ratio);
    context.font = `11px ${css("--mono")}`;
    context.textBaseline = "middle";
    for (const [depth, row] of this.rows.entries()) {
      for (let at = 0; at < row.node.length; at++) this.drawFrame(context, row.node[at]!, row.x[at]!, this.top(depth), row.width[at]!);
    }
    this.outline(context);
  }

  private drawFrame(context: CanvasRenderingContext2D, node: number, x: number, y: number, width: number): void {
    const { tree, found, out, zoom } = this.shown!;
    const name = tree.names[node]!;
    const layer = tree.layer[node]!;
    let shade = this.shades.get(name);
    if (shade === undefined) this.shades.set(name, (shade = layer === 0 ? 0 : shadeOf(name)));
    const isFound = found !== null && found[node] === 1;
    const { fill, text } = isFound ? FOUND : this.fills[layer]![layer === 0 ? 0 : shade]!;
    const isFaded = (found !== null && !isFound) || (out.length > 0 && !isFound && !out.includes(LAYERS[layer]!)) || (node < zoom && tree.callees[node]!.length > 0 && this.isAbove(node));
    context.globalAlpha = isFaded ? 0.45 : 1;
    context.fillStyle = fill;
    context.fillRect(x, y, Math.max(NARROWEST, width - (width > 3 ? 1 : 0)), ROW - 1);
    if (width < WORDS_FROM) return;
    context.globalAlpha = 1;
    // On faded frames, the page's own text colour is easier to read.
    context.fillStyle = isFaded || layer === 0 ? css("--text") : text;
    const room = Math.floor((width - 6) / LETTER);
    context.fillText(name.length <= room ? name : `${name.slice(0, Math.max(0, room - 1))}…`, x + 3, y + ROW / 2);
  }

  /** Whether it is around the zoomed frame. */
  private isAbove(node: number): boolean {
    for (let up = this.shown!.zoom; up > 0; ) if ((up = this.shown!.tree.parent[up]!) === node) return true;
    return false;
  }

  private outline(context: CanvasRenderingContext2D): void {
    context.globalAlpha = 1;
    context.lineWidth = 2;
    for (const [node, colour] of [[this.hovered, css("--muted")], [document.activeElement === this.element ? this.chosen : -1, css("--accent")]] as const) {
      const place = this.placeOf(node);
      if (!place) continue;
      context.strokeStyle = colour;
      context.strokeRect(place.x + 1, place.y + 1, Math.max(1, place.width - 3), ROW - 3);
    }
  }

  private placeOf(node: number): { x: number; y: number; width: number; depth: number; at: number } | null {
    for (const [depth, row] of this.rows.entries()) {
      const at = row.node.indexOf(node);
      if (at >= 0) return { x: row.x[at]!, y: this.top(depth), width: row.width[at]!, depth, at };
    }
    return null;
  }

  private nodeAt(event: MouseEvent): number {
    const box = this.canvas.getBoundingClientRect();
    const [x, line] = [event.clientX - box.left, Math.floor((event.clientY - box.top) / ROW)];
    const row = this.rows[this.shown?.up ? this.rows.length - 1 - line : line];
    const at = row?.x.findIndex((begin, of) => x >= begin && x < begin + row.width[of]!) ?? -1;
    return row && at >= 0 ? row.node[at]! : -1;
  }

  private hover(event: PointerEvent): void {
    const node = this.nodeAt(event);
    this.element.style.cursor = node < 0 ? "default" : "pointer";
    if (node < 0) hideTooltip();
    else showTooltip(event.clientX, event.clientY, node === this.hovered ? this.lines : (this.lines = this.actions.words(node)));
    if (node === this.hovered) return;
    this.hovered = node;
    this.schedule();
  }

  private lines: string[] = [];

  private leave(): void {
    this.hovered = -1;
    hideTooltip();
    this.schedule();
  }

  private click(event: MouseEvent): void {
    const node = this.nodeAt(event);
    if (node < 0) return;
    this.pick(node);
    this.actions.open(node);
  }

  private pick(node: number): void {
    this.chosen = node;
    this.actions.choose(node);
    this.schedule();
  }

  private key(event: KeyboardEvent): void {
    const next = this.neighbour(event.key);
    if (next !== null) {
      event.preventDefault();
      if (next >= 0) this.pick(next);
      return;
    }
    if (event.key === "Enter") {
      event.preventDefault();
      return this.actions.open(this.chosen);
    }
    this.actions.key?.(event, this.chosen);
  }

  /** The frame in the direction of an arrow key; -1: there is none; null: the key is no arrow. */
  private neighbour(key: string): number | null {
    const place = this.placeOf(this.chosen) ?? this.placeOf(this.shown?.zoom ?? 0);
    if (!place) return null;
    const row = this.rows[place.depth]!;
    const inwards = this.shown!.up ? "ArrowUp" : "ArrowDown";
    if (key === "ArrowLeft") return row.node[place.at - 1] ?? -1;
    if (key === "ArrowRight") return row.node[place.at + 1] ?? -1;
    if (key === inwards) return this.rows[place.depth + 1]?.node.find((node) => this.shown!.tree.parent[node] === this.chosen) ?? -1;
    if (key === "ArrowUp" || key === "ArrowDown") return place.depth > 0 ? this.shown!.tree.parent[this.chosen]! : -1;
    return null;
  }
}
