// The flame graph of code: its numbers are those of hyperscope profile, it can be searched, enlarged and turned, and
// draws in time.

import assert from "node:assert/strict";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { openReport } from "./browser.mjs";
import { hyperscope, RECORDINGS, report, screens } from "./tool.mjs";

const ARM = RECORDINGS.arm64;
const IDLE = ["halted", "halt_poll", "guest_idle"];

const profileOf = (files) => JSON.parse(hyperscope("profile", "--format", "json", ...files));
const shownNs = (page) => page.$eval("#code .code-summary", (one) => Number(one.dataset.shown));
const sum = (rows) => rows.reduce((all, row) => all + row.time_ns, 0);

/** How the page calls a frame, and whose code it is. */
function functionOf(row) {
  const last = row.stack.at(-1);
  if (!last) return null;
  const name = last.symbol ? (last.module ? `${last.symbol} [${last.module}]` : last.symbol) : last.module ? last.module + (last.offset === null ? "" : `+0x${last.offset.toString(16)}`) : `0x${last.offset.toString(16)}`;
  return name;
}

async function functions(page) {
  await page.locator("#code").getByRole("button", { name: "All of them" }).click();
  return page.$$eval("#code .code-functions tbody tr", (rows) => rows.map((row) => ({ key: row.dataset.function, own: Number(row.querySelector("[data-key=own]").dataset.value), total: Number(row.querySelector("[data-key=total]").dataset.value) })));
}

/** Every function's own time, and the sum, are those of `hyperscope profile`, without idle time and with it. */
const sameNumbers = (name, files) => async (browser) => {
  const { rows } = profileOf(files);
  const { page, faults } = await openReport(browser, report(name, files));
  for (const idle of [false, true]) {
    if (idle) await page.locator("#code").getByRole("button", { name: "Idle time" }).click();
    const wanted = rows.filter((row) => idle || !IDLE.includes(row.state));
    assert.equal(await shownNs(page), sum(wanted));
  }
  const expected = new Map();
  // Addresses above 2^53 lose their last digits in JavaScript: those are compared together.
  const known = (key) => (/^0x[0-9a-f]{14,}$/.test(key) ? "addresses" : key);
  for (const row of rows) {
    const function_ = functionOf(row);
    if (function_) expected.set(known(function_), (expected.get(known(function_)) ?? 0) + row.time_ns);
  }
  const shown = new Map();
  for (const { key, own, total } of await functions(page)) {
    assert.ok(total >= own, key);
    const title = known(key.slice(key.indexOf(":") + 1));
    shown.set(title, (shown.get(title) ?? 0) + own);
  }
  assert.ok(expected.size > 5);
  for (const [title, ns] of expected) assert.equal(shown.get(title), ns, title);
  assert.deepEqual(faults, []);
};

/** By vCPU: the time shown with idling is the vCPU's, to the nanosecond. */
async function eachVcpu(browser) {
  const files = ["fixtures/x86-vmx/smp.dat"];
  const { vcpus } = JSON.parse(hyperscope("cpu", "--format", "json", ...files));
  assert.ok(vcpus.length > 1);
  const { page, faults } = await openReport(browser, report("smp", files), { fragment: "#cshow=idle" });
  for (const [at, vcpu] of vcpus.entries()) {
    await page.selectOption("#code [aria-label=Thread]", String(at));
    assert.equal(await shownNs(page), vcpu.time_ns, `vCPU ${vcpu.vcpu}`);
  }
  assert.deepEqual(faults, []);
}

/** Frames that match count once for each stack; text and expressions find the same. */
async function search(browser) {
  const { page, faults } = await openReport(browser, report("arm64", ARM));
  const wanted = profileOf(ARM).rows.filter((row) => !IDLE.includes(row.state));
  const named = wanted.filter((row) => [row.state, row.reason, row.comm, functionOf(row)].some((one) => /dabt_low/i.test(one ?? "")));
  await page.fill("#code input[type=search]", "DABT_LOW");
  const words = await page.textContent("#code .found");
  assert.equal(words.split("%")[0], ((sum(named) * 100) / sum(wanted)).toFixed(2));
  await page.fill("#code input[type=search]", "/^dabt_l.w$/");
  assert.equal(await page.textContent("#code .found"), words);
  await page.fill("#code input[type=search]", "/(/");
  assert.match(await page.textContent("#code .found"), /[Ii]nvalid regular expression/);
  assert.deepEqual(faults, []);
}

const words = (page) => page.textContent("#code .code-about [role=status]");
const width = (text) => Number(/, ([\d.]+)% of all/.exec(text)[1]);

/** Keys go from frame to frame, enlarge, and come back; the address keeps it. */
async function keyboard(browser) {
  const path = report("arm64", ARM);
  const { page, faults } = await openReport(browser, path);
  const picture = page.locator("#code > .code-picture");
  await picture.focus();
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
  const first = await words(page);
  assert.match(first, /^guest_kernel · /);
  await page.keyboard.press("ArrowRight");
  const second = await words(page);
  assert.ok(width(second) <= width(first), `${first}, then ${second}`);
  await page.keyboard.press("Enter");
  const name = second.split(" · ")[0];
  assert.equal(await page.textContent("#code .crumbs [aria-current]"), name);
  await page.keyboard.press("Backspace");
  assert.match(await page.textContent("#code .crumbs [aria-current]"), /^vCPU 0$/);
  await page.locator("#code .code-functions tbody button").first().click();
  assert.ok(await page.isVisible("#code .sandwich"));
  await page.waitForFunction(() => /cof=/.test(location.hash) && /czoom=/.test(location.hash));
  const title = await page.textContent("#code .sandwich h3");
  const other = await openReport(browser, path, { fragment: new URL(page.url()).hash });
  assert.equal(await other.page.textContent("#code .sandwich h3"), title);
  assert.match(await other.page.textContent("#code .crumbs [aria-current]"), /^vCPU 0$/);
  await page.locator("#code .sandwich .code-picture").first().focus();
  await page.keyboard.press("Escape");
  assert.ok(!(await page.isVisible("#code .sandwich")));
  await picture.focus();
  await page.keyboard.press("Escape");
  assert.ok(!(await page.isVisible("#code .crumbs")));
  assert.deepEqual([...faults, ...other.faults], []);
}

/** A pointer shows what is under it, a click enlarges it; layers of the legend act. */
async function pointer(browser) {
  const { page, faults } = await openReport(browser, report("arm64", ARM));
  const box = await page.locator("#code > .code-picture").boundingBox();
  await page.evaluate((y) => window.scrollTo(0, y - 200), box.y);
  const now = await page.locator("#code > .code-picture").boundingBox();
  // The fourth row from the top is what the vCPU did, the longest first.
  await page.mouse.move(now.x + 20, now.y + 3 * 18 + 9);
  assert.match(await page.textContent(".tooltip"), /^guest_kernel.*% of all.*% of vCPU 0.*samples; 95%/);
  await page.mouse.click(now.x + 20, now.y + 3 * 18 + 9);
  assert.equal(await page.textContent("#code .crumbs [aria-current]"), "guest_kernel");
  await page.locator("#code .crumbs button").first().click();
  const before = await shownNs(page);
  await page.getByRole("button", { name: "hide code: guest: kernel" }).click();
  const kernel = profileOf(ARM).rows.filter((row) => ["guest_kernel", "guest_irq"].includes(row.state));
  assert.equal(before - (await shownNs(page)), sum(kernel));
  await page.locator("#code").getByRole("button", { name: "All layers" }).click();
  assert.equal(await shownNs(page), before);
  assert.deepEqual(faults, []);
}

/** What is selected in the timeline is what is shown: whole slices that hold it, in which each vCPU has all of its time. */
async function selectedTime(browser) {
  const { page, faults } = await openReport(browser, report("arm64", ARM), { fragment: "#sel=6000000000-6100000000&cshow=idle" });
  const note = await page.textContent("#code .code-summary");
  const [, slice] = /the slices of ([\d.]+) ms that hold/.exec(note);
  const info = await page.evaluate(() => JSON.parse(document.getElementById("hyperscope-report").textContent).profile.slices);
  assert.ok(Math.abs(info.slice_ns / 1e6 - Number(slice)) < 1, note);
  const slices = Math.ceil((6.1e9 - info.from_ns) / info.slice_ns) - Math.floor((6e9 - info.from_ns) / info.slice_ns);
  assert.equal(await shownNs(page), slices * info.slice_ns);
  await page.locator("#code").getByRole("button", { name: "Selected time only" }).click();
  const whole = await shownNs(page);
  assert.equal(whole, sum(profileOf(ARM).rows));
  await page.locator("#code").getByRole("button", { name: "Selected time only" }).click();
  await page.locator("#code").getByRole("button", { name: "Clear the selection" }).click();
  await page.waitForFunction((ns) => Number(document.querySelector("#code .code-summary").dataset.shown) === ns, whole);
  assert.deepEqual(faults, []);
}

async function looks(browser) {
  for (const [wide, scheme] of [[800, "light"], [1366, "dark"], [2560, "light"]]) {
    const { page, faults } = await openReport(browser, report("arm64", ARM), { viewport: { width: wide, height: 900 }, scheme });
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= wide);
    await page.locator("#code .code-functions tbody button").first().click();
    await page.waitForTimeout(200);
    await page.locator("#code").screenshot({ path: join(screens, `code-${wide}-${scheme}.png`) });
    assert.deepEqual(faults, []);
  }
}

/** A page whose profile is a made-up tree of that many frames. */
function large(frames) {
  const path = join(screens, "code-large.html");
  copyFileSync(report("arm64", ARM), path);
  const text = readFileSync(path, "utf8");
  const [, json] = /id="hyperscope-report">(.*?)<\/script>/s.exec(text);
  const document_ = JSON.parse(json);
  let seed = 7;
  const random = (below) => (seed = (seed * 48271) % 2147483647) % below;
  const bytes = [];
  const number = (value) => {
    for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
    bytes.push(value);
  };
  const names = Array.from({ length: 5000 }, (_, at) => `function_${at}`);
  for (const name of names) {
    number(name.length);
    bytes.push(...Buffer.from(name));
  }
  // Twenty frames deep on the average, as real stacks are.
  for (let at = 1; at <= frames; at++) number(at % 20 === 1 ? at : at % 7 === 0 ? 1 + random(Math.min(at - 1, 19)) : 1);
  for (let at = 0; at < frames; at++) number(random(5000));
  for (let at = 0; at < frames; at++) bytes.push(random(2));
  const rows = 30000;
  const column = (value) => { for (let row = 0; row < rows; row++) number(value(row)); };
  const guestKernel = document_.profile.states.findIndex((one) => one.key === "guest_kernel");
  for (const value of [() => 0, () => guestKernel, () => 1, () => 0, () => 0, () => 2, () => 1 + random(frames), () => 1000 + random(5000), () => 1, () => 0, () => 0]) column(value);
  column(() => 0);
  Object.assign(document_.profile, { names: names.length, frames, rows });
  const packed = gzipSync(Buffer.from(bytes)).toString("base64");
  const safe = JSON.stringify(document_).replaceAll("<", "\\u003c").replaceAll(">", "\\u003e").replaceAll("&", "\\u0026");
  writeFileSync(path, text.replace(json, () => safe).replace(/(id="hyperscope-profile">)[^<]*/, (_, head) => head + packed));
  return path;
}

/** Moves the pointer over the picture and enlarges frames: a redraw each time. */
function redraw() {
  const picture = document.querySelector("#code > .code-picture");
  picture.scrollIntoView({ block: "start" });
  const drawn = [];
  picture.addEventListener("hyperscope:drawn", (event) => drawn.push(event.detail));
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  return (async () => {
    const { left, top, width, height } = picture.getBoundingClientRect();
    for (let step = 0; step < 240; step++) {
      const [x, row] = [(width * ((step * 7) % 240)) / 240, 4 + (step % 12)];
      if (row * 18 > height) continue;
      picture.dispatchEvent(new PointerEvent("pointermove", { clientX: left + x, clientY: top + row * 18 + 9, bubbles: true }));
      await frame();
    }
    return drawn;
  })();
}

/** Changes what is selected: all sums are made again each time. */
function select() {
  const summed = [];
  document.getElementById("code").addEventListener("hyperscope:summed", (event) => summed.push(event.detail));
  return (async () => {
    for (let step = 0; step < 30; step++) {
      dispatchEvent(new Event("hyperscope:selection"));
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    }
    return summed;
  })();
}

async function frameTimes(browser) {
  const { page, faults, loaded_ms } = await openReport(browser, large(50_000), { viewport: { width: 1600, height: 1000 } });
  const drawn = (await page.evaluate(redraw)).sort((a, b) => a - b);
  const at = (share) => drawn[Math.min(drawn.length - 1, Math.floor(share * drawn.length))].toFixed(1);
  console.log(`        50,000 frames of code, usable after ${loaded_ms} ms; ${drawn.length} drawn: median ${at(0.5)} ms, 99% within ${at(0.99)} ms, worst ${at(1)} ms`);
  assert.ok(drawn.length > 50, `${drawn.length} drawn`);
  assert.ok(Number(at(0.5)) < 16, "the median frame takes longer than a screen shows it");
  const summed = (await page.evaluate(select)).sort((a, b) => a - b);
  const median = summed[Math.floor(summed.length / 2)];
  console.log(`        filtered by what is selected in ${median.toFixed(1)} ms (median of ${summed.length}), ${summed.at(-1).toFixed(1)} ms at worst`);
  assert.ok(summed.length >= 30 && median < 50, "a selection in the timeline is not followed at once");
  await page.locator("#code").screenshot({ path: join(screens, "code-large.png") });
  assert.deepEqual(faults, []);
}

export const codes = [
  ["code: numbers are those of hyperscope profile (arm64)", sameNumbers("arm64", ARM)],
  ["code: numbers are those of hyperscope profile (x86)", sameNumbers("tsc", ["fixtures/x86-svm/tsc.dat", "fixtures/x86-svm/tsc.guest.dat"])],
  ["code: each vCPU has all of its time", eachVcpu],
  ["code: matches count once for each stack", search],
  ["code: works by keyboard, and the address keeps it", keyboard],
  ["code: the pointer enlarges, the legend acts", pointer],
  ["code: shows the time that is selected in the timeline", selectedTime],
  ["code: at any width, light and dark", looks],
  ["code: fifty thousand frames are drawn in time", frameTimes],
];
