// The hash of everything the pages are built from: it is stored in each, so that a page that was
// not built again can be found (cargo xtask page does).

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";

/** Files and folders that the pages are built from, relative to `web/`. */
export const INPUTS = ["fleet.html", "index.html", "package-lock.json", "package.json", "sources.ts", "src", "tsconfig.json", "vite.config.ts"];

function filesOf(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path).flatMap((name) => filesOf(join(path, name)));
}

/** sha256 over each file's path, a zero byte, its length in decimal, a zero byte and its content. */
export function hashOfSources(root: string): string {
  const files = INPUTS.flatMap((input) => filesOf(join(root, input)))
    .map((file) => relative(root, file).replaceAll("\\", "/"))
    .sort((a, b) => (a < b ? -1 : 1));
  const hash = createHash("sha256");
  for (const file of files) {
    const content = readFileSync(join(root, file));
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}
