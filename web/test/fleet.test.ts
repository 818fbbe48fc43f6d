import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { compareCommand, quoted, reportCommand, sourceOf } from "../src/fleet/commands";
import type { Fleet } from "../src/fleet/data";
import { colourOf, columnsOf, endOf, hostsInOrder, inkOn, luminance, type Rgb } from "../src/fleet/numbers";
import { fromFragment, toFragment, type FleetView } from "../src/fleet/state";

const HOSTILE = ["a'b", "$(touch x)", "`id`", "a;b", "-o", "--help", "*", "a\\", '"', "é", "a&&b", "~", "#", "!x"];

/** A shell has the last word on what a quoted word is. */
test("a shell reads quoted words as they are", () => {
  for (const word of HOSTILE) {
    const out = execFileSync("sh", ["-c", `printf %s ${quoted(word)}`], { encoding: "utf8" });
    expect(word.startsWith("-") ? `'${word}'` : out).toBe(word.startsWith("-") ? quoted(word) : word);
  }
});

test("paths are arguments, never options or code", () => {
  for (const word of HOSTILE) {
    const command = reportCommand({ paths: [word], isSimulated: false }, word, "2026-11-01");
    const shell = `hyperscope() { for one in "$@"; do printf '%s\\n' "$one"; done; }; ${command}`;
    const [verb, path, option, page, ...more] = execFileSync("sh", ["-c", shell], { encoding: "utf8" }).trimEnd().split("\n");
    expect([verb, path, option, more]).toEqual(["report", word.startsWith("-") ? `./${word}` : word, "-o", []]);
    expect(page).toMatch(/^[\w.][\w.-]*\.html$/);
  }
});

test("sources are known, simulated or neither", () => {
  expect(sourceOf("simulated: fixtures/x86-svm/nested.dat")).toEqual({ paths: ["fixtures/x86-svm/nested.dat"], isSimulated: true });
  expect(sourceOf("host.dat guest.dat")).toEqual({ paths: ["host.dat", "guest.dat"], isSimulated: false });
  for (const uri of [null, "", " ", "a\nrm", "a\u202eb", `p-${"0".repeat(32)}`]) expect(sourceOf(uri)).toBeNull();
  const [one, two] = [{ paths: ["a.dat"], isSimulated: false }, { paths: ["b.dat", "c.dat"], isSimulated: false }];
  expect(compareCommand(one, two, "h")).toBe("hyperscope report b.dat c.dat --baseline a.dat -o h-compared.html");
  expect(compareCommand(two, one, "h")).toBeNull();
});

test("any colour of a cell can be written on", () => {
  const palettes: [Rgb, Rgb, Rgb][] = [
    [[0x2f, 0x6f, 0xbf], [0xf1, 0xf2, 0xf4], [0xd9, 0x60, 0x0a]],
    [[0x5a, 0xa2, 0xf2], [0x26, 0x2b, 0x33], [0xf0, 0x8a, 0x3c]],
  ];
  for (const palette of palettes) {
    for (let at = -20; at <= 20; at++) {
      const colour = colourOf(2 ** (at / 10), 2, palette);
      const [light, dark] = [luminance(colour), inkOn(colour) === "#fff" ? 1 : 0].sort((one, other) => other - one) as [number, number];
      expect((light + 0.05) / (dark + 0.05)).toBeGreaterThanOrEqual(4.5);
    }
    expect(colourOf(9, 2, palette)).toEqual(palette[2]);
    expect(colourOf(1, 2, palette)).toEqual(palette[1]);
  }
});

const key = (reason: string | null) => ({ level: reason === null ? null : 1, isa: null, reason, waiting: false });

/** Four hosts of two kinds; of the first kind one has twice as much on B. */
const FLEET = {
  hosts: ["a", "b", "c", "d"].map((host, at) => ({ host, stratum: at < 2 ? "old" : "new", control: false, a: [], b: [], sessions: [0, 0] })),
  diff: { rows: [{ ...key("io"), metric: "mean_ns", finding: true }] },
  grid: [
    { key: key("msr"), metric: "mean_ns", a: [9, 9, 9, 9], b: [9, 9, 9, 9] },
    { key: key("io"), metric: "mean_ns", a: [1, 1, 4, null], b: [1, 2, 4, 8] },
    { key: key(null), metric: "mean_ns", a: [5, 5, 5, 5], b: [5, 5, 5, 5] },
    { key: key("io"), metric: "p99_ns", a: [1, 1, 1, 1], b: [1, 1, 1, 1] },
  ],
} as unknown as Fleet;

test("columns have all exits first, then findings, and ratios of either kind", () => {
  const columns = columnsOf(FLEET, "mean_ns", "change");
  expect(columns.map((one) => one.key.reason)).toEqual([null, "io", "msr"]);
  expect(columns[1]!.ratios).toEqual([1, 2, 1, null]);
  const level = columnsOf(FLEET, "mean_ns", "b")[1]!.ratios;
  [Math.SQRT1_2, Math.SQRT2, Math.SQRT1_2, Math.SQRT2].forEach((ratio, at) => expect(level[at]).toBeCloseTo(ratio));
  expect(endOf(columns)).toBe(2);
});

test("hosts are found, and stand by kind or by change", () => {
  const column = columnsOf(FLEET, "mean_ns", "change")[1];
  expect(hostsInOrder(FLEET, "", "kind", column)).toEqual([2, 3, 0, 1]);
  expect(hostsInOrder(FLEET, "", "change", column)).toEqual([1, 0, 2, 3]);
  expect(hostsInOrder(FLEET, "OLD b", "kind", column)).toEqual([1]);
  expect(hostsInOrder(FLEET, "x", "kind", column)).toEqual([]);
});

test("an address keeps the view, and whatever is in it is no fault", () => {
  const usual: FleetView = { metric: "mean_ns", key: "///", host: "a", compare: "change", order: "kind", words: "", theme: null };
  const view: FleetView = { ...usual, metric: "p99_ns", key: "2/svm//io", host: "b&c=#", compare: "b", order: "change", words: "x y", theme: "dark" };
  expect(fromFragment(`#${toFragment(view, usual)}`, usual)).toEqual(view);
  expect(toFragment(usual, usual)).toBe("");
  for (const text of ["#", "#%", "#compare=x&theme=red&order=", `#${"a".repeat(9999)}`]) expect(fromFragment(text, usual)).toEqual(usual);
});
