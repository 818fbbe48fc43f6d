// The result of `hyperscope boot` in the page: docs/formats/boot.schema.json.

import type { Known } from "./report";

export interface BootHost {
  exits: number;
  [time: string]: unknown;
}

export interface BootPhase {
  kind: "before" | "kernel" | "level" | "user" | "running" | "shutdown" | "after";
  name: string;
  guest: { initcalls: number; recorded: { events: number; event_bytes: number }; tracing: { time_ns: number; low_ns: number; high_ns: number } | null } | null;
  host: BootHost | null;
  [time: string]: unknown;
}

export interface BootInitcall {
  function: string | null;
  address: number;
  module: string | null;
  level: string | null;
  loaded: boolean;
  depth: number;
  host: BootHost | null;
  [time: string]: unknown;
}

export interface BootMachine {
  vm: string | null;
  guest: string | null;
  phases: BootPhase[];
  initcalls: BootInitcall[];
  [time: string]: unknown;
}

export interface BootDocument {
  machines: BootMachine[];
}

/** A part of a boot that the page shows: a phase, or an initcall. */
export interface BootPart {
  kind: string;
  title: string;
  /** Relative to the machine's first phase. */
  from: number;
  length: Known;
  exits: Known;
  /** The text that a filter searches. */
  words: string;
}

/** The label of a phase in tables. */
export function phaseTitle({ kind, name }: BootPhase): string {
  if (kind === "running" && name !== "recorded") return `after "${name}"`;
  return kind === "shutdown" ? `down: ${name}` : name;
}

function timeIn(row: { [key: string]: unknown }, name: string): Known {
  const value = row[`${name}_ns`] ?? row[`${name}_cycles`];
  return typeof value === "number" ? value : null;
}

/** The first time of a machine, relative to the page's origin. */
export function beginsAt(machine: BootMachine, origin: string): number {
  return (timeIn(machine, "begin") ?? 0) - Number(origin);
}

export function partsOf(machine: BootMachine): { phases: BootPart[]; initcalls: BootPart[] } {
  const part = (kind: string, title: string, of: BootPhase | BootInitcall, more: (string | null)[]): BootPart => ({
    kind,
    title,
    from: timeIn(of, "since_begin") ?? 0,
    length: timeIn(of, "duration"),
    exits: of.host?.exits ?? null,
    words: [title, ...more].join(" ").toLowerCase(),
  });
  const name = (one: BootInitcall) => one.function ?? (one.module ? `[${one.module}]` : `0x${one.address.toString(16)}`);
  return {
    phases: machine.phases.map((one) => part(one.kind, phaseTitle(one), one, [one.kind])),
    initcalls: machine.initcalls.map((one) => part("initcall", name(one), one, [one.module, one.loaded ? "module" : one.level])),
  };
}

/** The parts that contain all wanted words. */
export function found(parts: BootPart[], wanted: string): BootPart[] {
  const words = wanted.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return parts.filter((one) => words.every((word) => one.words.includes(word)));
}
