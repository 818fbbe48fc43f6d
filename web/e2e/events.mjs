// The events that a page holds, next to the timeline; and finding by what exits were about.

import assert from "node:assert/strict";
import { join } from "node:path";
import { openReport } from "./browser.mjs";
import { hyperscope, report, screens } from "./tool.mjs";

const FILE = "fixtures/x86-svm/host-guest.dat";
const FILTER = "[aria-label='Only events with all of these words']";

const said = (page) => page.textContent(".events .found");
const isSaid = (page, words) => page.waitForFunction((expected) => document.querySelector(".events .found").textContent === expected, words);

/** Exits of an interval are those of `hyperscope exits --from --to`, entries and all. */
async function listFollows(browser) {
  const path = report("host", [FILE], "--full-paths");
  const { page, faults } = await openReport(browser, path, { viewport: { width: 1366, height: 768 }, fragment: "#t=6000000000-6100000000" });
  await page.getByRole("button", { name: "Events", exact: true }).click();
  await page.waitForSelector(".event-lines [role=option]");
  const { origin } = await page.evaluate(() => JSON.parse(document.getElementById("hyperscope-report").textContent));
  const at = (ns) => (Number(BigInt(origin) + BigInt(ns)) / 1e9).toFixed(9);
  const exits = (from, to, reason) => JSON.parse(hyperscope("exits", "--format", "json", "--from", at(from), "--to", at(to), FILE)).rows.filter((row) => !reason || row.reason === reason).reduce((sum, row) => sum + row.count, 0);
  await page.fill(FILTER, "exit reason");
  await page.fill(FILTER, "vcpu exit");
  await isSaid(page, `${exits(6_000_000_000, 6_100_000_001)} events`);
  await page.fill(FILTER, "vcpu exit npf");
  await isSaid(page, `${exits(6_000_000_000, 6_100_000_001, "npf")} events`);
  await page.screenshot({ path: join(screens, "events-1366.png") });
  // It follows the time shown.
  const before = await said(page);
  await page.focus("#timeline .area");
  for (let press = 0; press < 3; press++) await page.keyboard.press("+");
  await page.waitForFunction((words) => document.querySelector(".events .found").textContent !== words, before);
  const lines = await page.$$eval(".event-lines [role=option]", (all) => all.map((one) => Number(one.dataset.at)));
  assert.deepEqual(lines, [...lines].sort((a, b) => a - b));
  // A line chooses what goes on then, and the address keeps list and words.
  await page.locator(".event-lines [role=option]").first().click();
  assert.match(await said(page), /^1 of \d+$/);
  assert.match(await page.textContent("#timeline .about"), /npf/);
  await page.waitForFunction(() => location.hash.includes("list=events&event=vcpu+exit+npf"));
  assert.deepEqual(faults, []);
}

/** MSRs and addresses are found in the timeline: as many exits as `exits --by msr` counts. */
async function findsArguments(browser) {
  const rows = JSON.parse(hyperscope("exits", "--by", "msr", "--format", "json", FILE)).rows.filter((row) => row.msr !== null && row.msr !== undefined);
  const most = rows.sort((a, b) => b.count - a.count)[0];
  assert.ok(most.count > 10);
  const { page, faults } = await openReport(browser, report("host", [FILE], "--full-paths"));
  const hex = `MSR 0x${Number(most.msr).toString(16)}`;
  await page.fill("[aria-label='Find in the timeline, or go to a time']", hex);
  await page.keyboard.press("Enter");
  const [, rank, all] = /^([\d,]+) of ([\d,]+)$/.exec(await page.textContent("#timeline .controls .found")) ?? [];
  assert.equal(rank, "1");
  // An exit is one span at least: several, where its parts are known.
  assert.ok(Number(all.replaceAll(",", "")) >= most.paired, `${all} ${most.paired}`);
  await page.focus("#timeline .area");
  await page.keyboard.press("i");
  assert.match(await page.textContent(".drawer"), new RegExp(hex));
  await page.waitForSelector(".span-events tbody tr");
  await page.screenshot({ path: join(screens, "found-argument.png") });
  assert.deepEqual(faults, []);
}

const shots = (scheme, width) => async (browser) => {
  const { page, faults } = await openReport(browser, report("host", [FILE], "--full-paths"), { scheme, viewport: { width, height: 900 }, fragment: "#t=6000000000-6100000000&list=events&event=exit" });
  await page.waitForSelector(".event-lines [role=option]");
  await page.locator("#timeline").scrollIntoViewIfNeeded();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `the page is ${wide} pixels too wide`);
  await page.locator("#timeline").screenshot({ path: join(screens, `events-${scheme}-${width}.png`) });
  assert.deepEqual(faults, []);
};

export const eventLists = [
  ["events: the list follows the time shown", listFollows],
  ["events: what exits were about is found", findsArguments],
  ["events: light, 800 pixels wide", shots("light", 800)],
  ["events: dark, 1366 pixels wide", shots("dark", 1366)],
  ["events: light, 2560 pixels wide", shots("light", 2560)],
];
