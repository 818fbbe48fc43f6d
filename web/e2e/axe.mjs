// What axe finds in pages of real recordings, also with their drawer, list of events and folded tables open, in light and dark: nothing.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { openReport } from "./browser.mjs";
import { RECORDINGS, report } from "./tool.mjs";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** One line for each fault: its rule, and where. */
export async function faultsOf(page) {
  await page.evaluate(source);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.flatMap(({ id, help, nodes }) => nodes.map((node) => `${id} (${help}): ${node.target.join(" ")}: ${node.html.slice(0, 160)} ${node.failureSummary ?? ""}`));
}

const nothingFound = (name, files, scheme, viewport) => async (browser) => {
  const { page } = await openReport(browser, report(name, files), { scheme, viewport });
  assert.deepEqual(await faultsOf(page), []);
  await page.locator("#exits tbody tr td[data-key=count]").first().click();
  assert.ok(await page.isVisible(".drawer"));
  await page.getByRole("button", { name: "Events", exact: true }).evaluate((button) => button.click());
  await page.waitForSelector(".event-lines [role=option]");
  await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
  await page.waitForTimeout(200);
  assert.deepEqual(await faultsOf(page), []);
};

const narrow = { width: 800, height: 900 };

export const accessibility = Object.entries(RECORDINGS).flatMap(([name, files]) => [
  [`axe finds nothing in ${name}`, nothingFound(name, files, "light")],
  [`axe finds nothing in ${name}, dark and narrow`, nothingFound(name, files, "dark", narrow)],
]);
