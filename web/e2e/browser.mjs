// Starts the Chromium of the machine, and opens reports from disk as anybody would.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

/** Where distributions put it. */
const PLACES = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** The browser's program, if there is one. */
export function browserProgram() {
  return PLACES.find((place) => place && existsSync(place));
}

// Chromium's own errands would look for hosts on the network.
const QUIET = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Runs `use` with a browser that has nothing stored. */
export async function withBrowser(use) {
  const folder = mkdtempSync(join(tmpdir(), "hyperscope-web-"));
  const root = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const browser = await chromium.launchPersistentContext(folder, {
    executablePath: browserProgram(),
    headless: true,
    args: [...QUIET, ...root],
    viewport: { width: 1440, height: 1000 },
  });
  try {
    return await use(browser);
  } finally {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Opens a page from disk, or one that is served at `address`, and notes what must not happen: errors, and requests of
 * any kind but those to its server. */
export async function openReport(browser, file, options = {}) {
  const page = await browser.newPage();
  const faults = [];
  const address = options.address ?? pathToFileURL(file).href;
  const isOwn = (url) => url === address || (options.address !== undefined && url.startsWith(address));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!isOwn(request.url().split("#")[0])) faults.push(`request: ${request.url()}`);
  });
  await page.setViewportSize(options.viewport ?? { width: 1440, height: 1000 });
  await page.emulateMedia({ colorScheme: options.scheme ?? "light", reducedMotion: options.motion ?? "reduce" });
  const begun = Date.now();
  await page.goto(`${address}${options.fragment ?? ""}`);
  await page.waitForSelector("html[data-ready=true]", { timeout: 60_000 });
  return { page, faults, loaded_ms: Date.now() - begun };
}
