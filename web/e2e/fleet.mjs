// Pages of fleets: simulated from a real recording with known effects, and of real recordings in a lake. What they show is what
// `hyperscope fleet diff` and `fleet since` say, and the commands in them open sessions' reports.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { faultsOf } from "./axe.mjs";
import { openReport } from "./browser.mjs";
import { hyperscope, program, repository, screens } from "./tool.mjs";

const SIDES = ["--a", "date < '2026-11-06'", "--b", "date >= '2026-11-06'"];

/** One reason 20% dearer on every other host, another three times as dear on one, both from the sixth day on. */
const EFFECTS = ["--effect", "io:cost=+20%,model=1,day=5", "--effect", "msr:cost=+200%,host=6,day=5"];

const made = new Map();

/** A lake, made once. */
function lake(name, make) {
  const path = join(screens, `lake-${name}`);
  if (!made.has(name)) {
    rmSync(path, { recursive: true, force: true });
    make(path);
    made.set(name, path);
  }
  return path;
}

const simulated = () =>
  lake("fleet", (path) => hyperscope("fleet", "simulate", path, "--hosts", "24", "--days", "10", "--slices", "1", "--seed", "7", ...EFFECTS, "fixtures/x86-svm/nested.dat"));

const quiet = () => lake("quiet", (path) => hyperscope("fleet", "simulate", path, "--hosts", "12", "--days", "2", "--slices", "1", "--seed", "4", "fixtures/arm64/D.dat"));

/** Three hosts of two recordings each. */
const real = (hosts) => (path) => {
  mkdirSync(path, { recursive: true });
  for (const host of hosts) {
    hyperscope("lake", "add", path, "--host", host, "--begun", "1795305600", "fixtures/arm64/B-vhost-off.dat");
    hyperscope("lake", "add", path, "--host", host, "--begun", "1795392000", "fixtures/arm64/B-vhost-on.dat");
  }
};

function page(lake, sides = SIDES) {
  const path = `${lake}.html`;
  hyperscope("fleet", "diff", ...sides, lake, "-o", path);
  return path;
}

const diffOf = (lake, sides = SIDES) => JSON.parse(hyperscope("fleet", "diff", ...sides, "--format", "json", lake));
const ODD = Array.from({ length: 12 }, (_, at) => `simulated-${String(2 * at + 1).padStart(3, "0")}`);

async function shot(page, name, options = {}) {
  await page.waitForTimeout(200);
  await page.screenshot({ path: join(screens, `fleet-${name}.png`), ...options });
}

const cells = (page, selector) => page.$$eval(`${selector} tbody tr`, (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));

/** The effects are named with their hosts and their day; numbers are those of the command. */
async function effectsAreShown(browser) {
  const { page: view, faults } = await openReport(browser, page(simulated()));
  const found = await view.$$eval(".finding", (all) => all.map((one) => one.textContent));
  assert.ok(found.some((text) => /^io .*12 of 24 hosts, all of cpu_model simulated-1: simulated-001, simulated-003, /.test(text)), found.join("\n"));
  assert.ok(found.some((text) => /^Since 2026-11-06: io .* on 12 of 24 hosts, all of cpu_model simulated-1/.test(text)), found.join("\n"));
  assert.ok(found.every((text) => text.includes("io")), "nothing else changed");

  const { rows } = diffOf(simulated());
  await view.locator("#rows button", { hasText: "All rows" }).click();
  const shown = await cells(view, "#rows");
  assert.equal(shown.length, rows.length);
  shown.forEach((cell, at) => {
    assert.equal(cell[0], rows[at].stratum ?? "all");
    assert.equal(cell[5], rows[at].ratio === null ? "–" : `${rows[at].ratio.toFixed(3)}×`);
  });

  // Cells are hosts' ratios, and those that carry the effect stand out.
  await view.selectOption("[aria-label=Number]", "mean_ns");
  const io = rows.find((row) => row.metric === "mean_ns" && row.reason === "io" && row.level === 2 && row.stratum === null);
  assert.deepEqual(io.carried_by, ODD);
  await view.locator("#hosts .behind > summary").click();
  // The table is made once it is opened.
  await view.locator("#hosts tbody tr").nth(23).waitFor();
  const titles = await view.$$eval("#hosts thead th", (all) => all.map((one) => one.textContent));
  const table = new Map((await cells(view, "#hosts")).map((line) => [line[0], line[titles.indexOf("io (level 2)")]]));
  assert.equal(table.size, 24);
  for (const { host, ratio } of io.hosts) assert.ok(Math.abs(Number(table.get(host)) - ratio) <= 0.0006, `${host} ${table.get(host)} ${ratio}`);

  // The host that one effect is on, alone.
  const apart = await cells(view, "#outliers");
  assert.ok(apart.length > 0 && apart.every((line) => line[0] === "simulated-006" || line[2] === "its value on B"), JSON.stringify(apart));
  assert.ok(apart.some((line) => line[0] === "simulated-006" && line[1].startsWith("msr") && line[2] === "its change from A to B"), JSON.stringify(apart));
  await view.locator("#outliers button", { hasText: "simulated-006" }).first().click();
  assert.match(await view.textContent("#host caption"), /^simulated-006, of cpu_model simulated-0/);
  assert.match(await view.textContent("#host .chosen"), /stands apart in its change/);

  await view.locator(".finding", { hasText: "Since 2026-11-06" }).first().click();
  assert.match(await view.textContent("#days figcaption"), /since 2026-11-06/);
  assert.equal(await view.locator("#days polyline").count(), 3);
  assert.deepEqual(faults, []);
}

async function keyboard(browser) {
  const { page: view, faults } = await openReport(browser, page(simulated()));
  await view.focus("#hosts canvas");
  await view.keyboard.press("ArrowRight");
  const spoken = () => view.textContent(".spoken");
  const first = await spoken();
  assert.match(first, /^simulated-000 · simulated-0, .*A .*, B .*B over A/);
  for (const key of ["ArrowDown", "ArrowRight", "PageDown", "PageUp"]) {
    const before = await spoken();
    await view.keyboard.press(key);
    assert.notEqual(await spoken(), before, `${key} does nothing`);
  }
  const host = (await spoken()).split(" · ")[0];
  await view.keyboard.press("Enter");
  assert.equal(await view.inputValue("[aria-label=Host]"), host);
  assert.equal(await view.evaluate(() => document.activeElement.id), "host");
  await view.evaluate(() => { document.activeElement.blur(); window.scrollTo(0, 0); });
  const seen = new Set();
  for (let step = 0; step < 150; step++) {
    await view.keyboard.press("Tab");
    seen.add(await view.evaluate(() => document.activeElement.closest("section, header, nav")?.id || document.activeElement.closest("header, nav")?.tagName));
  }
  for (const part of ["HEADER", "NAV", "findings", "hosts", "host", "days", "outliers", "rows"]) assert.ok(seen.has(part), `${part} is not reached by Tab: ${[...seen]}`);
  assert.deepEqual(faults, []);
}

/** No width makes the page scroll sideways; nothing is found by axe, in light and dark, with all that folds open. */
const looks = (width, scheme) => async (browser) => {
  const { page: view, faults } = await openReport(browser, page(simulated()), { viewport: { width, height: 1000 }, scheme });
  const wide = () => view.evaluate(() => document.documentElement.scrollWidth);
  assert.ok((await wide()) <= width, `the page is ${await wide()} wide`);
  await shot(view, `${width}-${scheme}`, { fullPage: true });
  await view.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
  await view.waitForTimeout(200);
  assert.ok((await wide()) <= width, `unfolded, the page is ${await wide()} wide`);
  assert.deepEqual(await faultsOf(view), []);
  assert.deepEqual(faults, []);
};

/** Reload, and a link that is sent, show the same. */
async function addressKeepsTheView(browser) {
  const path = page(simulated());
  const { page: view, faults } = await openReport(browser, path);
  const seen = () =>
    view.evaluate(() => ({
      choices: [...document.querySelectorAll("select")].map((one) => one.value),
      words: document.querySelector("#hosts input").value,
      note: document.querySelector("#hosts .note").textContent,
      host: document.querySelector("#host caption").textContent,
      theme: document.documentElement.dataset.theme,
    }));
  const plain = await seen();
  await view.selectOption("[aria-label=Number]", "p99_ns");
  await view.selectOption("[aria-label='Cells show']", "b");
  await view.selectOption("[aria-label='Order of hosts']", "change");
  await view.selectOption("[aria-label=Host]", "simulated-010");
  await view.fill("#hosts input", "simulated-1");
  await view.getByRole("button", { name: "Dark" }).click();
  await view.waitForFunction(() => location.hash.includes("theme=dark"));
  const changed = await seen();
  assert.notDeepEqual(changed, plain);
  const fragment = await view.evaluate(() => location.hash);
  const other = await openReport(browser, path, { fragment });
  assert.deepEqual(await other.page.evaluate(() => document.querySelector("#hosts .note").textContent), changed.note);
  await view.reload();
  await view.waitForSelector("html[data-ready=true]");
  assert.deepEqual(await seen(), changed);
  await view.goto(`${await view.evaluate(() => location.href.split("#")[0])}#key=%3Cimg&host=x&compare=9`);
  await view.waitForTimeout(100);
  assert.deepEqual(faults, []);
}

async function nothingChanged(browser) {
  const sides = ["--a", "date < '2026-11-02'", "--b", "date >= '2026-11-02'"];
  const { page: view, faults } = await openReport(browser, page(quiet(), sides));
  assert.match(await view.textContent("#findings"), /None of \d+ numbers differs/);
  assert.match(await view.textContent("#days"), /at least four days/);
  assert.equal(await view.textContent("#outliers p"), "None does.");
  await shot(view, "quiet", { fullPage: true });
  assert.deepEqual(faults, []);
}

/** Hosts on one side alone: cells show hosts over others of their kind. */
async function otherHosts(browser) {
  const sides = ["--a", "host_id < 'simulated-006'", "--b", "host_id >= 'simulated-006'"];
  const { page: view, faults } = await openReport(browser, page(quiet(), sides));
  assert.equal(await view.inputValue("[aria-label='Cells show']"), "b");
  assert.match(await view.textContent("#hosts .note"), /on B, over the geometric mean/);
  assert.deepEqual(faults, []);
}

/** The command of a session opens its report. */
async function commandsOpenReports(browser) {
  const sides = ["--a", "date < '2026-11-23'", "--b", "date >= '2026-11-23'"];
  const { page: view, faults } = await openReport(browser, page(lake("real", real(["web1", "web2", "web3"])), sides));
  await view.selectOption("[aria-label=Host]", "web2");
  const commands = await view.$$eval("#host .command code", (all) => all.map((one) => one.textContent));
  assert.deepEqual(commands, [
    "hyperscope report fixtures/arm64/B-vhost-on.dat --baseline fixtures/arm64/B-vhost-off.dat -o web2-compared.html",
    "hyperscope report fixtures/arm64/B-vhost-on.dat -o web2-2026-11-23.html",
    "hyperscope report fixtures/arm64/B-vhost-off.dat -o web2-2026-11-22.html",
  ]);
  const folder = mkdtempSync(join(tmpdir(), "hyperscope-fleet-"));
  try {
    symlinkSync(program(), join(folder, "hyperscope"));
    symlinkSync(join(repository, "fixtures"), join(folder, "fixtures"));
    const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` };
    for (const command of commands) execFileSync("sh", ["-c", command], { cwd: folder, env, stdio: "ignore" });
    const opened = await openReport(browser, join(folder, "web2-compared.html"));
    assert.match(await opened.page.textContent("#diff"), /DABT_LOW/);
    assert.deepEqual([...faults, ...opened.faults], []);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Names of hosts and paths are text, whatever they are; so are those that a page was made to have. */
async function untrusted(browser) {
  const evil = `</script><img src=x onerror=alert(1)><script>alert(2)</script>&amp;'"`;
  const sides = ["--a", "date < '2026-11-23'", "--b", "date >= '2026-11-23'"];
  const path = page(lake("evil", real([evil, "web2", "web3"])), sides);
  const safe = JSON.stringify(evil).slice(1, -1).replaceAll("<", "\\u003c").replaceAll(">", "\\u003e").replaceAll("&", "\\u0026");
  const changed = join(screens, "fleet-untrusted.html");
  const text = readFileSync(path, "utf8");
  writeFileSync(changed, text.replaceAll('"DABT_LOW"', `"${safe}"`).replaceAll("fixtures/arm64/B-vhost-on.dat", `${safe};id`));
  const { page: view, faults } = await openReport(browser, changed);
  view.on("dialog", () => faults.push("a script of the recording ran"));
  await view.selectOption("[aria-label=Host]", evil);
  await view.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
  assert.ok((await view.textContent("#host caption")).startsWith(evil));
  assert.ok((await view.textContent("#host tbody")).includes(evil));
  assert.equal(await view.locator("img").count(), 0);
  const command = await view.textContent("#host .command code");
  assert.match(command, /^hyperscope report '<\/script><img' src=x 'onerror=alert\(1\)>/);
  await view.waitForTimeout(200);
  assert.deepEqual(faults, []);
  assert.ok(existsSync(changed));
}

const widths = [800, 1366, 2560].flatMap((width) => ["light", "dark"].map((scheme) => [`a fleet's page, ${width} wide, ${scheme}`, looks(width, scheme)]));

export const fleets = [
  ["a fleet's page names effects, hosts and days", effectsAreShown],
  ["a fleet's page works by keyboard", keyboard],
  ...widths,
  ["the address of a fleet's page keeps what is looked at", addressKeepsTheView],
  ["a fleet in which nothing changed", nothingChanged],
  ["a fleet with other hosts on either side", otherHosts],
  ["commands in a fleet's page open reports", commandsOpenReports],
  ["names in a fleet's page are text, whatever they are", untrusted],
];
