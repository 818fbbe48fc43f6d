// The page at 200% zoom on a small screen: half the room, at twice the points.

import assert from "node:assert/strict";
import { join } from "node:path";
import { openReport } from "./browser.mjs";
import { RECORDINGS, report, screens } from "./tool.mjs";

/** 1366×768 at 200%. */
const ROOM = { width: 683, height: 384 };

const fits = (name, scheme) => async (browser) => {
  const { page, faults } = await openReport(browser, report(name, RECORDINGS[name]), { viewport: ROOM, scheme });
  const session = await page.context().newCDPSession(page);
  await session.send("Emulation.setDeviceMetricsOverride", { ...ROOM, deviceScaleFactor: 2, mobile: false });
  await page.waitForTimeout(250);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= ROOM.width, `the page is ${wide} wide`);
  await page.screenshot({ path: join(screens, `${name}-zoom-${scheme}.png`) });
  // What a row opens is in sight, with a row of its own.
  await page.locator("#exits tbody tr").nth(1).locator("td[data-key=count]").click();
  await page.waitForTimeout(250);
  const { y, height } = await page.locator(".drawer").boundingBox();
  assert.ok(y > 0 && y + height <= ROOM.height + 1, `the drawer is at ${y}, ${height} high`);
  const row = await page.locator(".drawer tbody tr").first().boundingBox();
  assert.ok(row.y >= y && row.y + row.height <= ROOM.height, "no row of the drawer is in sight");
  const at = [row.x + 20, row.y + row.height / 2];
  assert.ok(await page.evaluate(([x, y]) => document.elementFromPoint(x, y)?.closest(".drawer tbody tr") !== null, at), "something covers the row");
  await page.screenshot({ path: join(screens, `${name}-zoom-drawer-${scheme}.png`) });
  await page.keyboard.press("Escape");
  assert.ok(!(await page.isVisible(".drawer")));
  await page.locator("#timeline .area").scrollIntoViewIfNeeded();
  const area = await page.locator("#timeline .area").boundingBox();
  assert.ok(area.width > 400, `the timeline is ${area.width} wide`);
  await page.screenshot({ path: join(screens, `${name}-zoom-timeline-${scheme}.png`) });
  assert.deepEqual(faults, []);
};

export const zooms = [
  ["nested at 200% zoom", fits("nested", "light")],
  ["host and guest at 200% zoom, dark", fits("host-guest", "dark")],
];
