// Lanes are named apart, pinned, hidden and filtered, states stand out; and the address keeps all of it.

import assert from "node:assert/strict";
import { join } from "node:path";
import { openReport } from "./browser.mjs";
import { RECORDINGS, report, screens } from "./tool.mjs";

const VMS = ["fixtures/x86-vmx/smp.dat"];

/** Names of lanes from the top, as a reader sees them. */
const names = (page) =>
  page.$$eval("#timeline .gutter .name:not([hidden])", (all) => all.sort((a, b) => parseFloat(a.style.top) - parseFloat(b.style.top)).map((one) => one.lastElementChild.textContent));

const picture = (page) => page.$eval("#timeline .lanes", (canvas) => canvas.toDataURL());

async function written(page, pattern) {
  await page.waitForFunction((source) => new RegExp(source).test(location.hash), pattern.source, { timeout: 5000 });
}

async function again(browser, page) {
  const other = await openReport(browser, new URL(page.url()).pathname, { fragment: new URL(page.url()).hash });
  await other.page.waitForTimeout(150);
  return other.page;
}

async function namedApart(browser) {
  const { page, faults } = await openReport(browser, report("smp", VMS));
  const vcpus = (await names(page)).filter((name) => name.includes("vCPU"));
  assert.ok(vcpus.length >= 3, vcpus.join());
  assert.equal(new Set(vcpus).size, vcpus.length);
  for (const name of vcpus) assert.match(name, /^\S+ vCPU \d+$/);
  assert.deepEqual(faults, []);
}

async function pinnedHiddenFiltered(browser) {
  const { page, faults } = await openReport(browser, report("smp", VMS));
  const before = await names(page);
  const last = before.filter((name) => name.includes("vCPU")).at(-1);
  // By the pointer: buttons at a name.
  const row = page.locator("#timeline .name:not([hidden])", { hasText: last });
  await row.scrollIntoViewIfNeeded();
  await row.hover();
  await page.getByRole("button", { name: `Pin ${last}`, exact: true }).click();
  assert.equal((await names(page))[0], last);
  assert.equal((await names(page)).length, before.length);
  // By keys: the lane below is chosen, and hidden.
  await page.focus("#timeline .area");
  for (const key of ["ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
  const hidden = await page.textContent("#timeline .name.chosen span:last-child");
  await page.keyboard.press("h");
  assert.ok(!(await names(page)).includes(hidden), hidden);
  assert.equal((await names(page)).length, before.length - 1);
  await written(page, /pin=\d+.*hide=\d+/);
  await page.locator("#timeline .frame").scrollIntoViewIfNeeded();
  await page.screenshot({ path: join(screens, "lanes-pinned.png") });
  assert.deepEqual(await names(await again(browser, page)), await names(page));
  await page.getByRole("button", { name: `Show ${hidden} again` }).click();
  assert.equal((await names(page)).length, before.length);
  await page.fill("[aria-label='Show only lanes with these words']", `${last} vcpu`);
  assert.deepEqual(await names(page), [last]);
  await written(page, /lanes=/);
  assert.deepEqual(await names(await again(browser, page)), [last]);
  assert.deepEqual(faults, []);
}

/** Threads that ran least are in the page, and shown on request; the filter finds them, too. */
async function quietLanes(browser) {
  const { page, faults } = await openReport(browser, report("arm64", RECORDINGS.arm64));
  const all = await page.evaluate(() => JSON.parse(document.getElementById("hyperscope-report").textContent).timeline.lanes);
  const quiet = all.filter((lane) => lane.quiet);
  assert.ok(quiet.length > 0, "the recording has no lane that is left out at first");
  const folded = () => page.$$eval("#timeline .group[aria-expanded=false]", (groups) => groups.filter((one) => !one.hidden).forEach((one) => one.click()));
  await folded();
  assert.equal((await names(page)).length, all.length - quiet.length);
  await page.getByRole("button", { name: /^Show \d+ more that ran least$/ }).click();
  await folded();
  assert.equal((await names(page)).length, all.length);
  await written(page, /more=lanes/);
  await page.getByRole("button", { name: /that ran least$/ }).click();
  assert.ok(!(await names(page)).includes(quiet[0].name));
  await page.fill("[aria-label='Show only lanes with these words']", quiet[0].name);
  assert.ok((await names(page)).includes(quiet[0].name));
  assert.deepEqual(faults, []);
}

async function statesStandOut(browser) {
  const { page, faults } = await openReport(browser, report("host-guest", RECORDINGS["host-guest"]));
  await page.locator("#timeline .area").scrollIntoViewIfNeeded();
  const pictures = [await picture(page)];
  const changed = async (words) => {
    await page.waitForTimeout(200);
    const now = await picture(page);
    assert.ok(!pictures.includes(now), words);
    pictures.push(now);
  };
  const halted = page.getByRole("button", { name: "halted: let it stand out" });
  await halted.focus();
  await page.keyboard.press("Enter");
  await changed("halted does not stand out");
  assert.equal(await halted.getAttribute("aria-pressed"), "true");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "halted: highlight it", "the focus is lost");
  await page.getByRole("button", { name: "hide exit kernel" }).click();
  await changed("exit kernel is drawn");
  await written(page, /states=halted&without=exit_kernel/);
  await page.screenshot({ path: join(screens, "states-stand-out.png") });
  const other = await again(browser, page);
  assert.equal(await other.getByRole("button", { name: "halted: let it stand out" }).getAttribute("aria-pressed"), "true");
  await page.getByRole("button", { name: "All states as they were" }).click();
  await page.waitForTimeout(200);
  assert.equal(await picture(page), pictures[0]);
  assert.deepEqual(faults, []);
}

export const lanes = [
  ["lanes: each has a name of its own", namedApart],
  ["lanes: pinned, hidden, filtered", pinnedHiddenFiltered],
  ["lanes: those that ran least are shown on request", quietLanes],
  ["lanes: states stand out or are left out", statesStandOut],
];
