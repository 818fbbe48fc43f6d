// The drawer says of a selection what `hyperscope exits` and `cpu` print with --from and --to.

import assert from "node:assert/strict";
import { join } from "node:path";
import { openReport } from "./browser.mjs";
import { hyperscope, RECORDINGS, report, screens } from "./tool.mjs";

const seconds = (ns) => `${ns / 1_000_000_000n}.${String(ns % 1_000_000_000n).padStart(9, "0")}`;

async function opened(browser, name, files, share, options = {}) {
  const path = report(`${name}-drawer`, files, "--full-paths", ...(options.args ?? []));
  const first = await openReport(browser, path, options);
  const { origin, length } = await first.page.evaluate(() => {
    const { origin, length_ns: length } = JSON.parse(document.getElementById("hyperscope-report").textContent);
    return { origin, length };
  });
  const [from, to] = share.map((one) => Math.round(one * length));
  await first.page.close();
  const { page, faults } = await openReport(browser, path, { ...options, fragment: `#sel=${from}-${to}${options.more ?? ""}` });
  const range = ["--from", seconds(BigInt(origin) + BigInt(from)), "--to", seconds(BigInt(origin) + BigInt(to + Number(to === length)))];
  return { page, faults, range };
}

const rowsOf = (page) => page.$$eval(".drawer tbody tr", (rows) => rows.map((row) => ({ code: row.dataset.code, ...Object.fromEntries([...row.children].map((cell) => [cell.dataset.key, cell.dataset.value ?? null])) })));

const NUMBERS = ["cost", "cost_p50", "cost_p99", "time", "p50", "p90", "p99", "max"];

/** Every number of every row, for several stretches. */
const sameAsExits = (name, files, shares, options) => async (browser) => {
  let compared = 0;
  for (const share of shares) {
    const { page, faults, range } = await opened(browser, name, files, share, options);
    const expected = JSON.parse(hyperscope("exits", "--format", "json", ...range, ...files)).rows;
    const shown = await rowsOf(page);
    const key = (row) => `${row.vm} ${row.level} ${row.reason} ${row.code}`;
    assert.deepEqual(shown.map(key).sort(), expected.map((row) => key({ ...row, code: String(row.code) })).sort(), `${name} ${range}`);
    for (const row of expected) {
      const line = shown.find((one) => key(one) === key({ ...row, code: String(row.code) }));
      assert.equal(line.count, String(row.count), `${name} ${range} ${row.reason}`);
      for (const number of NUMBERS) {
        const value = row[`${number}_ns`] ?? null;
        assert.equal(line[number], value === null ? null : String(value), `${name} ${range} ${row.reason} ${number}`);
      }
      compared++;
    }
    assert.match(await page.textContent(".drawer .note"), /^Exact/);
    assert.deepEqual(faults, []);
    await page.close();
  }
  assert.ok(compared >= shares.length, `${compared} rows`);
};

/** States of vCPUs and CPU time of threads; what went on at the selection's beginning only the page knows. */
async function sameAsCpu(browser) {
  const files = ["fixtures/x86-svm/host-guest.dat"];
  for (const share of [[0.21, 0.34], [0.5, 0.81]]) {
    const { page, faults, range } = await opened(browser, "states", files, share, { more: "&tab=states" });
    const cpu = JSON.parse(hyperscope("cpu", "--idle", "--format", "json", ...range, ...files));
    const [vcpu] = cpu.vcpus;
    const line = await page.$$eval(".drawer tbody tr", (rows) => {
      const row = rows.find((one) => one.firstElementChild.textContent.endsWith("vCPU 0"));
      return Object.fromEntries([...row.children].slice(2).filter((cell) => cell.dataset.value).map((cell) => [cell.dataset.key, Number(cell.dataset.value)]));
    });
    const whole = Object.values(line).reduce((sum, one) => sum + one, 0);
    const edges = whole - vcpu.time_ns;
    assert.ok(edges >= 0 && edges < whole * 0.2, `${edges} of ${whole}`);
    let beyond = 0;
    for (const [name, value] of Object.entries(vcpu.states)) beyond += Math.abs((line[name.replace(/_ns$/, "")] ?? 0) - (value ?? 0));
    assert.ok(beyond <= edges + 10, `states differ by ${beyond}, the edges last ${edges}`);
    await page.getByRole("tab", { name: "Threads" }).click();
    const shown = Object.fromEntries((await rowsOf(page)).filter((row) => row.thread).map((row) => [row.thread, Number(row.time)]));
    const length = 1e9 * (Number(range[3]) - Number(range[1]));
    for (const thread of cpu.threads.filter((one) => one.tid > 0).slice(0, 5)) {
      const ns = shown[`${thread.name}-${thread.tid}`] ?? 0;
      assert.ok(Math.abs(ns - thread.cpu_ns) < length * 0.01, `${thread.name}-${thread.tid}: ${ns}, ${thread.cpu_ns}`);
    }
    assert.deepEqual(faults, []);
    await page.close();
  }
}

/** Where the page lacks the detail, it says so. */
async function roundedIsSaid(browser) {
  const files = RECORDINGS.nested;
  const { page, faults } = await opened(browser, "rounded", files, [0.3, 0.30001], { args: ["--max-memory", "16M", "--spans", "2000"] });
  assert.match(await page.textContent(".drawer .note.rounded"), /^Rounded to [\d.]+ \w+ slices/);
  const rows = await rowsOf(page);
  assert.ok(rows.length > 0 && rows.every((row) => row.count === null), "rounded counts are given as exact ones");
  assert.match(await page.textContent(".drawer tbody td.number:nth-child(4)"), /^≈ /);
  await page.getByRole("tab", { name: "States" }).click();
  assert.match(await page.textContent(".drawer .note"), /rounded, by [\d.]+ \w+ a lane at most/);
  assert.deepEqual(faults, []);
}

async function opensFromTables(browser) {
  const { page, faults } = await openReport(browser, report("nested", RECORDINGS.nested), { viewport: { width: 1366, height: 768 } });
  const inSight = async () => {
    await page.waitForTimeout(150);
    const { y, height } = await page.locator(".drawer").boundingBox();
    assert.ok(y > 250 && y + height <= 768 && height > 200, `${y} ${height}`);
    const table = await page.locator(".drawer tbody tr").first().boundingBox();
    assert.ok(table.y + table.height <= 768, "no row of the drawer is in sight");
  };
  assert.ok(!(await page.isVisible(".drawer")));
  await page.locator("#exits tbody tr").nth(2).locator("td[data-key=count]").click();
  await inSight();
  const reasons = new Set((await rowsOf(page)).map((row) => row.reason));
  assert.equal(reasons.size, 1);
  await page.screenshot({ path: join(screens, "drawer-1366.png") });
  await page.getByRole("button", { name: "Clear the selection" }).click();
  assert.ok(!(await page.isVisible(".drawer")));
  await page.locator(".finding").first().focus();
  await page.keyboard.press("Enter");
  await inSight();
  // By keys alone: tabs by arrows, and away.
  await page.locator(".drawer [role=tab][aria-selected=true]").focus();
  for (const title of ["States", "Requests", "Threads", "Span", "Exits"]) {
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), title);
    assert.equal(await page.getAttribute(".drawer [role=tabpanel]", "aria-labelledby"), `drawer-${title.toLowerCase()}`);
  }
  await page.keyboard.press("Escape");
  assert.ok(!(await page.isVisible(".drawer")));
  assert.deepEqual(faults, []);
}

/** Lanes that are hidden are not asked about. */
async function ofLanesShown(browser) {
  const files = ["fixtures/x86-vmx/smp.dat"];
  const { page, faults, range } = await opened(browser, "smp", files, [0.1, 0.9], { more: "&lanes=vcpu" });
  const vms = async () => [...new Set((await rowsOf(page)).map((row) => row.vm))].sort();
  const all = await vms();
  assert.ok(all.length > 1);
  await page.fill("[aria-label='Show only lanes with these words']", `${all[0]} vcpu`);
  await page.waitForTimeout(150);
  assert.deepEqual(await vms(), [all[0]]);
  const own = JSON.parse(hyperscope("exits", "--format", "json", ...range, "--vm", all[0], ...files)).rows;
  const counts = (rows) => rows.map((row) => `${row.reason} ${row.count}`).sort();
  assert.deepEqual(counts(await rowsOf(page)), counts(own));
  assert.deepEqual(faults, []);
}

export const drawers = [
  ["drawer: host-guest: exits are those of --from --to", sameAsExits("host-guest", ["fixtures/x86-svm/host-guest.dat"], [[0, 1], [0.1, 0.35], [0.512, 0.513], [0.7, 1]])],
  ["drawer: smp: exits are those of --from --to", sameAsExits("smp", ["fixtures/x86-vmx/smp.dat"], [[0.2, 0.6], [0.33, 0.95]])],
  ["drawer: arm64: exits are those of --from --to", sameAsExits("arm64-D", ["fixtures/arm64/D.dat"], [[0.25, 0.5], [0.6, 0.61]])],
  ["drawer: states and threads are those of cpu", sameAsCpu],
  ["drawer: what is rounded is said to be", roundedIsSaid],
  ["drawer: rows and findings open it, keys reach it", opensFromTables],
  ["drawer: of the lanes that are shown", ofLanesShown],
];
