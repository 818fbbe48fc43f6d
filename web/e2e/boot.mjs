// Boots in the page: their phases are those of the boot report, and lead to their places.

import assert from "node:assert/strict";
import { join } from "node:path";
import { openReport } from "./browser.mjs";
import { hyperscope, RECORDINGS, report, screens } from "./tool.mjs";

const BOOT = ["fixtures/x86-svm/boot.dat", "fixtures/x86-svm/boot.guest.dat"];

async function phases(browser) {
  const { page, faults } = await openReport(browser, report("boot", BOOT));
  const [machine] = JSON.parse(hyperscope("boot", "--format", "json", ...BOOT)).machines;
  const drawn = await page.$$eval("#boot .phase", (all) => all.map((one) => Number(one.style.flexGrow)));
  assert.equal(drawn.length, machine.phases.length);
  // Style sheets keep six digits.
  machine.phases.forEach(({ name, duration_ns: lasts }, at) => assert.ok(Math.abs(drawn[at] - lasts) <= lasts * 1e-5, `${name}: ${drawn[at]}`));
  const titles = await page.$$eval("#boot tbody tr:not(.initcall) th", (all) => all.map((one) => one.textContent));
  assert.equal(titles.length, machine.phases.length);
  assert.ok(titles.includes("subsys") && titles.includes("down: devices") && titles.includes('after "up"'), titles.join());
  const slowest = await page.$$eval("#boot tbody tr.initcall th", (all) => all.map((one) => one.textContent));
  const outer = machine.initcalls.filter((one) => one.depth === 0).sort((a, b) => b.duration_ns - a.duration_ns);
  assert.equal(slowest[0], outer[0].function);
  await page.locator("#boot").screenshot({ path: join(screens, "boot.png") });
  assert.deepEqual(faults, []);
}

async function pointerAndKeyboard(browser) {
  const { page, faults } = await openReport(browser, report("boot", BOOT));
  const at = await page.$$eval("#boot .phase", (all) => all.findIndex((one) => one.getAttribute("aria-label").startsWith("subsys")));
  const phase = page.locator("#boot .phase").nth(at);
  await phase.scrollIntoViewIfNeeded();
  await phase.hover();
  assert.match(await page.textContent(".tooltip"), /^subsys.*1\.71 s.*2,573 exits$/);
  await page.mouse.move(0, 0);
  assert.ok(!(await page.isVisible(".tooltip")));
  const axis = () => page.$eval(".axis", (canvas) => canvas.toDataURL());
  const before = await axis();
  await phase.focus();
  await page.keyboard.press("Enter");
  for (let tries = 0; (await axis()) === before; tries++) {
    assert.ok(tries < 100, "a phase does not lead to its place in the timeline");
    await page.waitForTimeout(50);
  }
  assert.deepEqual(faults, []);
}

async function search(browser) {
  const { page, faults } = await openReport(browser, report("boot", BOOT));
  await page.fill("#boot input[type=search]", "virtio");
  const rows = await page.$$eval("#boot tbody tr", (all) => all.map((one) => one.className + one.querySelector("th").textContent));
  assert.ok(rows.length > 2 && rows.every((one) => one.startsWith("initcall") && one.includes("virtio")), rows.join());
  assert.equal(await page.locator("#boot .phase:not(.dim)").count(), 0);
  await page.fill("#boot input[type=search]", "down");
  assert.match(await page.textContent("#boot .found"), /^5 phases, \d+ initcalls/);
  assert.equal(await page.locator("#boot .phase:not(.dim)").count(), 5);
  assert.deepEqual(faults, []);
}

async function none(browser) {
  const { page } = await openReport(browser, report("host-guest", RECORDINGS["host-guest"]));
  assert.equal(await page.locator("#boot").count(), 0);
}

export const boots = [
  ["boots: phases and initcalls are those of hyperscope boot", phases],
  ["boots: a phase says what it is, and leads to its place", pointerAndKeyboard],
  ["boots: phases and initcalls are found by words", search],
  ["boots: a recording without one has none", none],
];
