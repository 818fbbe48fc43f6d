// Hosts by exits: a cell shows the change of a number on a host, or the host's difference from others of its kind.

import { rgb } from "../colours";
import { el, plainTable, section, tableBehind } from "../dom";
import { count, measured } from "../format";
import { hideTooltip, showTooltip } from "../tooltip";
import type { Context } from "./context";
import { idOf, nameOf, shortNameOf } from "./data";
import { times } from "./findings";
import { colourOf, columnsOf, endOf, hostsInOrder, inkOn, type Column, type Rgb } from "./numbers";
import type { Compare, Order } from "./state";

const [TOP, GROUP, GAP] = [104, 22, 6];
const [LEAST_CELL, MOST_CELL] = [38, 104];

/** Heights of rows, by max number of hosts. */
const HEIGHTS: [number, number][] = [
  [60, 20],
  [200, 12],
  [600, 6],
];

/** The place of a row. */
interface Line {
  host: number;
  y: number;
}

export function hosts(context: Context): HTMLElement {
  const map = new HostMap(context);
  return section("hosts", "Hosts by reasons", map.controls, map.figure);
}

class HostMap {
  readonly controls: HTMLElement;
  readonly figure: HTMLElement;
  private readonly canvas = el("canvas", { tabindex: 0, role: "img" });
  private readonly scroller = el("div", { class: "map-scroll" }, this.canvas);
  private readonly words = el("p", { class: "note" });
  private readonly scale = el("p", { class: "scale", "aria-hidden": "true" });
  private columns: Column[] = [];
  private lines: Line[] = [];
  private groups: { name: string; y: number }[] = [];
  private end = 1;
  private height = 20;
  /** The cell under the pointer or the keyboard's cursor: column and line. */
  private cursor: [number, number] | null = null;

  constructor(private readonly context: Context) {
    this.controls = this.makeControls();
    const table = tableBehind("Table behind this figure", () => this.table());
    this.figure = el("figure", { class: "host-map" }, this.scale, this.scroller, this.words, table);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("click", () => this.open());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.leave());
    this.scroller.addEventListener("scroll", () => hideTooltip());
    context.view.follow(() => this.change());
    new ResizeObserver(() => this.draw()).observe(this.figure);
    addEventListener("hyperscope:theme", () => this.draw());
    this.change();
  }

  private makeControls(): HTMLElement {
    const { fleet, view } = this.context;
    const choice = (label: string, options: [string, string][], of: () => string, set: (value: string) => void) => {
      const list = el("select", { "aria-label": label, onchange: () => set(list.value) }, ...options.map(([value, words]) => el("option", { value }, words)));
      const follow = () => (list.value = of());
      view.follow(follow);
      follow();
      return list;
    };
    const metrics = [...new Set(fleet.grid.map((one) => one.metric))].map((one): [string, string] => [one, one]);
    const keys = new Map(fleet.grid.map(({ key }) => [idOf(key), nameOf(key)]));
    const metric = choice("Number", metrics, () => view.value.metric, (value) => view.update({ metric: value }));
    const key = choice("Exits", [...keys], () => view.value.key, (value) => view.update({ key: value }));
    const compares: [Compare, string][] = [
      ["change", "B over A, each host with itself"],
      ["b", "B, over hosts of its kind"],
      ["a", "A, over hosts of its kind"],
    ];
    const compare = choice("Cells show", compares, () => view.value.compare, (value) => view.update({ compare: value as Compare }));
    const orders: [Order, string][] = [
      ["kind", "by kind and name"],
      ["change", "greatest first"],
    ];
    const order = choice("Order of hosts", orders, () => view.value.order, (value) => view.update({ order: value as Order }));
    const words = el("input", { type: "search", placeholder: "Find hosts", "aria-label": "Find hosts", oninput: () => view.update({ words: words.value }) });
    const follow = () => {
      if (words.value !== view.value.words) words.value = view.value.words;
    };
    view.follow(follow);
    follow();
    return el("div", { class: "controls" }, metric, key, compare, order, words);
  }

  private get chosen(): number {
    return this.columns.findIndex(({ key }) => idOf(key) === this.context.view.value.key);
  }

  private change(): void {
    const { fleet, view } = this.context;
    const { metric, compare, order, words } = view.value;
    this.columns = columnsOf(fleet, metric, compare);
    this.end = endOf(this.columns);
    const places = hostsInOrder(fleet, words, order, this.columns[this.chosen]);
    this.height = HEIGHTS.find(([most]) => places.length <= most)?.[1] ?? 3;
    this.place(places, order);
    this.cursor = null;
    const left = fleet.hosts_left_out > 0 ? ` ${count(fleet.hosts_left_out)} more, whose numbers changed least, are omitted.` : "";
    const what = compare === "change" ? `${metric} on B over that on A` : `${metric} on ${compare.toUpperCase()}, over the geometric mean of hosts of its kind`;
    this.words.textContent = `${count(places.length)} of ${count(fleet.hosts.length)} hosts: ${what}. Framed: carries a finding. Diamond: stands apart from others of its kind. Empty: too few exits. Click or Enter: numbers and sessions of the host.${left}`;
    this.canvas.setAttribute("aria-label", `Heat map: ${this.words.textContent} Arrow keys move a cursor.`);
    const [less, more] = [1 / this.end, this.end].map((one) => `${one.toFixed(2)}×`);
    this.scale.replaceChildren(`${less} `, el("i", {}), ` ${more}`);
    this.draw();
  }

  /** Assigns each host its line, below the name of its kind. */
  private place(places: number[], order: Order): void {
    const { hosts, diff } = this.context.fleet;
    this.lines = [];
    this.groups = [];
    const kinds = new Set(hosts.map((one) => one.stratum));
    let [y, last]: [number, string | null | undefined] = [TOP, undefined];
    for (const host of places) {
      const kind = hosts[host]!.stratum;
      if (order === "kind" && kinds.size > 1 && kind !== last) {
        const own = places.filter((one) => hosts[one]!.stratum === kind).length;
        y += last === undefined ? 0 : GAP;
        this.groups.push({ name: `${diff.strata} ${kind ?? "not known"}: ${count(own)} host${own === 1 ? "" : "s"}`, y });
        y += GROUP;
        last = kind;
      }
      this.lines.push({ host, y });
      y += this.height;
    }
  }

  private get bottom(): number {
    return (this.lines.at(-1)?.y ?? TOP) + this.height + 4;
  }

  private get left(): number {
    return this.figure.clientWidth < 600 ? 96 : 148;
  }

  private get cell(): number {
    const room = (this.figure.clientWidth - this.left - 4) / Math.max(1, this.columns.length);
    return Math.floor(Math.max(LEAST_CELL, Math.min(MOST_CELL, room)));
  }

  private draw(): void {
    const pen = this.canvas.getContext("2d");
    if (!pen || this.figure.clientWidth === 0) return;
    const scale = devicePixelRatio || 1;
    // Headings of the last columns extend to the right.
    const [width, height] = [this.left + this.cell * this.columns.length + 40, this.bottom];
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    pen.scale(scale, scale);
    this.drawHeadings(pen);
    this.drawNames(pen);
    this.columns.forEach((column, at) => this.drawColumn(pen, column, at));
    this.drawCursor(pen);
  }

  private style(name: string): string {
    return getComputedStyle(document.documentElement).getPropertyValue(name);
  }

  private drawHeadings(pen: CanvasRenderingContext2D): void {
    pen.textBaseline = "middle";
    this.columns.forEach(({ key }, at) => {
      const isChosen = idOf(key) === this.context.view.value.key;
      pen.font = `${isChosen ? "700 " : ""}12px ${this.style("--sans")}`;
      pen.fillStyle = this.style(isChosen ? "--text" : "--muted");
      pen.save();
      pen.translate(this.left + (at + 0.5) * this.cell - 4, TOP - 8);
      pen.rotate(-Math.PI / 3.2);
      pen.fillText(fitted(pen, shortNameOf(key), 104), 0, 0);
      pen.restore();
    });
  }

  private drawNames(pen: CanvasRenderingContext2D): void {
    const { fleet, view } = this.context;
    pen.fillStyle = this.style("--text");
    pen.font = `600 12px ${this.style("--sans")}`;
    for (const { name, y } of this.groups) pen.fillText(fitted(pen, name, this.left + this.cell * this.columns.length), 0, y + GROUP / 2);
    if (this.height < 11) return;
    for (const { host, y } of this.lines) {
      const { host: name } = fleet.hosts[host]!;
      const isChosen = name === view.value.host;
      pen.font = `${isChosen ? "700 " : ""}${Math.min(12, this.height)}px ${this.style("--sans")}`;
      pen.fillStyle = this.style(isChosen ? "--text" : "--muted");
      pen.fillText(fitted(pen, `${isChosen ? "▸ " : ""}${name}`, this.left - 8), 0, y + this.height / 2);
    }
  }

  private drawColumn(pen: CanvasRenderingContext2D, column: Column, at: number): void {
    const colours = ["--ratio-less", "--ratio-same", "--ratio-more"].map(rgb) as [Rgb, Rgb, Rgb];
    const [carriers, apart] = [this.carriers(column), this.apart(column)];
    const [x, width, gap] = [this.left + at * this.cell, this.cell, this.height > 8 ? 1 : 0];
    pen.textAlign = "center";
    pen.font = `11px ${this.style("--sans")}`;
    for (const { host, y } of this.lines) {
      const ratio = column.ratios[host];
      const name = this.context.fleet.hosts[host]!.host;
      if (ratio === null || ratio === undefined) {
        pen.fillStyle = this.style("--line");
        pen.fillRect(x + width / 2 - 2, y + this.height / 2, 4, 1);
        continue;
      }
      const colour = colourOf(ratio, this.end, colours);
      pen.fillStyle = `rgb(${colour.join(",")})`;
      pen.fillRect(x, y, width - gap, this.height - gap);
      pen.fillStyle = inkOn(colour);
      if (this.height >= 14) pen.fillText(ratio.toFixed(2), x + width / 2, y + this.height / 2 + 0.5);
      if (apart.has(name)) diamond(pen, x + 7, y + this.height / 2, Math.min(4, this.height / 2));
      if (carriers.has(name)) {
        pen.strokeStyle = this.style("--text");
        pen.lineWidth = 1.5;
        pen.strokeRect(x + 0.75, y + 0.75, width - gap - 1.5, Math.max(1, this.height - gap - 1.5));
      }
    }
    pen.textAlign = "left";
  }

  /** Carriers of a finding on a column's exits. */
  private carriers({ key }: Column): Set<string> {
    const { fleet, view } = this.context;
    if (view.value.compare !== "change") return new Set();
    const own = fleet.diff.rows.filter((row) => row.finding && row.metric === view.value.metric && idOf(row) === idOf(key));
    return new Set(own.flatMap((row) => row.carried_by));
  }

  /** Outliers in the number of a column's cells. */
  private apart({ key }: Column): Set<string> {
    const { fleet, view } = this.context;
    const of = { change: "change", b: "level", a: "" }[view.value.compare];
    const own = fleet.outliers.filter((one) => one.of === of && one.metric === view.value.metric && idOf(one.key) === idOf(key));
    return new Set(own.map((one) => one.host));
  }

  private drawCursor(pen: CanvasRenderingContext2D): void {
    const line = this.lines[this.cursor?.[1] ?? -1];
    if (!this.cursor || !line) return;
    pen.strokeStyle = this.style("--accent");
    pen.lineWidth = 3;
    pen.strokeRect(this.left + this.cursor[0] * this.cell - 1, line.y - 1, this.cell + 1, this.height + 1);
  }

  private said([column, line]: [number, number]): string[] {
    const { fleet, view } = this.context;
    const { key, a, b, ratios } = this.columns[column]!;
    const host = this.lines[line]!.host;
    const { host: name, stratum } = fleet.hosts[host]!;
    const { metric, compare } = view.value;
    const ratio = ratios[host] ?? null;
    const over = compare === "change" ? "B over A" : "over hosts of its kind";
    const notes = [
      this.carriers(this.columns[column]!).has(name) ? "carries a finding" : null,
      this.apart(this.columns[column]!).has(name) ? "stands apart from others of its kind" : null,
    ];
    return [
      `${name}${stratum ? ` · ${stratum}` : ""}`,
      `${nameOf(key)}, ${metric}`,
      `A ${measured(metric, a[host] ?? null)}, B ${measured(metric, b[host] ?? null)}`,
      ratio === null ? "too few exits to compare" : `${times(ratio)} ${over}`,
      ...notes.filter((note) => note !== null),
    ];
  }

  private hover(event: PointerEvent): void {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.left) / this.cell);
    const y = event.clientY - box.top;
    const line = this.lines.findIndex((one) => y >= one.y && y < one.y + this.height);
    if (column < 0 || column >= this.columns.length || line < 0) return this.leave();
    this.cursor = [column, line];
    this.draw();
    showTooltip(event.clientX, event.clientY, this.said(this.cursor));
  }

  private leave(): void {
    hideTooltip();
    if (!this.cursor) return;
    this.cursor = null;
    this.draw();
  }

  private open(): void {
    if (!this.cursor) return;
    const [column, line] = this.cursor;
    const host = this.context.fleet.hosts[this.lines[line]!.host]!.host;
    hideTooltip();
    this.context.view.update({ host, key: idOf(this.columns[column]!.key) });
    this.context.goTo("host");
  }

  private key(event: KeyboardEvent): void {
    const step: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], PageUp: [0, -10], PageDown: [0, 10] };
    const by = step[event.key];
    if (event.key === "Enter") return this.open();
    if (!by || this.lines.length === 0 || this.columns.length === 0) return;
    event.preventDefault();
    const bound = (value: number, end: number) => Math.min(end - 1, Math.max(0, value));
    const [column, line] = this.cursor ?? [Math.max(0, this.chosen) - by[0], -by[1]];
    this.cursor = [bound(column + by[0], this.columns.length), bound(line + by[1], this.lines.length)];
    this.draw();
    this.reveal(this.lines[this.cursor[1]]!.y);
    this.context.announce(this.said(this.cursor).join(", "));
  }

  /** Scrolls to the line of the keyboard's cursor. */
  private reveal(y: number): void {
    const { scrollTop, clientHeight } = this.scroller;
    if (y < scrollTop + TOP) this.scroller.scrollTop = y - TOP;
    if (y + this.height > scrollTop + clientHeight) this.scroller.scrollTop = y + this.height - clientHeight;
    const left = this.left + (this.cursor?.[0] ?? 0) * this.cell;
    if (left < this.scroller.scrollLeft + this.left) this.scroller.scrollLeft = left - this.left;
    if (left + this.cell > this.scroller.scrollLeft + this.scroller.clientWidth) this.scroller.scrollLeft = left + this.cell - this.scroller.clientWidth;
  }

  private table(): HTMLTableElement {
    const { fleet, view } = this.context;
    const rows = this.lines.map(({ host }) => [fleet.hosts[host]!.host, fleet.hosts[host]!.stratum ?? "–", ...this.columns.map(({ ratios }) => ratios[host]?.toFixed(3) ?? "–")]);
    return plainTable(`Hosts by reasons: ${view.value.metric}`, ["host", "kind", ...this.columns.map(({ key }) => nameOf(key))], rows);
  }
}

/** As many letters of a text as fit. */
function fitted(pen: CanvasRenderingContext2D, text: string, room: number): string {
  if (pen.measureText(text).width <= room) return text;
  let end = text.length;
  while (end > 1 && pen.measureText(`${text.slice(0, end)}…`).width > room) end--;
  return `${text.slice(0, end)}…`;
}

function diamond(pen: CanvasRenderingContext2D, x: number, y: number, size: number): void {
  pen.beginPath();
  pen.moveTo(x, y - size);
  pen.lineTo(x + size, y);
  pen.lineTo(x, y + size);
  pen.lineTo(x - size, y);
  pen.fill();
}
