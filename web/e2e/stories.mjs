// The stories of docs/guide/page.md: from opening a page to the cause, click by click, each in under ten.

import assert from "node:assert/strict";
import { join } from "node:path";
import { openReport } from "./browser.mjs";
import { hyperscope, report, screens } from "./tool.mjs";

const MOST_CLICKS = 9;

/** Opens a page, and counts what a reader clicks and presses in it. */
async function begun(browser, path) {
  const { page, faults } = await openReport(browser, path, { viewport: { width: 1366, height: 900 } });
  let clicks = 0;
  const click = async (locator) => {
    await locator.click();
    clicks++;
    await page.waitForTimeout(300);
  };
  const end = () => {
    assert.ok(clicks > 0 && clicks <= MOST_CLICKS, `${clicks} clicks`);
    assert.deepEqual(faults, []);
  };
  const shot = (name) => page.screenshot({ path: join(screens, `story-${name}.png`) });
  return { page, click, end, shot };
}

const steps = (page) => page.$$eval(".drawer tbody tr", (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));

/** A request that the VMM carries, and the same with vhost. */
async function slowRequest(browser) {
  const [off, on] = ["fixtures/arm64/B-vhost-off.dat", "fixtures/arm64/B-vhost-on.dat"];
  const slow = await begun(browser, report("story-off", [off]));
  await slow.click(slow.page.locator(".finding", { hasText: "Of all requests" }));
  await slow.click(slow.page.locator("#path .path").first().getByRole("button", { name: /^the slowest/ }));
  // The VMM's thread is in the way of the request: it has most steps and most of the time.
  const ofVmm = (await steps(slow.page)).filter((step) => step[4] === "iothread");
  assert.ok(ofVmm.length >= 1, JSON.stringify(await steps(slow.page)));
  await slow.shot("request-off");
  slow.end();
  const fast = await begun(browser, report("story-on", [on], "--baseline", off));
  await fast.click(fast.page.locator("#path .path").first().getByRole("button", { name: /^the slowest/ }));
  const places = (await steps(fast.page)).map((step) => step[4]);
  assert.ok(places.includes("vhost") && !places.includes("iothread"), places.join());
  await fast.shot("request-on");
  await fast.click(fast.page.getByRole("link", { name: "Compared with another run" }));
  assert.match(await fast.page.textContent("#diff"), /DABT_LOW/);
  await fast.shot("request-compared");
  fast.end();
}

/** A vCPU that waits while the vCPU of another VM has its CPU. */
async function preemptedVcpu(browser) {
  const file = "fixtures/x86-vmx/smp.dat";
  const { page, click, end, shot } = await begun(browser, report("story-smp", [file], "--full-paths"));
  const { taken } = JSON.parse(hyperscope("cpu", "--by", "taken", "--format", "json", file));
  const of119 = taken.filter((row) => row.vm === "vm-119").sort((a, b) => b.cpu_ns - a.cpu_ns)[0] ?? taken[0];
  const finding = page.locator(".findings > li", { hasText: "Exits of vm-119 waited" });
  await click(finding.locator("summary"));
  assert.match(await finding.textContent(), /vmm-123/);
  assert.ok(of119);
  await shot("preempted-why");
  await click(finding.locator(".finding"));
  await click(page.getByRole("tab", { name: "States" }));
  const line = (await steps(page)).find((row) => row[0] === "vm-119 vCPU 0");
  assert.ok(line, "vm-119 has no line");
  await click(page.getByRole("button", { name: "preempted: let it stand out" }));
  await click(page.getByRole("tab", { name: "Threads" }));
  const threads = (await steps(page)).map((row) => row[1]);
  assert.ok(threads.slice(0, 4).includes("vmm-123"), threads.join());
  await shot("preempted");
  end();
}

/** An exit of a nested guest that costs its host some ten. */
async function nestedExit(browser) {
  const file = "fixtures/x86-svm/nested.dat";
  const { rows } = JSON.parse(hyperscope("nested", "--format", "json", file));
  const io = rows.find((row) => row.reason === "io");
  assert.ok(io.factor > 9);
  const { page, click, end, shot } = await begun(browser, report("story-nested", [file]));
  const finding = page.locator(".findings > li", { hasText: "An exit for io of the guest inside" });
  await click(finding.locator("summary"));
  assert.match(await finding.textContent(), /What usually helps/);
  await click(finding.locator(".finding"));
  const tree = page.locator("#nested .tree", { hasText: "io" }).first();
  const shown = await tree.locator("tbody tr").evaluateAll((all) => all.map((row) => row.cells[0].textContent));
  for (const one of io.ancillary.slice(0, 5)) assert.ok(shown.includes(one.reason), one.reason);
  await shot("nested-tree");
  await click(page.getByRole("link", { name: "Timeline" }));
  await page.fill("[aria-label='Find in the timeline, or go to a time']", "vmrun");
  await click(page.getByRole("button", { name: "Next match" }));
  assert.match(await page.textContent("#timeline .controls .found"), /^1 of [\d,]+$/);
  await click(page.getByRole("button", { name: "Events", exact: true }));
  await page.waitForSelector(".event-lines [role=option]");
  const reasons = (await page.$$eval(".event-lines [role=option]", (all) => all.map((one) => one.textContent))).join(" ");
  for (const reason of ["vmrun", "stgi", "clgi", "vmload", "vmsave"]) assert.match(reasons, new RegExp(`reason ${reason}`));
  await shot("nested");
  end();
}

export const stories = [
  ["story: a slow request, without and with vhost", slowRequest],
  ["story: a vCPU that is preempted", preemptedVcpu],
  ["story: a nested guest's exit that costs ten", nestedExit],
];
