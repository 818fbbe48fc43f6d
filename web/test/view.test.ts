// A view survives its way through an address; whatever else is in an address does no harm.

import { expect, test } from "vitest";
import { fromFragment, PLAIN, toFragment, type View } from "../src/view";
import { random } from "./random";

const FULL: View = {
  time: { from: 17, to: 9_000_000_001 },
  selection: { from: 20, to: 30 },
  find: "npf & <b>#1</b> %41+ü",
  exits: "level 2",
  lanes: "vCPU 0",
  quiet: true,
  pinned: [3, 0],
  hidden: [12],
  events: true,
  eventWords: "msr 0x80b",
  states: ["exit_kernel", "guest"],
  without: ["halted"],
  tab: "states",
  request: "3.p99",
  focus: { vm: "vm-1/&?=#", level: 2, reason: "io" },
  code: { zoom: 17, find: "/^kvm_/", of: "host_kernel:a b<c>(int&) [kvm]", vm: "vm 1", owner: 2, out: ["vmm"], without: ["waits", "guest"], idle: true, threads: true, up: true, always: true },
  theme: "dark",
  clock: "absolute",
  at: "timeline",
};

test("a view comes back as it was", () => {
  expect(fromFragment(`#${toFragment(FULL)}`)).toEqual(FULL);
  expect(fromFragment("")).toEqual(PLAIN);
  expect(toFragment(PLAIN)).toBe("");
});

test("the name of a section is where to go", () => {
  expect(fromFragment("#exits")).toEqual({ ...PLAIN, at: "exits" });
});

test.each(["t=5-5", "t=9-3", "t=-1-4", "t=1e3-2e3", "t=1-99999999999999999999", "t=NaN-Infinity", "sel=0x1-0x9", "level=-1", "level=2.5", "theme=red", "clock=x", "at=__proto__", "at=%3Cimg%3E", "pin=a.-1.1e9.9999999", "states=%00.<b>", "nothing=1", "%E0%A4%A", "t=1-2".repeat(9000)])("%# of no use: left out", (text) => {
  expect(fromFragment(`#${text}`)).toEqual(PLAIN);
});

test("no text is an error, or makes a view without bounds", () => {
  const next = random(5);
  const whole = toFragment(FULL);
  for (let round = 0; round < 3000; round++) {
    const letters = [...whole];
    for (let change = 0; change < 8; change++) letters[Math.floor(next() * letters.length)] = String.fromCharCode(Math.floor(next() * 300));
    const view = fromFragment(letters.join(""));
    for (const span of [view.time, view.selection]) if (span) expect(span.to).toBeGreaterThan(span.from);
    for (const lane of [...view.pinned, ...view.hidden]) expect(Number.isSafeInteger(lane) && lane >= 0).toBe(true);
    expect(fromFragment(toFragment(view))).toEqual(view);
  }
  expect(fromFragment(`find=${"x".repeat(5000)}`).find.length).toBe(200);
});
