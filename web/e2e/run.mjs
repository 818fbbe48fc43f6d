// Opens reports of real recordings in a real browser, and holds what they show against what
// `hyperscope exits --format json` prints. Screenshots go to target/report-screens.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { advices } from "./advice.mjs";
import { arrowChecks } from "./arrows.mjs";
import { accessibility } from "./axe.mjs";
import { boots } from "./boot.mjs";
import { browserProgram, withBrowser } from "./browser.mjs";
import { checks } from "./checks.mjs";
import { codes } from "./code.mjs";
import { criticals } from "./critical.mjs";
import { drawers } from "./drawer.mjs";
import { eventLists } from "./events.mjs";
import { firefoxes } from "./firefox.mjs";
import { fleets } from "./fleet.mjs";
import { frames } from "./frames.mjs";
import { interrupts } from "./irqs.mjs";
import { lanes } from "./lanes.mjs";
import { serveds } from "./served.mjs";
import { spans } from "./spans.mjs";
import { stories } from "./stories.mjs";
import { repository, screens } from "./tool.mjs";
import { views } from "./view.mjs";
import { zooms } from "./zoom.mjs";

if (!browserProgram()) {
  console.log("no Chromium here: the pages are not opened (apt-get install chromium)");
  process.exit(0);
}
mkdirSync(screens, { recursive: true });

let failed = 0;
let passed = 0;
const all = [...checks, ...advices, ...views, ...lanes, ...drawers, ...spans, ...eventLists, ...serveds, ...stories, ...boots, ...codes, ...interrupts, ...arrowChecks, ...criticals, ...accessibility, ...zooms, ...fleets, ...firefoxes, ...frames];
const wanted = process.argv[2];
await withBrowser(async (browser) => {
  for (const [name, check] of all) {
    if (wanted && !name.includes(wanted)) continue;
    try {
      await check(browser);
      passed++;
      console.log(`ok      ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAILED  ${name}\n${error.stack ?? error}`);
    }
    for (const page of browser.pages().slice(1)) await page.close();
  }
});
console.log(`screenshots: ${join(screens).replace(`${repository}/`, "")}`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
