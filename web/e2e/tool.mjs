// The command under test, and the reports that it makes.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const repository = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const target = process.env.CARGO_TARGET_DIR ?? join(repository, "target");
export const screens = join(target, "report-screens");
const reports = join(target, "reports");

export function program() {
  const built = ["release", "debug"].map((profile) => join(target, profile, "hyperscope"));
  const found = [process.env.HYPERSCOPE, ...built].find((path) => path && existsSync(path));
  if (!found) throw new Error("hyperscope is not built: cargo build --release");
  return resolve(found);
}

export function hyperscope(...args) {
  return execFileSync(program(), args, { cwd: repository, encoding: "utf8", maxBuffer: 1 << 30, stdio: ["ignore", "pipe", "ignore"] });
}

/** Writes a report and returns its path. */
export function report(name, files, ...options) {
  mkdirSync(reports, { recursive: true });
  const path = join(reports, `${name}.html`);
  hyperscope("report", ...files, "-o", path, ...options);
  return path;
}

/** A folder in which hyperscope-agent records this machine, with samples, while a script runs; null: it can't here. */
export function recordedAlone(name, script) {
  const agent = join(dirname(program()), "hyperscope-agent");
  if (!existsSync(agent)) return null;
  const folder = join(reports, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(reports, { recursive: true });
  try {
    execFileSync("sh", ["-c", `"$0" --to "$1" --sample 499 -e sched --for 3 & sleep 1; ${script}; wait $!`, agent, folder], { stdio: "ignore" });
    return folder;
  } catch {
    return null;
  }
}

/** Serves a report until it is ended. */
export async function serve(files, ...options) {
  const child = spawn(program(), ["report", "--serve", ...files, ...options], { cwd: repository, stdio: ["ignore", "pipe", "ignore"] });
  const address = await new Promise((resolve, reject) => {
    child.stdout.once("data", (data) => resolve(String(data).trim()));
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
  return { address, end: () => child.kill() };
}

export function exitsOf(files) {
  return JSON.parse(hyperscope("exits", "--format", "json", ...files));
}

/** A recording of about that size, made of a fixture by repeating it; kept from run to run. */
export function amplified(fixture, size) {
  const path = join(target, `amplified-${basename(fixture, ".dat")}-${size}.dat`);
  if (!existsSync(path)) {
    execFileSync("cargo", ["run", "--locked", "--quiet", "--release", "--package", "xtask", "--", "amplify", fixture, path, "--size", size], { cwd: repository, stdio: "inherit" });
  }
  return path;
}

export const RECORDINGS = {
  nested: ["fixtures/x86-svm/nested.dat"],
  "host-guest": ["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"],
  calls: ["fixtures/x86-svm/calls.dat"],
  arm64: ["fixtures/arm64/A.dat", "fixtures/arm64/A.guest.dat"],
};
