// A page that is served loads what was merged, and lists the recording's own events.

import assert from "node:assert/strict";
import { join } from "node:path";
import { openReport } from "./browser.mjs";
import { hyperscope, report, screens, serve } from "./tool.mjs";

const FILES = ["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"];

const dataOf = (page) => page.evaluate(() => JSON.parse(document.getElementById("hyperscope-report").textContent));
const seconds = (ns) => `${ns / 1_000_000_000n}.${String(ns % 1_000_000_000n).padStart(9, "0")}`;
const picture = (page) => page.$eval("#timeline .lanes", (canvas) => canvas.toDataURL());

/** A page that merges nothing draws the same as one that does and loads it when zoomed. */
async function deeperLevel(browser) {
  const server = await serve(FILES.slice(0, 1), "--spans", "2000");
  try {
    const whole = await openReport(browser, report("host", FILES.slice(0, 1)));
    const { length_ns: length } = await dataOf(whole.page);
    const [from, to] = [Math.round(length * 0.4), Math.round(length * 0.4) + 20_000_000];
    const fragment = `#t=${from}-${to}&lanes=vcpu`;
    const [exact, served, alone] = [
      await openReport(browser, report("host", FILES.slice(0, 1)), { fragment }),
      await openReport(browser, null, { address: server.address, fragment }),
      await openReport(browser, report("host-merged", FILES.slice(0, 1), "--spans", "2000"), { fragment }),
    ];
    for (const { page } of [exact, served, alone]) await page.waitForTimeout(1500);
    assert.notEqual(await picture(alone.page), await picture(exact.page), "nothing was merged");
    assert.equal(await picture(served.page), await picture(exact.page), "what was loaded differs from the recording");
    for (const { faults } of [exact, served, alone]) assert.deepEqual(faults, []);
    await served.page.locator("#timeline").screenshot({ path: join(screens, "served.png") });
  } finally {
    server.end();
  }
}

/** All events of the time shown, by words, in order; a click marks one. */
async function recordedEvents(browser) {
  const server = await serve(FILES);
  try {
    const first = await openReport(browser, null, { address: server.address });
    const { origin } = await dataOf(first.page);
    const [from, to] = [6_000_000_000, 6_020_000_000];
    const { page, faults } = await openReport(browser, null, { address: server.address, fragment: `#t=${from}-${to}&list=events` });
    await page.waitForSelector(".event-lines [role=option]");
    const range = ["--from", seconds(BigInt(origin) + BigInt(from)), "--to", seconds(BigInt(origin) + BigInt(to))];
    const printed = hyperscope("events", "--format", "jsonl", ...range, ...FILES).trim().split("\n").map((line) => JSON.parse(line));
    const names = (all) => all.slice(0, 300).map((one) => `${one.event.replace(/^[^:]*:/, "")}`);
    assert.deepEqual(await page.$$eval(".event-lines [role=option]", (all) => all.map((one) => one.dataset.name)), names(printed));
    assert.equal(await page.textContent(".events .found"), `${printed.length.toLocaleString("en-US")} events`);
    await page.fill("[aria-label='Only events with all of these words']", "kvm_exit npf");
    const npf = printed.filter((one) => one.event === "kvm:kvm_exit" && one.fields.exit_reason === 1024);
    await page.waitForFunction((count) => document.querySelector(".events .found").textContent === `${count} events`, npf.length);
    // By keys: the first, then the second of them, marked in the timeline.
    await page.focus(".event-lines");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    assert.equal(await page.textContent(".events .found"), `2 of ${npf.length}`);
    assert.match(await page.textContent(".event-lines [aria-selected=true]"), /npf/);
    await page.screenshot({ path: join(screens, "events-served.png") });
    // The events around a span that is clicked are the recording's, too.
    await page.focus("#timeline .area");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("i");
    await page.waitForSelector(".span-events tbody tr");
    assert.match(await page.textContent(".span-events"), /sched_|kvm_/);
    await page.screenshot({ path: join(screens, "span-events.png") });
    assert.deepEqual(faults, []);
  } finally {
    server.end();
  }
}

export const serveds = [
  ["served: what was merged is loaded from the recording", deeperLevel],
  ["served: the recording's events", recordedEvents],
];
