// Draws lanes as pixels. A column of pixels shows all of its time at any zoom: the height of a
// colour is the share of its state.

import type { Lane } from "../../data/lane";
import { MERGED } from "../../data/lane";
import type { Range } from "./range";

export interface Raster {
  pixels: Uint32Array;
  /** Pixels per line. */
  width: number;
  /** Colours by state number. */
  colours: Uint32Array;
  /** Colour of a lane where it has no span. */
  empty: number;
}

/** Draws a lane into `height` lines from `top` on; lines outside are skipped. */
export function drawLane(raster: Raster, lane: Lane, shown: Range, top: number, height: number): void {
  const { width } = raster;
  const step = (shown.to - shown.from) / width;
  const places = lane.states.length;
  let before = new Float64Array(places);
  let after = new Float64Array(places);
  let begun = lane.begunBy(shown.from);
  lane.sumsUpTo(shown.from, begun, before);
  // Sums change only where a column contains the end of a span.
  let valid = true;
  for (let column = 0; column < width; column++) {
    const from = shown.from + column * step;
    const to = from + step;
    const next = lane.begunBy(to, begun);
    const last = next - 1;
    if (next === begun && last >= 0 && lane.to[last]! >= to && lane.state[last] !== MERGED) {
      fillColumn(raster, column, top, height, raster.colours[lane.state[last]!]!);
      valid = false;
    } else if (next === begun && (last < 0 || lane.to[last]! <= from)) {
      fillColumn(raster, column, top, height, raster.empty);
      valid = false;
    } else {
      if (!valid) lane.sumsUpTo(from, begun, before);
      lane.sumsUpTo(to, next, after);
      stackColumn(raster, lane, column, top, height, before, after, step);
      [before, after] = [after, before];
      valid = true;
    }
    begun = next;
  }
}

function fillColumn({ pixels, width }: Raster, column: number, top: number, height: number, colour: number): void {
  for (let y = top, at = top * width + column; y < top + height; y++, at += width) pixels[at] = colour;
}

/** Stacks states from below, in their order; time without a span is empty, at the top. */
function stackColumn(
  raster: Raster,
  lane: Lane,
  column: number,
  top: number,
  height: number,
  before: Float64Array,
  after: Float64Array,
  step: number,
): void {
  const { pixels, width, colours } = raster;
  let y = top + height;
  let sum = 0;
  for (let place = 0; place < lane.states.length; place++) {
    sum += after[place]! - before[place]!;
    const until = top + height - Math.round((sum / step) * height);
    const colour = colours[lane.states[place]!]!;
    for (; y > until && y > top; y--) pixels[(y - 1) * width + column] = colour;
  }
  for (; y > top; y--) pixels[(y - 1) * width + column] = raster.empty;
}
