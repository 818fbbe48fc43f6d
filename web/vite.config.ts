import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { viteSingleFile } from "vite-plugin-singlefile";
import { hashOfSources } from "./sources.ts";

const root = import.meta.dirname;

/** Puts the hash of the sources into a page, and gives that of a recording its name. */
function stamped(page: string): Plugin {
  return {
    name: "stamped",
    transformIndexHtml: { order: "pre", handler: (html) => html.replace("%SOURCES%", hashOfSources(root)) },
    closeBundle() {
      mkdirSync(join(root, "dist"), { recursive: true });
      if (page === "index") renameSync(join(root, "dist/index.html"), join(root, "dist/report.html"));
    },
  };
}

// A page is one file, so that each is built by itself: that of a fleet as `--mode fleet`, after that of a recording.
export default defineConfig(({ mode }) => {
  const page = mode === "fleet" ? "fleet" : "index";
  return {
    base: "./",
    plugins: [stamped(page), viteSingleFile({ removeViteModuleLoader: true })],
    build: {
      target: "es2022",
      modulePreload: false,
      reportCompressedSize: false,
      emptyOutDir: page === "index",
      rollupOptions: { input: join(root, `${page}.html`) },
    },
    test: { include: ["test/**/*.test.ts"] },
  };
});
