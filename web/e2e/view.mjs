// The address of a page keeps what a reader looks at, and harms nobody.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openReport } from "./browser.mjs";
import { RECORDINGS, report, repository, screens } from "./tool.mjs";

const axis = (page) => page.getAttribute("canvas.axis", "aria-label");

async function written(page, pattern) {
  await page.waitForFunction((source) => new RegExp(source).test(location.hash), pattern.source, { timeout: 5000 });
}

/** What a reader sees that the address is to keep. */
const seen = (page) =>
  page.evaluate(() => ({
    axis: document.querySelector("canvas.axis").getAttribute("aria-label"),
    selected: document.querySelector(".selection").hidden ? null : document.querySelector(".selection").innerText,
    find: document.querySelector("#timeline input[type=search]").value,
    found: document.querySelector("#timeline .found").textContent,
    rows: document.querySelectorAll("#exits table.exits tbody tr").length,
    filter: document.querySelector("#exits-filter").value,
    heat: document.querySelector("#heat .note").textContent,
    theme: document.documentElement.dataset.theme,
    clock: document.querySelector(".clock").getAttribute("aria-pressed"),
  }));

/** Reload, and the address in another window, show the same. */
async function addressKeepsTheView(browser) {
  const path = report("host-guest", RECORDINGS["host-guest"]);
  const { page, faults } = await openReport(browser, path);
  const plain = await seen(page);
  await page.fill("#exits-filter", "vm");
  await page.selectOption("#heat [aria-label=Reason]", "npf");
  await page.fill("#timeline input[type=search]", "npf");
  await page.focus(".area");
  for (const key of ["w", "w", "m"]) await page.keyboard.press(key);
  await page.keyboard.press("w");
  await page.getByRole("button", { name: "Recording’s clock" }).click();
  await page.getByRole("button", { name: "Dark" }).click();
  await written(page, /theme=dark/);
  const before = await seen(page);
  for (const key of ["axis", "selected", "find", "rows", "heat", "theme", "clock"]) assert.notEqual(before[key], plain[key], key);
  const address = page.url();
  await page.reload();
  await page.waitForSelector("html[data-ready=true]");
  await page.waitForTimeout(200);
  assert.deepEqual(await seen(page), before);
  const fragment = address.slice(address.indexOf("#"));
  const other = await openReport(browser, path, { fragment });
  await other.page.waitForTimeout(200);
  assert.deepEqual(await seen(other.page), before);
  await other.page.screenshot({ path: join(screens, "view-from-address.png") });
  // A link of the contents leads to its section and leaves the view.
  await other.page.locator("nav.contents a", { hasText: "Timeline" }).click();
  await written(other.page, /at=timeline/);
  assert.deepEqual(await seen(other.page), before);
  // Another address in the same window is followed.
  await other.page.evaluate(() => (location.hash = ""));
  await other.page.waitForTimeout(300);
  assert.deepEqual({ ...(await seen(other.page)), theme: plain.theme }, plain);
  assert.deepEqual([...faults, ...other.faults], []);
}

/** Whatever an address says, the page comes up, without errors, and none of it becomes part of it. */
async function badAddresses(browser) {
  const path = report("arm64", RECORDINGS.arm64);
  const plain = await seen((await openReport(browser, path)).page);
  const bad = ["#t=9-3&sel=x-y&theme=red&level=99&vm=none", "#%E0%A4%A", "#t=99999999999999-999999999999999", "#<img src=x onerror=alert(1)>", `#pin=${"1.".repeat(9000)}`, "#at=__proto__", "#t=0-1e999"];
  for (const fragment of bad) {
    const { page, faults } = await openReport(browser, path, { fragment });
    page.on("dialog", () => faults.push("a script of the address ran"));
    await page.waitForTimeout(150);
    assert.deepEqual(await seen(page), plain, fragment);
    assert.equal(await page.locator("img").count(), 0);
    assert.deepEqual(faults, [], fragment);
    await page.close();
  }
}

/** One clock for the axis, the tooltip and the selection. */
async function oneClock(browser) {
  const { page, faults } = await openReport(browser, report("host-guest", RECORDINGS["host-guest"]));
  const said = async () => {
    const box = await page.locator(".area").boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + 60);
    await page.waitForTimeout(100);
    return [await axis(page), await page.textContent(".tooltip"), await page.textContent(".selection")];
  };
  await page.locator(".area").scrollIntoViewIfNeeded();
  await page.focus(".area");
  await page.keyboard.press("m");
  for (const words of await said()) assert.match(words, /\+\d+\.\d{9} s/);
  await page.getByRole("button", { name: "Recording’s clock" }).click();
  await page.locator(".area").scrollIntoViewIfNeeded();
  for (const words of await said()) assert.match(words, /[^+\d]\d+\.\d{9} s/);
  await page.screenshot({ path: join(screens, "clock-absolute.png") });
  assert.deepEqual(faults, []);
}

/** Folders of the machine are in a page only when asked for. */
async function namesOfFilesOnly() {
  const files = RECORDINGS["host-guest"].map((path) => join(repository, path));
  const holds = (path) => readFileSync(path, "utf8").includes(repository);
  assert.ok(!holds(report("names", files, "--baseline", files[0])));
  assert.ok(holds(report("full-paths", files, "--full-paths")));
}

export const views = [
  ["the address keeps the view", addressKeepsTheView],
  ["bad addresses do no harm", badAddresses],
  ["axis, tooltip and selection have one clock", oneClock],
  ["pages name files without their folders", namesOfFilesOnly],
];
