// A strip of the complete recording, with a window on the shown time: drag it, or click elsewhere.

import type { Raster } from "./raster";
import { drawLane } from "./raster";
import { moved, type Range } from "./range";
import type { LaneRow } from "./rows";

const HEIGHT = 48;
/** Within this distance of the window's edge, a drag moves the edge. */
const EDGE = 6;

export class Minimap {
  readonly canvas = document.createElement("canvas");
  private picture: ImageData | null = null;
  private drag: { mode: "move" | "from" | "to"; at: number; shown: Range } | null = null;

  constructor(
    private readonly whole: Range,
    private readonly shown: () => Range,
    private readonly show: (range: Range) => void,
  ) {
    this.canvas.className = "minimap";
    this.canvas.setAttribute("role", "presentation");
    this.canvas.addEventListener("pointerdown", (event) => this.begin(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) this.canvas.addEventListener(end, () => (this.drag = null));
  }

  /** Redraws the lanes after a change of them, the width or the colours. */
  prepare(rows: LaneRow[], raster: Omit<Raster, "pixels" | "width">): void {
    const scale = devicePixelRatio || 1;
    const width = Math.max(1, Math.round(this.canvas.clientWidth * scale));
    const height = Math.round(HEIGHT * scale);
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    this.picture = new ImageData(width, height);
    const pixels = new Uint32Array(this.picture.data.buffer);
    pixels.fill(raster.empty);
    const lanes = rows.filter((row) => row.lane).slice(0, height);
    const each = height / Math.max(1, lanes.length);
    lanes.forEach((row, at) => {
      const top = Math.round(at * each);
      drawLane({ ...raster, pixels, width }, row.lane!, this.whole, top, Math.max(1, Math.round((at + 1) * each) - top - (each > 4 ? 1 : 0)));
    });
  }

  draw(): void {
    const pen = this.canvas.getContext("2d");
    if (!pen || !this.picture) return;
    pen.putImageData(this.picture, 0, 0);
    const { from, to } = this.edges(this.canvas.width);
    const styles = getComputedStyle(document.documentElement);
    pen.fillStyle = styles.getPropertyValue("--veil");
    pen.fillRect(0, 0, from, this.canvas.height);
    pen.fillRect(to, 0, this.canvas.width - to, this.canvas.height);
    pen.strokeStyle = styles.getPropertyValue("--accent");
    pen.lineWidth = 2 * (devicePixelRatio || 1);
    pen.strokeRect(from, 1, Math.max(3, to - from), this.canvas.height - 2);
  }

  private edges(width: number): Range {
    const { from, to } = this.shown();
    const scale = width / (this.whole.to - this.whole.from);
    return { from: (from - this.whole.from) * scale, to: (to - this.whole.from) * scale };
  }

  private begin(event: PointerEvent): void {
    this.canvas.setPointerCapture(event.pointerId);
    const width = this.canvas.clientWidth;
    const x = event.offsetX;
    const { from, to } = this.edges(width);
    const wide = to - from > 4 * EDGE;
    const mode = wide && Math.abs(x - from) < EDGE ? "from" : wide && Math.abs(x - to) < EDGE ? "to" : "move";
    if (mode === "move" && (x < from - EDGE || x > to + EDGE)) {
      const time = this.whole.from + (x / width) * (this.whole.to - this.whole.from);
      const shown = this.shown();
      this.show(moved(shown, time - (shown.from + shown.to) / 2, this.whole));
    }
    this.drag = { mode, at: x, shown: this.shown() };
  }

  private move(event: PointerEvent): void {
    if (!this.drag) return;
    const by = ((event.offsetX - this.drag.at) / this.canvas.clientWidth) * (this.whole.to - this.whole.from);
    const { from, to } = this.drag.shown;
    if (this.drag.mode === "move") return this.show(moved(this.drag.shown, by, this.whole));
    const range = this.drag.mode === "from" ? { from: Math.min(from + by, to - 1), to } : { from, to: Math.max(to + by, from + 1) };
    this.show(range);
  }
}
