// The page in the Firefox of the machine, by WebDriver BiDi, which it speaks by itself.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { WebSocket } from "ws";
import { exitsOf, RECORDINGS, report, screens } from "./tool.mjs";

/** Where distributions put it. */
const PLACES = [process.env.FIREFOX, "/usr/bin/firefox", "/usr/bin/firefox-esr"];
const program = PLACES.find((place) => place && existsSync(place));

/** Runs `use` with a Firefox that has nothing stored, and a way to give it commands. */
async function withFirefox(use) {
  const folder = mkdtempSync(join(tmpdir(), "hyperscope-firefox-"));
  const firefox = spawn(program, ["--headless", "--no-remote", "--profile", folder, "--remote-debugging-port=0"], { stdio: ["ignore", "ignore", "pipe"] });
  try {
    const address = await new Promise((resolve, reject) => {
      let said = "";
      firefox.stderr.on("data", (data) => {
        said += data;
        const found = said.match(/WebDriver BiDi listening on (ws:\S+)/);
        if (found) resolve(found[1]);
      });
      firefox.once("exit", (code) => reject(new Error(`Firefox ended with ${code}: ${said}`)));
    });
    const socket = new WebSocket(`${address}/session`);
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    await use(commands(socket));
    socket.close();
  } finally {
    firefox.removeAllListeners("exit");
    const ended = new Promise((resolve) => firefox.once("exit", resolve));
    firefox.kill();
    await ended;
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Sends commands, whose results come back; what the page logs is kept. */
function commands(socket) {
  const waiting = new Map();
  const faults = [];
  let number = 0;
  socket.on("message", (text) => {
    const message = JSON.parse(text);
    if (message.type === "event") {
      if (["error", "warn"].includes(message.params.level)) faults.push(message.params.text);
      return;
    }
    const { resolve, reject } = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.type === "error") reject(new Error(`${message.error}: ${message.message}`));
    else resolve(message.result);
  });
  const send = (method, params) =>
    new Promise((resolve, reject) => {
      waiting.set(++number, { resolve, reject });
      socket.send(JSON.stringify({ id: number, method, params }));
    });
  return { send, faults };
}

/** Its tables have the command's numbers, its timeline is drawn, and a row opens the drawer. */
const sameNumbers = (name) => async () => {
  const files = RECORDINGS[name];
  const path = report(`${name}-paths`, files, "--full-paths");
  const expected = exitsOf(files).rows.map((row) => [row.reason, String(row.count), String(row.time_ns)]);
  await withFirefox(async ({ send, faults }) => {
    await send("session.new", { capabilities: {} });
    await send("session.subscribe", { events: ["log.entryAdded"] });
    const { contexts } = await send("browsingContext.getTree", {});
    const [{ context }] = contexts;
    const inPage = async (expression) => {
      const { result, exceptionDetails } = await send("script.evaluate", { expression: `(async () => JSON.stringify(await (${expression})()))()`, target: { context }, awaitPromise: true });
      assert.equal(exceptionDetails, undefined, exceptionDetails?.text);
      return JSON.parse(result.value);
    };
    const shot = async (part) => {
      const { data } = await send("browsingContext.captureScreenshot", { context });
      writeFileSync(join(screens, `${name}-firefox${part}.png`), Buffer.from(data, "base64"));
    };
    await send("browsingContext.setViewport", { context, viewport: { width: 1366, height: 768 } });
    await send("browsingContext.navigate", { context, url: pathToFileURL(path).href, wait: "complete" });
    await inPage(`async () => {
      for (let turn = 0; turn < 600 && document.documentElement.dataset.ready !== "true"; turn++) await new Promise((resolve) => setTimeout(resolve, 100));
      return true;
    }`);
    await shot("");
    const shown = await inPage(`() => [...document.querySelectorAll("#exits table.exits tbody tr")].map((row) =>
      ["reason", "count", "time"].map((key) => row.querySelector("[data-key=" + key + "]").dataset.value))`);
    assert.deepEqual(shown, expected);
    const colours = await inPage(`() => {
      const canvas = document.querySelector("#timeline canvas");
      canvas.scrollIntoView();
      return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        resolve(new Set(new Uint32Array(data.buffer)).size);
      })));
    }`);
    // Ground, grid, and the states of the first lane at least.
    assert.ok(colours >= 4, `the timeline has ${colours} colours`);
    const rows = await inPage(`async () => {
      document.querySelectorAll("#exits tbody tr")[1].querySelector("td[data-key=count]").click();
      await new Promise((resolve) => setTimeout(resolve, 300));
      const drawer = document.querySelector(".drawer").getBoundingClientRect();
      return drawer.bottom <= innerHeight + 1 && drawer.height > 100 ? document.querySelectorAll(".drawer tbody tr").length : -1;
    }`);
    assert.ok(rows > 0, `the drawer: ${rows}`);
    await shot("-drawer");
    assert.deepEqual(faults, []);
  });
};

/** None where there is no Firefox: Chromium has shown all of it. */
export const firefoxes = program ? [["nested in Firefox", sameNumbers("nested")], ["host and guest in Firefox", sameNumbers("host-guest")]] : [];
