// The drawer says of a selection what `hyperscope exits` and `cpu` print with --from and --to.

import assert from "node:assert/strict";
import { join } from "node:path";
import { openReport } from "./browser.mjs";
import { hyperscope, RECORDINGS, recordedAlone, report, screens } from "./tool.mjs";

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

const startOf = ({ vm, path }) => `${vm} ${path.split(": ")[0]}${path.endsWith(", one way") ? ", one way" : ""}`;

function countsByStart(all) {
  const counts = {};
  for (const one of all) counts[startOf(one)] = (counts[startOf(one)] ?? 0) + one.count;
  return counts;
}

/**
 * Requests of a selection are those of path --from --to, which sees nothing from before: at the edges it may lack a few, and put ways
 * together otherwise. Of all of the recording every number is the same.
 */
const sameAsPath = (name, files, shares) => async (browser) => {
  for (const share of shares) {
    const { page, faults, range } = await opened(browser, `${name}-requests`, files, share, { more: "&tab=requests" });
    const expected = JSON.parse(hyperscope("path", "--format", "json", "--top", "0", ...range, ...files)).paths.map((one) => ({ ...one, path: one.name }));
    const shown = await page.$$eval(".drawer table:first-of-type tbody tr[data-path]", (lines) => lines.map((row) => ({ ...Object.fromEntries([...row.children].map((cell) => [cell.dataset.key, Number(cell.dataset.value)])), vm: row.dataset.vm ?? null, path: row.dataset.path })));
    const [here, there] = [countsByStart(shown), countsByStart(expected)];
    const starts = new Set([...Object.keys(here), ...Object.keys(there)]);
    const differ = [...starts].reduce((sum, start) => sum + Math.abs((here[start] ?? 0) - (there[start] ?? 0)), 0);
    const all = expected.reduce((sum, { count }) => sum + count, 0);
    assert.ok(all > 100 && differ <= all * 0.02, `${name} ${range}: ${differ} of ${all} requests begin otherwise`);
    const left = expected.map(({ vm, path, count, total }) => [vm, path, count, total.p50_ns, total.p90_ns, total.p99_ns].join());
    let alike = 0;
    for (const { vm, path, count, p50, p90, p99 } of shown) {
      const at = left.indexOf([vm, path, count, p50, p90, p99].join());
      if (at < 0) continue;
      left.splice(at, 1);
      alike += count;
    }
    const isWhole = share[0] === 0 && share[1] === 1;
    assert.ok(isWhole ? alike === all && differ === 0 : alike > all * 0.25, `${name} ${range}: of ${all} requests ${alike} are in the same paths with the same numbers`);
    assert.match(await page.textContent(".drawer .note"), /^Exact: of each request/);
    assert.deepEqual(faults, []);
    await page.close();
  }
};

/** Slow requests lead to their time; what is selected stays. */
async function slowRequestsLead(browser) {
  const { page, faults } = await openReport(browser, report("host-guest", RECORDINGS["host-guest"]), { fragment: "#sel=1000000000-3000000000&tab=requests" });
  const selected = await page.textContent(".drawer-head");
  const link = page.locator(".drawer button[data-at]").first();
  const at = Number(await link.getAttribute("data-at"));
  await link.click();
  await page.waitForFunction(() => /[#&]t=/.test(location.hash));
  const shown = new URL(page.url()).hash.match(/(?:#|&)t=(\d+)-(\d+)/);
  assert.ok(shown && Number(shown[1]) <= at && at < Number(shown[2]), `${page.url()} ${at}`);
  assert.equal(await page.textContent(".drawer-head"), selected);
  await page.screenshot({ path: join(screens, "drawer-requests.png") });
  assert.deepEqual(faults, []);
}

/** Functions of whole slices are those of profile --from --to, but for an interval at the edges that it can't see whole. */
const sameAsProfile = (name, files, share) => async (browser) => {
  const { page, faults } = await opened(browser, `${name}-code`, files, share, { more: "&tab=code" });
  const note = await page.textContent(".drawer .note");
  const command = note.match(/The same: hyperscope (.*)$/)[1].split(" ");
  const own = new Map();
  for (const { stack, time_ns: ns } of JSON.parse(hyperscope(...command, "--format", "json")).rows) {
    const name = stack[0]?.symbol ?? stack[0]?.module ?? null;
    if (name !== null) own.set(name, (own.get(name) ?? 0) + ns);
  }
  const shown = await page.$$eval(".drawer tbody tr", (rows) => rows.map((row) => ({ name: row.dataset.function.replace(/^[a-z_]+:/, ""), own: Number(row.querySelector("[data-key=own]").dataset.value) })));
  const known = [...own.values()].reduce((sum, ns) => sum + ns, 0);
  const differs = shown.reduce((sum, one) => sum + Math.abs(one.own - (own.get(one.name) ?? 0)), 0);
  assert.ok(shown.length > 10 && known > 0 && differs < known * 0.05, `${shown.length} functions, ${differs} of ${known} ns differ`);
  await page.screenshot({ path: join(screens, `drawer-code-${name}.png`) });
  // A function leads to its callers and callees.
  await page.locator(".drawer tbody button").first().click();
  assert.ok(await page.isVisible("#code .sandwich"));
  assert.deepEqual(faults, []);
};

/** The same of a machine without vCPUs, which its own agent records: threads by their samples. */
async function sameOfThreads(browser) {
  const folder = recordedAlone("alone", 'i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; dd if=/dev/zero of=/dev/null bs=64k count=40000');
  if (!folder) return console.log("skipped: hyperscope-agent is not built, or can't record here");
  const { page, faults } = await opened(browser, "alone-code", [folder], [0.3, 0.7], { more: "&tab=code" });
  const note = await page.textContent(".drawer .note");
  const [, number, unit, command] = note.match(/: ([\d.]+) (m?s) of threads’ time, by samples; .* The same: hyperscope (.*)$/);
  const shown = Number(number) * (unit === "s" ? 1e9 : 1e6);
  const expected = JSON.parse(hyperscope(...command.split(" "), "--format", "json")).rows.reduce((sum, row) => sum + row.time_ns, 0);
  assert.ok(expected > 0 && Math.abs(shown / expected - 1) < 0.03, `${shown} of ${expected} ns`);
  assert.ok((await page.locator(".drawer tbody tr").count()) > 3);
  assert.deepEqual(faults, []);
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
  for (const title of ["States", "Requests", "Threads", "Code", "Span", "Exits"]) {
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
  ["drawer: host-guest: requests are those of path --from --to", sameAsPath("host-guest", RECORDINGS["host-guest"], [[0, 1], [0.2, 0.5], [0.6, 0.9]])],
  ["drawer: arm64: requests are those of path --from --to", sameAsPath("arm64", RECORDINGS.arm64, [[0, 1], [0.3, 0.8]])],
  ["drawer: slow requests lead to the timeline", slowRequestsLead],
  ["drawer: code is that of profile --from --to", sameAsProfile("host-guest", RECORDINGS["host-guest"], [0.3, 0.7])],
  ["drawer: code of threads is that of profile --from --to", sameOfThreads],
  ["drawer: what is rounded is said to be", roundedIsSaid],
  ["drawer: rows and findings open it, keys reach it", opensFromTables],
  ["drawer: of the lanes that are shown", ofLanesShown],
];
