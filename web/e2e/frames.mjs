// How long the timeline takes to draw, with millions of events.

import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { openReport } from "./browser.mjs";
import { amplified, exitsOf, hyperscope, report } from "./tool.mjs";

/** About five million events. */
const SIZE = process.env.HYPERSCOPE_FRAMES_SIZE ?? "200M";

/** About four million of calls and returns. */
const CALLS_SIZE = process.env.HYPERSCOPE_FRAMES_CALLS_SIZE ?? "250M";

function events(path) {
  const { files } = JSON.parse(hyperscope("info", "--format", "json", path));
  return files.flatMap((file) => Object.values(file.events)).reduce((sum, one) => sum + one, 0);
}

function exits(path) {
  return exitsOf([path]).rows.reduce((sum, row) => sum + row.count, 0);
}

/** Moves and zooms as a reader would, a step a frame; gives the time of each frame. */
function pan() {
  const timeline = document.getElementById("timeline");
  const area = timeline.querySelector(".area");
  area.scrollIntoView({ block: "center" });
  const { left, top, width, height } = area.getBoundingClientRect();
  const [x, y] = [left + width / 2, top + height / 2];
  const drawn = [];
  timeline.addEventListener("hyperscope:drawn", (event) => drawn.push(event.detail));
  const wheel = (deltaY, keys) => area.dispatchEvent(new WheelEvent("wheel", { deltaY, clientX: x, clientY: y, bubbles: true, cancelable: true, ...keys }));
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const spans = [];
  return (async () => {
    for (const zoom of [0, 4, 8, 12, 16, 20, 24]) {
      for (let step = 0; step < zoom; step++) {
        wheel(-200, { ctrlKey: true });
        await frame();
      }
      for (let step = 0; step < 40; step++) {
        wheel(step < 20 ? 60 : -60, { shiftKey: true });
        await frame();
      }
      spans.push(zoom);
    }
    return drawn;
  })();
}

/** `size`: none is the fixture as it is. */
const frameTimes = (name, fixture, size) => async (browser) => {
  const recording = size ? amplified(fixture, size) : fixture;
  const path = report(name, [recording]);
  const { page, faults, loaded_ms } = await openReport(browser, path, { viewport: { width: 1600, height: 1000 } });
  const drawn = (await page.evaluate(pan)).sort((a, b) => a - b);
  const at = (share) => drawn[Math.min(drawn.length - 1, Math.floor(share * drawn.length))].toFixed(1);
  const spans = await page.$eval("#timeline > .note", (note) => note.textContent.match(/^[\d,]+ spans/)[0]);
  console.log(
    `        ${exits(recording).toLocaleString("en-US")} exits, ${events(recording).toLocaleString("en-US")} events, ${spans}; page of ${(statSync(path).size / 1e6).toFixed(1)} MB, usable after ${loaded_ms} ms\n` +
      `        ${drawn.length} frames: median ${at(0.5)} ms, 99% within ${at(0.99)} ms, worst ${at(1)} ms`,
  );
  assert.ok(drawn.length > 200);
  assert.ok(Number(at(0.5)) < 16, "the median frame takes longer than a screen shows it");
  assert.deepEqual(faults, []);
};

export const frames = [
  ["ten thousand exits are drawn in time", frameTimes("exits-1e4", "fixtures/x86-svm/host-guest.dat", null)],
  ["millions of events are drawn in time", frameTimes("large", "fixtures/x86-svm/nested.dat", SIZE)],
  ["millions of calls are drawn in time", frameTimes("large-calls", "fixtures/x86-svm/calls.dat", CALLS_SIZE)],
];
