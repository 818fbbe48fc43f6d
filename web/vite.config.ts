import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { viteSingleFile } from "vite-plugin-singlefile";
import { hashOfSources } from "./sources.ts";

const root = import.meta.dirname;

/** Puts the hash of the sources into the page, and gives the page its name. */
function stamped(): Plugin {
  return {
    name: "stamped",
    transformIndexHtml: { order: "pre", handler: (html) => html.replace("%SOURCES%", hashOfSources(root)) },
    closeBundle() {
      mkdirSync(join(root, "dist"), { recursive: true });
      renameSync(join(root, "dist/index.html"), join(root, "dist/report.html"));
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [stamped(), viteSingleFile({ removeViteModuleLoader: true })],
  build: { target: "es2022", modulePreload: false, reportCompressedSize: false },
  test: { include: ["test/**/*.test.ts"] },
});
