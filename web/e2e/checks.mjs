// What a page of a real recording must show and do.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openReport } from "./browser.mjs";
import { exitsOf, hyperscope, RECORDINGS, report, screens } from "./tool.mjs";

const TIMES = ["time", "min", "max", "mean", "sd", "p50", "p90", "p99", "p999", "kernel", "user", "user_and_return", "off_cpu", "off_cpu_runnable", "off_cpu_blocked", "halt_poll", "before_exit", "guest"];

async function shot(page, name, options = {}) {
  await page.waitForTimeout(250);
  await page.screenshot({ path: join(screens, `${name}.png`), ...options });
}

/** Every number of the exits table, as the page has it: by column, null where not recorded. */
async function table(page) {
  await page.getByRole("button", { name: "All numbers" }).click();
  return page.$$eval("#exits table.exits tbody tr", (rows) =>
    rows.map((row) => Object.fromEntries([...row.children].map((cell) => [cell.dataset.key, cell.dataset.value ?? null]))),
  );
}

function expectedRow(row) {
  const plain = { reason: row.reason, vm: row.vm, isa: row.isa, source: row.source };
  const numbers = { level: row.level, code: row.code, count: row.count, paired: row.paired, dropped: row.dropped, relative_error: row.relative_error };
  const handled = { handled_kernel: row.handled.kernel, handled_user: row.handled.user, handled_l1: row.handled.l1 };
  const times = Object.fromEntries(TIMES.map((name) => [name, row[`${name}_ns`] ?? null]));
  const all = { ...plain, ...numbers, ...handled, ...times };
  return Object.fromEntries(Object.entries(all).map(([key, value]) => [key, value === null ? null : String(value)]));
}

const sameNumbers = (name, files) => async (browser) => {
  const { page, faults } = await openReport(browser, report(`${name}-paths`, files, "--full-paths"));
  const shown = await table(page);
  const expected = exitsOf(files).rows.map(expectedRow);
  assert.equal(shown.length, expected.length);
  shown.forEach((row, at) => {
    for (const [key, value] of Object.entries(expected[at])) assert.equal(row[key], value, `${row.reason} ${key}`);
  });
  assert.deepEqual(faults, []);
  await page.getByRole("button", { name: "All numbers" }).click();
  await shot(page, `${name}-light`, { fullPage: true });
};

/** The distributions drawn have every timed exit. */
const everyExitDrawn = (name, files) => async (browser) => {
  const { page } = await openReport(browser, report(name, files));
  const words = await page.textContent("#heat .note");
  const timed = exitsOf(files).rows.reduce((sum, row) => sum + row.paired, 0);
  assert.ok(words.startsWith(`${timed.toLocaleString("en-US")} timed exits (all exits)`), words);
};

/** Time by state over the whole timeline is what the exits report adds up to. */
async function timelineAddsUp(browser) {
  const files = RECORDINGS.nested;
  const { page } = await openReport(browser, report("nested", files));
  await page.focus(".area");
  await page.keyboard.press("m");
  await page.getByRole("tab", { name: "States" }).click();
  const cells = await page.$$eval(".selection tbody tr", (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
  const titles = await page.$$eval(".selection thead th", (heads) => heads.map((head) => head.textContent));
  const lane = cells.find((row) => row[0].includes("vCPU 0"));
  const user = exitsOf(files).rows.reduce((sum, row) => sum + (row.user_ns ?? row.user_and_return_ns ?? 0), 0);
  const shown = lane[titles.indexOf("exit user")];
  const milliseconds = Number(shown.split(" ms")[0]);
  assert.ok(Math.abs(milliseconds - user / 1e6) <= 0.5, `${shown} but ${user}`);
}

/** Each vCPU's states are those of the cpu report, and fill its bar. */
async function statesOfVcpus(browser) {
  const files = RECORDINGS["host-guest"];
  const { page, faults } = await openReport(browser, report("host-guest", files));
  const { vcpus } = JSON.parse(hyperscope("cpu", "--format", "json", ...files));
  const bars = await page.$$eval("#cpu figure:first-child .bar", (all) => all.map((bar) => [...bar.children].map((part) => Number(part.style.flexGrow))));
  const states = vcpus.map((one) => Object.values(one.states).filter((value) => value > 0));
  const shares = (all) => all.map((parts) => parts.map((part) => (part / parts.reduce((a, b) => a + b)).toFixed(6)));
  assert.deepEqual(shares(bars), shares(states));
  vcpus.forEach((one, at) => assert.equal(states[at].reduce((a, b) => a + b), one.time_ns));
  assert.deepEqual(faults, []);
}

/** Numbers of functions are those of `hyperscope calls`; a call's own time and its callees' are the whole. */
async function callsMatchTheCommand(browser) {
  const [source] = JSON.parse(hyperscope("calls", "--format", "json", ...RECORDINGS.calls)).sources;
  const { page, faults } = await openReport(browser, report("calls", RECORDINGS.calls));
  await page.getByRole("button", { name: "All functions" }).click();
  const rows = await page.$$eval("#calls tbody tr", (all) => all.map((row) => [row.children[0].textContent, row.querySelector("[data-key=calls]").textContent]));
  const title = (one) => (one.module ? `${one.name} [${one.module}]` : one.name);
  assert.deepEqual(rows, source.functions.map((one) => [title(one), one.count.toLocaleString("en-US")]));
  const frames = await page.$$eval(".flame .frames > div:not([hidden])", (all) => all.map((one) => one.getBoundingClientRect().width));
  assert.ok(frames.length > 100, `${frames.length} frames`);
  await page.fill("[aria-label='Find a function']", "svm_handle_exit");
  assert.equal(await page.locator(".flame .found").count(), 1);
  assert.match(await page.textContent("#calls .found[role=status]"), /%/);
  // A name leads into the timeline, whose lanes hold every call that returned.
  await page.locator("#calls tbody button", { hasText: "svm_handle_exit [kvm_amd]" }).click();
  const words = await page.textContent("#timeline .about");
  assert.match(words, /^svm_handle_exit \[kvm_amd\] · .* from call to return; itself .*%\), \d+ calls that it made .* · all 146 of its calls: .*depth 0/);
  assert.match(await page.textContent("#timeline .found"), /^\d+ of 146$/);
  await page.fill("#timeline input[type=search]", "CPU 0/KVM-");
  const calls = source.functions.reduce((sum, one) => sum + one.count, 0);
  const spans = Number((await page.textContent("#timeline .found")).match(/([\d,]+)( spans)?$/)[1].replaceAll(",", ""));
  assert.ok(spans >= calls * 0.999 && spans <= calls * 1.2, `${spans} spans, ${calls} calls`);
  assert.deepEqual(faults, []);
  await page.setViewportSize({ width: 1440, height: 1180 });
  await page.keyboard.press("Enter");
  await page.focus(".area");
  for (const key of ["Enter", "ArrowDown"]) await page.keyboard.press(key);
  await shot(page, "calls");
}

/** Waits until something is another than it was. */
async function changes(what, before, words) {
  for (let tries = 0; tries < 100; tries++) {
    if ((await what()) !== before) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(words);
}

async function keyboard(browser) {
  const { page, faults } = await openReport(browser, report("host-guest", RECORDINGS["host-guest"]));
  const axis = () => page.$eval(".axis", (canvas) => canvas.toDataURL());
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.type), "search");
  await page.keyboard.type("npf");
  assert.match(await page.textContent(".found"), /^[\d,]+ spans$/);
  await page.keyboard.press("Enter");
  assert.match(await page.textContent(".about"), /npf/);
  await page.focus(".area");
  const begin = await axis();
  for (const key of ["w", "+", "ArrowRight", "d", "a", "ArrowLeft", "s", "-"]) {
    const before = await axis();
    await page.keyboard.press(key);
    await changes(axis, before, `${key} does nothing`);
  }
  await page.keyboard.press("0");
  await changes(axis, begin, "0 does nothing");
  await page.keyboard.press("ArrowDown");
  const first = await page.textContent(".about");
  await page.keyboard.press(".");
  assert.notEqual(await page.textContent(".about"), first);
  await page.keyboard.press("Enter");
  await page.keyboard.press("m");
  assert.ok(await page.isVisible(".selection"));
  await shot(page, "keyboard");
  await page.keyboard.press("Escape");
  assert.ok(!(await page.isVisible(".selection")));
  await page.keyboard.press("Tab");
  assert.notEqual(await page.evaluate(() => document.activeElement.className), "area", "Tab leaves the timeline");
  // Everything can be reached by Tab, and whatever has the focus can be seen to have it.
  await page.evaluate(() => { document.activeElement.blur(); window.scrollTo(0, 0); });
  const seen = new Set();
  for (let step = 0; step < 120; step++) {
    await page.keyboard.press("Tab");
    seen.add(await page.evaluate(() => document.activeElement.closest("section, header, nav, footer")?.id || document.activeElement.closest("header, nav")?.tagName));
  }
  for (const part of ["HEADER", "NAV", "summary", "exits", "heat", "timeline"]) assert.ok(seen.has(part), `${part} is not reached by Tab: ${[...seen]}`);
  assert.deepEqual(faults, []);
}

async function dark(browser) {
  const path = report("arm64", RECORDINGS.arm64);
  const { page, faults } = await openReport(browser, path, { scheme: "dark" });
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await background(), "rgb(20, 23, 27)");
  await shot(page, "arm64-dark", { fullPage: true });
  await page.getByRole("button", { name: "Light" }).click();
  assert.equal(await background(), "rgb(255, 255, 255)");
  assert.deepEqual(faults, []);
}

async function narrow(browser) {
  for (const [name, files] of Object.entries(RECORDINGS)) {
    const { page, faults } = await openReport(browser, report(name, files), { viewport: { width: 360, height: 780 } });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 360, `${name}: the page is ${wide} wide`);
    assert.deepEqual(faults, []);
    await shot(page, `${name}-narrow`, { fullPage: true });
  }
}

async function findingsLead(browser) {
  const { page } = await openReport(browser, report("nested", RECORDINGS.nested));
  const all = await page.$$(".finding");
  assert.ok(all.length >= 4);
  await page.locator(".finding", { hasText: "vmload" }).first().click();
  const rows = await page.$$eval("#exits table.exits tbody tr", (lines) => lines.map((line) => line.querySelector("[data-key=reason]").dataset.value));
  assert.deepEqual([...new Set(rows)], ["vmload"]);
  assert.match(await page.textContent("#heat .note"), /vmload/);
  await page.locator("#exits .chip").click();
  assert.ok((await page.$$("#exits table.exits tbody tr")).length > 10);
}

/** A path leads to the request that it draws: that is selected, to the nanosecond. */
async function pathsLead(browser) {
  const files = RECORDINGS["host-guest"];
  const { paths } = JSON.parse(hyperscope("path", "--format", "json", ...files));
  const { page, faults } = await openReport(browser, report("host-guest", files));
  const origin = await page.evaluate(() => JSON.parse(document.getElementById("hyperscope-report").textContent).origin_ns);
  await page.locator("#path .shown").first().click();
  const [first, last] = [paths[0].example[0].ts_ns, paths[0].example.at(-1).ts_ns].map((ns) => ns - origin);
  await page.waitForFunction((wanted) => location.hash.includes(wanted), `sel=${first}-${last}`);
  assert.ok(await page.isVisible(".selection"));
  await shot(page, "path-in-timeline");
  assert.deepEqual(faults, []);
}

async function sortingAndFiltering(browser) {
  const { page } = await openReport(browser, report("nested", RECORDINGS.nested));
  const column = (key) => page.$$eval(`#exits table.exits tbody [data-key=${key}]`, (cells) => cells.map((cell) => Number(cell.dataset.value)));
  await page.locator("th[data-key=max] button").click();
  const most = await column("max");
  assert.deepEqual(most, [...most].sort((a, b) => b - a));
  await page.keyboard.press("Enter");
  assert.deepEqual(await column("max"), [...most].reverse());
  assert.equal(await page.getAttribute("th[data-key=max]", "aria-sort"), "ascending");
  await page.fill("#exits-filter", "level 2");
  assert.ok((await column("level")).every((level) => level === 2));
}

async function hoverShowsWhatIsThere(browser) {
  const { page } = await openReport(browser, report("arm64", RECORDINGS.arm64));
  for (const selector of [".area", ".heat canvas"]) {
    const box = await page.locator(selector).boundingBox();
    await page.evaluate((y) => window.scrollTo(0, y - 300), box.y);
    const now = await page.locator(selector).boundingBox();
    await page.mouse.move(now.x + now.width * 0.52, now.y + now.height * 0.5);
    await page.waitForTimeout(100);
    const words = await page.textContent(".tooltip");
    assert.match(words, /\d/, selector);
    await shot(page, selector === ".area" ? "hover-timeline" : "hover-heat");
  }
}

async function dragSelects(browser) {
  const { page } = await openReport(browser, report("host-guest", RECORDINGS["host-guest"]));
  await page.locator(".area").scrollIntoViewIfNeeded();
  const box = await page.locator(".area").boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 6 });
  await page.mouse.up();
  const words = await page.textContent(".selection");
  assert.match(words, /3\.0\d s selected/);
  await shot(page, "selection");
}

/** A comparison shows those rows that `hyperscope diff` calls significant, and all when asked. */
async function compares(browser) {
  const [before, after] = ["fixtures/arm64/B-vhost-off.dat", "fixtures/arm64/B-vhost-on.dat"];
  const { rows } = JSON.parse(hyperscope("diff", "--format", "json", before, after));
  const { page, faults } = await openReport(browser, report("diff", [after], "--baseline", before));
  const shown = () => page.locator("#diff tbody tr").count();
  assert.equal(await shown(), rows.filter((row) => row.significant).length);
  await page.evaluate(() => document.getElementById("diff").scrollIntoView());
  await shot(page, "diff");
  await page.getByRole("button", { name: "All rows" }).click();
  assert.equal(await shown(), rows.length);
  assert.deepEqual(faults, []);
}

/** Behind every figure there is a table. */
async function tablesBehind(browser) {
  const { page } = await openReport(browser, report("host-guest", RECORDINGS["host-guest"]));
  const all = page.locator("details.behind > summary");
  const count = await all.count();
  assert.ok(count >= 4);
  for (let at = 0; at < count; at++) {
    const behind = page.locator("details.behind").nth(at);
    await behind.evaluate((details) => { for (let up = details; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true; });
    await behind.locator("tbody tr").first().waitFor();
  }
  const unnamed = await page.$$eval("canvas, [role=img]", (figures) => figures.filter((one) => !one.getAttribute("aria-label") && one.getAttribute("role") === "img").length);
  assert.equal(unnamed, 0);
}

/** Strings of a recording are text, whatever they are. */
async function untrusted(browser) {
  const evil = `</script><img src=x onerror=alert(1)><script>alert(2)</script>&amp;`;
  const path = report("untrusted", RECORDINGS.arm64, "--title", evil);
  const changed = join(screens, "untrusted.html");
  copyFileSync(path, changed);
  // The names in the page are changed as a hostile recording would have them.
  const safe = evil.replaceAll("<", "\\u003c").replaceAll(">", "\\u003e").replaceAll("&", "\\u0026");
  writeFileSync(changed, readFileSync(path, "utf8").replaceAll("vm-148", safe).replaceAll("DABT_LOW", safe));
  const { page, faults } = await openReport(browser, changed);
  page.on("dialog", () => faults.push("a script of the recording ran"));
  assert.equal(await page.textContent("h1"), evil);
  assert.equal(await page.locator("img").count(), 0);
  assert.ok((await page.textContent("#exits table.exits")).includes(evil));
  await page.waitForTimeout(200);
  assert.deepEqual(faults, []);
}

async function prints(browser) {
  const { page } = await openReport(browser, report("nested", RECORDINGS.nested));
  const pdf = join(screens, "nested.pdf");
  await page.pdf({ path: pdf, format: "A4", landscape: true });
  const text = readFileSync(pdf);
  assert.ok(text.length > 20_000);
  try {
    execFileSync("pdftoppm", ["-r", "45", "-png", "-l", "2", pdf, join(screens, "print")]);
  } catch {
    // Pictures of it are for people to look at; poppler-utils makes them where it is installed.
  }
}

const perRecording = Object.entries(RECORDINGS).flatMap(([name, files]) => [
  [`${name}: numbers are those of hyperscope exits`, sameNumbers(name, files)],
  [`${name}: every timed exit is in the figures`, everyExitDrawn(name, files)],
]);

export const checks = [
  ...perRecording,
  ["calls are those of hyperscope calls", callsMatchTheCommand],
  ["times in the timeline add up to those of exits", timelineAddsUp],
  ["vCPUs are drawn in the states that cpu has", statesOfVcpus],
  ["everything works by keyboard", keyboard],
  ["dark and light", dark],
  ["narrow windows", narrow],
  ["findings lead to their place", findingsLead],
  ["paths lead to the request that they draw", pathsLead],
  ["tables are sorted and filtered", sortingAndFiltering],
  ["the pointer shows what is under it", hoverShowsWhatIsThere],
  ["a drag selects and sums up", dragSelects],
  ["two runs are compared", compares],
  ["behind every figure there is a table", tablesBehind],
  ["names are text, whatever they are", untrusted],
  ["the page can be printed", prints],
];
