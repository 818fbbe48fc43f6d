// What a task waited for: what the page shows is what hyperscope critical prints, and waits are drawn step by step.

import assert from "node:assert/strict";
import { join } from "node:path";
import { openReport } from "./browser.mjs";
import { hyperscope, RECORDINGS, report, screens } from "./tool.mjs";

const FILES = RECORDINGS.arm64;
const TASK = "vm-148/init";

async function isThatOfCritical(browser) {
  const { parts, longest, waited_ns } = JSON.parse(hyperscope("critical", "--task", TASK, "--format", "json", ...FILES));
  const { page, faults } = await openReport(browser, report("critical", FILES, "--critical", TASK));
  const more = page.locator("#critical .behind");
  await more.locator("summary").click();
  const shown = await page.$$eval("#critical tbody tr", (rows) => rows.map((row) => [row.cells[0].textContent, Number(row.cells[2].dataset.value)]));
  assert.ok(shown.length > 12 && shown.length <= 101);
  for (const [at, { machine, thread, time_ns }] of parts.slice(0, 100).entries()) assert.deepEqual(shown[at], [`${machine}: ${thread}`, time_ns]);
  assert.equal(shown.reduce((sum, [, time]) => sum + time, 0), waited_ns);
  for (const [at, { steps }] of longest.entries()) {
    await page.click(`#critical .shown[data-of="${at}.wait"]`);
    await page.waitForFunction((name) => location.hash.includes(`request=${name}`), `${at}.wait`);
    await page.waitForFunction((count) => document.querySelectorAll(".drawer tbody tr").length === count, steps.length + 1);
    const rows = await page.$$eval(".drawer tbody tr", (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.deepEqual(rows.slice(0, -1).map((row) => row[4]), steps.map(({ machine, thread }) => `${machine} ${thread}`));
    const withLane = rows.filter((row) => !row[5].startsWith("in no lane")).length;
    assert.ok(withLane > rows.length / 2);
    const drawn = await page.waitForFunction((count) => document.querySelector("canvas.overlay").dataset.arrows.endsWith(` of ${count}`), withLane - 1);
    assert.ok(drawn);
  }
  await page.waitForTimeout(400);
  await page.screenshot({ path: join(screens, "critical.png") });
  await page.locator("#critical").scrollIntoViewIfNeeded();
  await page.screenshot({ path: join(screens, "critical-table.png") });
  assert.deepEqual(faults, []);
  await page.close();
}

export const criticals = [["critical: what a task waited for is that of hyperscope critical, and is drawn", isThatOfCritical]];
