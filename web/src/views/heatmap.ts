// The heat map: times of exits, over time.

import { rgb } from "../colours";
import { gridOf, rowBegin, type Grid, type Heat } from "../data/heat";
import { el, plainTable, section, tableBehind } from "../dom";
import { describe, EVERYTHING, inFocus, type Context } from "../focus";
import { axisLabel, firstStep, timestampOf } from "../clock";
import { count, niceStep, share, time } from "../format";
import { hideTooltip, showTooltip } from "../tooltip";

const [LEFT, RIGHT, TOP, BOTTOM] = [64, 12, 8, 28];
const HEIGHT = 300;

export function heatmap(context: Context, heat: Heat): HTMLElement {
  const map = new HeatMap(context, heat);
  return section("heat", "Latency of exits over time", map.controls, map.figure);
}

class HeatMap {
  readonly controls: HTMLElement;
  readonly figure: HTMLElement;
  private readonly canvas = el("canvas", { tabindex: 0, role: "img" });
  private readonly words = el("p", { class: "note" });
  private grid: Grid | null = null;
  /** The cell under the pointer or the keyboard's cursor: column and row. */
  private cursor: [number, number] | null = null;

  constructor(
    private readonly context: Context,
    private readonly heat: Heat,
  ) {
    this.controls = this.makeControls();
    const table = tableBehind("Table behind this figure", () => this.table());
    this.figure = el("figure", { class: "heat" }, this.canvas, this.legend(), this.words, table);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("click", () => this.open());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.leave());
    context.focus.follow(() => this.change());
    new ResizeObserver(() => this.draw()).observe(this.figure);
    for (const change of ["hyperscope:theme", "hyperscope:clock"]) addEventListener(change, () => this.draw());
  }

  /** VM and level, and the reason: two lists that set the focus of all figures. */
  private makeControls(): HTMLElement {
    const { focus } = this.context;
    const rows = this.heat.groups.map((group) => ({ vm: group.vm, level: group.level, reason: group.reason }));
    const unique = (values: string[]) => [...new Set(values)].sort();
    const choice = (label: string, all: string, values: string[], of: () => string, set: (value: string) => void) => {
      const options = [el("option", { value: "" }, all), ...values.map((value) => el("option", { value }, value))];
      const list = el("select", { "aria-label": label, onchange: () => set(list.value) }, ...options);
      focus.follow(() => (list.value = of()));
      return list;
    };
    const vms = choice(
      "VM and level",
      "all VMs",
      unique(rows.flatMap((row) => [row.vm, `${row.vm} · level ${row.level}`])),
      () => (focus.value.vm === null ? "" : describe({ ...focus.value, reason: null })),
      (value) => {
        const row = rows.find((one) => value === one.vm || value === `${one.vm} · level ${one.level}`);
        const level = row && value !== row.vm ? row.level : null;
        focus.set({ ...focus.value, vm: row?.vm ?? null, level });
      },
    );
    const reasons = choice(
      "Reason",
      "all reasons",
      unique(rows.map((row) => row.reason)),
      () => focus.value.reason ?? "",
      (value) => focus.set({ ...focus.value, reason: value || null }),
    );
    const everything = el("button", { type: "button", onclick: () => focus.set(EVERYTHING) }, "Show everything");
    return el("div", { class: "controls" }, vms, reasons, everything);
  }

  private change(): void {
    const { focus, report } = this.context;
    this.grid = gridOf(this.heat, this.heat.groups.filter((group) => inFocus(focus.value, group)));
    const column = time(this.heat.info.column_ns, report.nanoseconds);
    const which = describe(focus.value) || "all exits";
    const said = this.grid ? `${count(this.grid.total)} timed exits (${which})` : `no timed exits (${which})`;
    this.words.textContent = `${said}; a column is ${column} wide. Click or Enter: show that time in the timeline.`;
    this.canvas.setAttribute("aria-label", `Heat map: ${this.words.textContent} Arrow keys move a cursor.`);
    this.cursor = null;
    this.draw();
  }

  private get plot(): { width: number; height: number } {
    return { width: Math.max(40, this.canvas.clientWidth - LEFT - RIGHT), height: HEIGHT - TOP - BOTTOM };
  }

  private draw(): void {
    const width = this.figure.clientWidth;
    if (width === 0) return;
    const scale = devicePixelRatio || 1;
    this.canvas.style.height = `${HEIGHT}px`;
    this.canvas.width = Math.round(this.canvas.clientWidth * scale);
    this.canvas.height = Math.round(HEIGHT * scale);
    const pen = this.canvas.getContext("2d");
    if (!pen) return;
    pen.scale(scale, scale);
    pen.clearRect(0, 0, width, HEIGHT);
    if (!this.grid) return;
    this.drawCells(pen, this.grid);
    this.drawAxes(pen, this.grid);
    this.drawCursor(pen, this.grid);
  }

  private drawCells(pen: CanvasRenderingContext2D, grid: Grid): void {
    const { width, height } = this.plot;
    const [low, high] = [rgb("--heat-low"), rgb("--heat-high")];
    const [cellWidth, cellHeight] = [width / grid.columns, height / grid.rows];
    const most = Math.log1p(grid.most);
    for (let row = 0; row < grid.rows; row++) {
      for (let column = 0; column < grid.columns; column++) {
        const here = grid.counts[row * grid.columns + column]!;
        if (here === 0) continue;
        const heat = Math.log1p(here) / most;
        const mixed = low.map((from, at) => Math.round(from + (high[at]! - from) * heat));
        pen.fillStyle = `rgb(${mixed.join(",")})`;
        const y = TOP + height - (row + 1) * cellHeight;
        pen.fillRect(LEFT + column * cellWidth, y, Math.ceil(cellWidth), Math.ceil(cellHeight));
      }
    }
  }

  private drawAxes(pen: CanvasRenderingContext2D, grid: Grid): void {
    const { report } = this.context;
    const { width, height } = this.plot;
    const { info } = this.heat;
    const styles = getComputedStyle(document.documentElement);
    pen.fillStyle = styles.getPropertyValue("--muted");
    pen.strokeStyle = styles.getPropertyValue("--line");
    pen.font = `12px ${styles.getPropertyValue("--sans")}`;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    // A label for each power of ten, between the rows, which are powers of two.
    for (let power = 0; power < 16; power++) {
      const row = Math.log2(10 ** power) * info.rows_per_octave - grid.firstRow;
      if (row < (grid.zero ? 2 : 0) || row > grid.rows) continue;
      const y = TOP + height - (row / grid.rows) * height;
      pen.fillText(report.nanoseconds ? time(10 ** power).replace(/\.0+ /, " ") : count(10 ** power), LEFT - 8, y);
      pen.beginPath();
      pen.moveTo(LEFT - 4, y + 0.5);
      pen.lineTo(LEFT + width, y + 0.5);
      pen.globalAlpha = 0.5;
      pen.stroke();
      pen.globalAlpha = 1;
    }
    if (grid.zero) pen.fillText("0", LEFT - 8, TOP + height - height / grid.rows / 2);
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const length = info.columns * info.column_ns;
    const step = niceStep((length / width) * 110);
    for (let at = firstStep(report, info.from_ns, step); at < info.from_ns + length; at += step) {
      if (at < 0) continue;
      const x = LEFT + ((at - info.from_ns) / length) * width;
      pen.fillText(axisLabel(report, at, step), x, TOP + height + 8);
      pen.fillRect(Math.round(x), TOP + height, 1, 4);
    }
  }

  private drawCursor(pen: CanvasRenderingContext2D, grid: Grid): void {
    if (!this.cursor) return;
    const { width, height } = this.plot;
    const [column, row] = this.cursor;
    const [cellWidth, cellHeight] = [width / grid.columns, height / grid.rows];
    pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--text");
    pen.lineWidth = 1.5;
    pen.strokeRect(LEFT + column * cellWidth - 1, TOP + height - (row + 1) * cellHeight - 1, cellWidth + 2, cellHeight + 2);
  }

  private legend(): HTMLElement {
    return el("p", { class: "scale", "aria-hidden": "true" }, "few ", el("i", {}), " many exits (logarithmic)");
  }

  private lines(grid: Grid, column: number, row: number): string[] {
    const { report } = this.context;
    const { info } = this.heat;
    const here = grid.counts[row * grid.columns + column] ?? 0;
    const [shortest, longest] = [rowBegin(grid.firstRow + row, info.rows_per_octave), rowBegin(grid.firstRow + row + 1, info.rows_per_octave)];
    const from = info.from_ns + column * info.column_ns;
    let inColumn = 0;
    for (let at = 0; at < grid.rows; at++) inColumn += grid.counts[at * grid.columns + column] ?? 0;
    return [
      `${count(here)} exits`,
      grid.zero && row === 0 ? "took less than one tick of the recording's clock" : `took ${time(shortest, report.nanoseconds)} to ${time(longest, report.nanoseconds)}`,
      `at ${timestampOf(report, Math.max(0, from))}`,
      `${share(here, inColumn)} of the ${count(inColumn)} exits of this time`,
    ];
  }

  private hover(event: PointerEvent): void {
    const grid = this.grid;
    if (!grid) return;
    const { width, height } = this.plot;
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left - LEFT) / width) * grid.columns);
    const row = Math.floor((1 - (event.clientY - box.top - TOP) / height) * grid.rows);
    if (column < 0 || column >= grid.columns || row < 0 || row >= grid.rows) return this.leave();
    this.cursor = [column, row];
    this.draw();
    showTooltip(event.clientX, event.clientY, this.lines(grid, column, row));
  }

  private leave(): void {
    this.cursor = null;
    hideTooltip();
    this.draw();
  }

  private open(): void {
    if (!this.cursor) return;
    const { info } = this.heat;
    const from = info.from_ns + this.cursor[0] * info.column_ns;
    this.context.showTime(from - info.column_ns / 2, from + info.column_ns * 1.5);
  }

  private key(event: KeyboardEvent): void {
    const grid = this.grid;
    const step: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const by = step[event.key];
    if (event.key === "Enter") return this.open();
    if (!grid || !by) return;
    event.preventDefault();
    const [column, row] = this.cursor ?? [Math.floor(grid.columns / 2), Math.floor(grid.rows / 2)];
    const bound = (value: number, end: number) => Math.min(end - 1, Math.max(0, value));
    this.cursor = [bound(column + by[0], grid.columns), bound(row + by[1], grid.rows)];
    this.draw();
    this.context.announce(this.lines(grid, ...this.cursor).join(", "));
  }

  /** Counts by time of exits: a table over time would have thousands of cells. */
  private table(): HTMLTableElement {
    const { report } = this.context;
    const { rows_per_octave } = this.heat.info;
    const lines: (string | number)[][] = [];
    for (let row = 0; row < (this.grid?.rows ?? 0); row++) {
      const grid = this.grid!;
      let sum = 0;
      for (let column = 0; column < grid.columns; column++) sum += grid.counts[row * grid.columns + column]!;
      const begin = (at: number) => time(rowBegin(grid.firstRow + at, rows_per_octave), report.nanoseconds);
      if (sum > 0) lines.push([grid.zero && row === 0 ? "no time" : `${begin(row)} to ${begin(row + 1)}`, count(sum), share(sum, grid.total)]);
    }
    return plainTable("Exits by duration", ["took", "exits", "share"], lines);
  }
}
