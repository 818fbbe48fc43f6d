// Requests and spans with their arrows, from paths and by clicks; what is drawn is what `hyperscope path` prints.

import assert from "node:assert/strict";
import { join } from "node:path";
import { openReport } from "./browser.mjs";
import { hyperscope, report, screens } from "./tool.mjs";

const FILES = ["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"];

const WORDS = { p50: "a usual one", p99: "a slow one", worst: "the slowest" };

const arrows = (page) => page.waitForFunction(() => {
  const [shown, all] = (document.querySelector("canvas.overlay")?.dataset.arrows ?? "0 of 0").split(" of ").map(Number);
  return all > 0 ? { shown, all } : null;
}).then((handle) => handle.jsonValue());

/** Each of the three requests of a path is drawn, with all of its steps, and a reload keeps it. */
const requests = (theme) => async (browser) => {
  const path = report("arrows", FILES);
  const { page, faults } = await openReport(browser, path, { fragment: `#theme=${theme}` });
  const [first] = JSON.parse(hyperscope("path", "--format", "json", ...FILES)).paths;
  assert.deepEqual(first.examples.map((one) => one.of), ["p50", "p99", "worst"]);
  for (const { of, steps } of first.examples) {
    await page.click(`#path .path:first-of-type .shown[data-of="${of}"]`);
    // Every lane is in sight.
    await page.waitForFunction((count) => document.querySelector("canvas.overlay").dataset.arrows === `${count} of ${count}`, steps.length - 1);
    await page.waitForFunction((words) => document.querySelector(".drawer .request")?.textContent.includes(words), WORDS[of]);
    const rows = await page.$$eval(".drawer tbody tr", (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
    assert.deepEqual(rows.map((row) => row[3]), steps.map((step) => step.what), of);
    assert.ok(rows.every((row) => !row[5].startsWith("in no lane")), of);
    await page.waitForTimeout(400);
    await page.screenshot({ path: join(screens, `arrows-${of}-${theme}.png`) });
  }
  await page.waitForFunction(() => location.hash.includes("request=0.worst"));
  await page.reload();
  await page.waitForSelector("html[data-ready]");
  const { all } = await arrows(page);
  assert.equal(all, first.examples[2].steps.length - 1);
  // Another selection takes it away.
  await page.keyboard.press("Escape");
  await page.focus(".area");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector("canvas.overlay").dataset.arrows === "0 of 0");
  assert.deepEqual(faults, []);
  await page.close();
};

/** A span that somebody woke says who, and its arrow is drawn. */
async function ofSpan(browser) {
  const { page, faults } = await openReport(browser, report("arrows", FILES), {});
  await page.focus(".area");
  await page.keyboard.press("ArrowDown");
  let found = 0;
  for (let at = 0; at < 400 && found < 3; at++) {
    await page.keyboard.press(".");
    await page.keyboard.press("i");
    const words = await page.$$eval(".drawer table", (tables) => tables.map((table) => table.textContent).join("\n"));
    if (/exits to|enters|raises an interrupt for|wakes/.test(words)) {
      found++;
      const { all } = await arrows(page);
      assert.ok(all > 0);
    }
  }
  assert.equal(found, 3);
  await page.keyboard.press("Enter");
  await page.waitForTimeout(400);
  await page.screenshot({ path: join(screens, "arrows-span.png") });
  assert.deepEqual(faults, []);
  await page.close();
}

export const arrowChecks = [
  ["arrows: requests of a path are drawn step by step, light", requests("light")],
  ["arrows: requests of a path are drawn step by step, dark", requests("dark")],
  ["arrows: a span shows who woke it, and where it left its guest", ofSpan],
];
