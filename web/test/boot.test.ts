import { describe, expect, it } from "vitest";
import { beginsAt, found, partsOf, phaseTitle, type BootInitcall, type BootMachine, type BootPhase } from "../src/data/boot";

const phase = (kind: BootPhase["kind"], name: string, since: number, lasts: number): BootPhase => ({ kind, name, guest: null, host: null, since_begin_ns: since, duration_ns: lasts });
const call = (name: string | null, module: string | null, level: string | null): BootInitcall => ({
  function: name,
  address: 0x1f,
  module,
  level,
  loaded: level === null,
  depth: 0,
  host: { exits: 3 },
  since_begin_ns: 7,
  duration_ns: null,
});

const machine: BootMachine = {
  vm: "web",
  guest: null,
  begin_ns: 1_000,
  phases: [phase("level", "fs", 0, 5), phase("running", "up", 5, 6), phase("running", "recorded", 5, 6), phase("shutdown", "devices", 11, 1)],
  initcalls: [call("acpi_init", "acpi", "subsys"), call(null, "virtio_pci", null), call(null, null, "fs")],
};

describe("a boot", () => {
  it("names phases as tables do", () => {
    expect(machine.phases.map(phaseTitle)).toEqual(["fs", 'after "up"', "recorded", "down: devices"]);
  });

  it("names initcalls by what is known of them", () => {
    const { initcalls } = partsOf(machine);
    expect(initcalls.map((one) => one.title)).toEqual(["acpi_init", "[virtio_pci]", "0x1f"]);
    expect(initcalls.map((one) => [one.from, one.length, one.exits])).toEqual(Array(3).fill([7, null, 3]));
  });

  it("begins where the page does", () => {
    expect(beginsAt(machine, "400")).toBe(600);
  });

  it("is searched by all words, of names, levels and modules", () => {
    const { phases, initcalls } = partsOf(machine);
    const titles = (wanted: string) => [...found(phases, wanted), ...found(initcalls, wanted)].map((one) => one.title);
    expect(titles("FS")).toEqual(["fs", "0x1f"]);
    expect(titles("sub acpi")).toEqual(["acpi_init"]);
    expect(titles("module")).toEqual(["[virtio_pci]"]);
    expect(titles(" ").length).toBe(7);
    expect(titles("nothing of it")).toEqual([]);
  });
});
