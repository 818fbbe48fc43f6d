// Findings say why exits happen and what helps: what `hyperscope advice` says of the same recording.

import assert from "node:assert/strict";
import { join } from "node:path";
import { openReport } from "./browser.mjs";
import { hyperscope, report, screens } from "./tool.mjs";

const ofAdvice = (name, file) => async (browser) => {
  const { rows } = JSON.parse(hyperscope("advice", "--format", "json", file));
  assert.ok(rows.length > 0);
  const { page, faults } = await openReport(browser, report(`${name}-advice`, [file]), { viewport: { width: 1366, height: 768 } });
  assert.equal(await page.locator(".advice:visible").count(), 0);
  // By keys: from a finding to what is below it.
  await page.locator(".why summary").first().focus();
  await page.keyboard.press("Enter");
  assert.ok(await page.locator(".why[open] .advice").first().isVisible());
  await page.screenshot({ path: join(screens, `advice-${name}.png`) });
  const shown = await page.$$eval(".advice", (all) => all.map((one) => ({ rule: one.dataset.rule, title: one.querySelector("h3").textContent, why: one.querySelector("p").textContent, helps: [...one.querySelectorAll("ul:first-of-type li")].map((help) => help.textContent), facts: one.querySelectorAll("ul:last-of-type li").length })));
  const expected = rows.map(({ rule, title, why, helps, evidence }) => ({ rule, title, why, helps, facts: evidence.length }));
  const sorted = (all) => all.map((one) => JSON.stringify(one)).sort();
  assert.deepEqual(sorted(shown), sorted(expected));
  assert.deepEqual(faults, []);
};

export const advices = [
  ["advice: what helps stands at the findings of nested", ofAdvice("nested", "fixtures/x86-svm/nested.dat")],
  ["advice: what helps stands at the findings of arm64", ofAdvice("arm64", "fixtures/arm64/B-vhost-off.dat")],
];
