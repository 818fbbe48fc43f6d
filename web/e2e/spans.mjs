// A span says all that is known of it, search counts its matches, and timestamps are gone to.

import assert from "node:assert/strict";
import { join } from "node:path";
import { openReport } from "./browser.mjs";
import { hyperscope, RECORDINGS, report, screens } from "./tool.mjs";

const FILE = "fixtures/x86-svm/host-guest.dat";

const card = (page) => page.$$eval(".drawer tbody tr", (rows) => Object.fromEntries(rows.map((row) => [row.children[0].textContent, row.children[1].textContent])));

/** What an exit was about, where its guest was and how long it took are those of `exits` and `events`. */
async function spansSayWhatIsKnown(browser) {
  const { page, faults } = await openReport(browser, report("spans", [FILE]), { fragment: "#clock=absolute", viewport: { width: 1366, height: 768 } });
  await page.fill("#timeline input[type=search]", "msr");
  await page.keyboard.press("Enter");
  await page.focus("#timeline .area");
  for (let round = 0; round < 3; round++) {
    await page.keyboard.press("n");
    await page.keyboard.press("i");
    const said = await card(page);
    assert.equal(said.reason, "msr");
    const [from, to] = [said["exit event"], said.entry].map((words) => words.replace(" s", ""));
    const beyond = `${to.slice(0, -9)}${String(Number(to.slice(-9)) + 1).padStart(9, "0")}`;
    const range = ["--from", from, "--to", beyond, FILE];
    const rows = JSON.parse(hyperscope("exits", "--format", "json", "--by", "vm,reason,msr", ...range)).rows;
    assert.equal(rows.length, 1, JSON.stringify(rows));
    assert.equal(rows[0].time_ns, Math.round((Number(to.slice(-9)) - Number(from.slice(-9)) + 1e9) % 1e9));
    assert.ok(said.about.startsWith(`MSR 0x${rows[0].msr.toString(16)}`), `${said.about} ${rows[0].msr}`);
    const event = hyperscope("events", "--format", "text", "-e", "kvm_exit", ...range).split("\n").find((line) => line.includes("kvm_exit"));
    const [, pc] = /rip (0x[0-9a-f]+)/.exec(event) ?? [];
    assert.ok(pc && BigInt(said["the guest was at"].split(" ")[0]) === BigInt(pc), `${said["the guest was at"]} ${event}`);
    assert.match(said["exit to entry"], /us|ms/);
  }
  await page.screenshot({ path: join(screens, "span.png") });
  // The pointer does the same, and a button goes on from there.
  await page.keyboard.press("Escape");
  await page.locator("#timeline .area").scrollIntoViewIfNeeded();
  const box = await page.locator("#timeline .area").boundingBox();
  await page.mouse.click(box.x + box.width / 2, box.y + 60);
  const first = await card(page);
  assert.match(first.lane, /vCPU 0$/);
  await page.getByRole("button", { name: "Span after ›" }).click();
  assert.notEqual((await card(page)).from, first.from);
  assert.deepEqual(faults, []);
}

async function matchesAreCounted(browser) {
  const { page, faults } = await openReport(browser, report("host-guest", RECORDINGS["host-guest"]));
  await page.fill("#timeline input[type=search]", "npf");
  const found = () => page.textContent("#timeline .found >> nth=0");
  const all = (await found()).match(/^([\d,]+) spans$/)[1];
  await page.keyboard.press("Enter");
  assert.equal(await found(), `1 of ${all}`);
  await page.keyboard.press("Enter");
  await page.focus("#timeline .area");
  await page.keyboard.press("n");
  assert.equal(await found(), `3 of ${all}`);
  await page.keyboard.press("p");
  assert.equal(await found(), `2 of ${all}`);
  assert.deepEqual(faults, []);
}

async function timesAreGoneTo(browser) {
  const path = report("host-guest", RECORDINGS["host-guest"]);
  const middle = async (page) => {
    const label = await page.getAttribute("canvas.axis", "aria-label");
    const [from, to] = [...label.matchAll(/(\d+\.\d+) s/g)].map(([, seconds]) => Number(seconds));
    return (from + to) / 2;
  };
  const { page, faults } = await openReport(browser, path);
  await page.fill("#timeline input[type=search]", "2512.5 ms");
  assert.equal(await page.textContent("#timeline .found >> nth=0"), "Enter: go to +2.512500000 s");
  await page.keyboard.press("Enter");
  await page.waitForTimeout(100);
  assert.ok(Math.abs((await middle(page)) - 2.5125) < 1e-6);
  await page.getByRole("button", { name: "Recording’s clock" }).click();
  const wanted = (await middle(page)) + 1.25;
  await page.fill("#timeline input[type=search]", wanted.toFixed(6));
  await page.keyboard.press("Enter");
  await page.waitForTimeout(100);
  assert.ok(Math.abs((await middle(page)) - wanted) < 1e-5, `${await middle(page)} ${wanted}`);
  assert.deepEqual(faults, []);
}

export const spans = [
  ["spans: one says all that is known of it", spansSayWhatIsKnown],
  ["spans: matches are counted", matchesAreCounted],
  ["spans: timestamps are gone to", timesAreGoneTo],
];
