// The stretch shown stays within the recording, and zooming keeps what is under the pointer there.

import { expect, test } from "vitest";
import { moved, within, zoomed } from "../src/views/timeline/range";
import { random } from "./random";

const WHOLE = { from: 0, to: 1e9 };

test("zooming keeps the moment under the pointer in its place, while there is room", () => {
  const range = { from: 4e8, to: 5e8 };
  const around = 4.3e8;
  const near = zoomed(range, 0.5, around, WHOLE);
  expect((around - near.from) / (near.to - near.from)).toBeCloseTo(0.3, 9);
  expect(near.to - near.from).toBeCloseTo(5e7, 3);
});

test("whatever is done, the stretch lies within the recording", () => {
  const next = random(11);
  let range = WHOLE;
  for (let step = 0; step < 2000; step++) {
    const around = range.from + next() * (range.to - range.from);
    range = next() < 0.5 ? zoomed(range, 0.2 + next() * 3, around, WHOLE) : moved(range, (next() - 0.5) * 1e9, WHOLE);
    expect(range.from).toBeGreaterThanOrEqual(0);
    expect(range.to).toBeLessThanOrEqual(WHOLE.to + 1e-3);
    expect(range.to - range.from).toBeGreaterThan(99);
  }
});

test("a moment is shown with something around it", () => {
  const range = within({ from: 500, to: 500 }, WHOLE);
  expect(range.to - range.from).toBe(100);
  expect(range.from).toBe(450);
});
