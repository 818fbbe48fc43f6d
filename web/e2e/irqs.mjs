// Interrupts and the use of CPUs over time: what they show is what hyperscope irqs and cpu print.

import assert from "node:assert/strict";
import { openReport } from "./browser.mjs";
import { hyperscope, RECORDINGS, report } from "./tool.mjs";

const FILES = RECORDINGS.arm64;

async function handlersAreThose(browser) {
  const { handlers, machines } = JSON.parse(hyperscope("irqs", "--format", "json", ...FILES));
  assert.ok(handlers.length > 5);
  const { page, faults } = await openReport(browser, report("irqs", FILES));
  const shown = await page.$$eval("#irqs tbody tr", (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
  assert.equal(shown.length, handlers.length);
  const text = hyperscope("irqs", ...FILES);
  const times = (row) => [row[2], row[3].split(" (")[0], row[6], row[7], row[8]];
  for (const [at, row] of shown.entries()) {
    const of = handlers[at];
    assert.equal(row[0], `${of.kind} ${of.name}`);
    assert.equal(row[1], of.count.toLocaleString("en-US"));
    const line = text.split("\n").find((one) => one.includes(` ${of.kind} `) && one.includes(` ${of.name} `));
    for (const one of times(row)) assert.ok(line.includes(one), `${one} is not in ${line}`);
  }
  const bars = await page.$$eval("#irqs .sparkline", (all) => all.map((one) => one.querySelectorAll("rect").length));
  assert.ok(bars.length === handlers.length && bars.every((one) => one > 0));
  assert.ok(machines.some((one) => one.recorded));
  assert.deepEqual(faults, []);
}

async function useIsThatOfCpu(browser) {
  const cpu = JSON.parse(hyperscope("cpu", "--format", "json", ...FILES));
  const { page, faults } = await openReport(browser, report("irqs", FILES));
  const pictures = page.locator("#cpu .stacked");
  assert.ok((await pictures.count()) >= 2);
  // Of all vCPUs together, the time in each state: what the picture says, within a tenth of a percent.
  const said = await page.$$eval("#cpu .stacked", (all) => all.map((one) => one.getAttribute("aria-label")));
  const vcpus = said.find((one) => one.startsWith("vCPUs of"));
  const exits = cpu.vcpus.reduce((sum, one) => sum + (one.states.exit_kernel_ns ?? 0), 0);
  const length = await page.evaluate(() => JSON.parse(document.getElementById("hyperscope-report").textContent).length_ns);
  const share = Number(/exit kernel ([\d.]+)%/.exec(vcpus)[1]);
  assert.ok(Math.abs(share - (100 * exits) / (length * cpu.vcpus.length)) < 0.1, `${share} ${vcpus}`);
  // A column that is clicked is selected in the timeline.
  const box = await pictures.first().boundingBox();
  await pictures.first().click({ position: { x: box.width / 2 + 1, y: box.height / 2 } });
  await page.waitForFunction(() => /sel=/.test(location.hash), null, { timeout: 5000 });
  const address = decodeURIComponent(new URL(page.url()).hash);
  const [from, to] = /sel=(\d+)\D(\d+)/.exec(address).slice(1).map(Number);
  assert.ok(Math.abs(to - from - length / 120) < 2 && Math.abs(from - length / 2) < length / 60, address);
  await page.locator("#cpu .behind").last().locator("summary").click();
  assert.equal(await page.locator("#cpu .behind").last().locator("tbody tr").count(), 13);
  assert.deepEqual(faults, []);
}

export const interrupts = [
  ["interrupts: handlers are those of hyperscope irqs", handlersAreThose],
  ["interrupts: use over time is that of hyperscope cpu, and selects in the timeline", useIsThatOfCpu],
];
