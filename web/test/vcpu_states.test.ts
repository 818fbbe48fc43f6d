import { expect, it } from "vitest";
import { statesOf } from "../src/data/vcpu_states";

it("sets guests inside a guest apart, and loses no time", () => {
  const states = { guest_ns: 1959, exit_kernel_ns: 7000, halted_ns: null, guest_cycles: 5 };
  const split = statesOf({ states, level2_ns: 430 }, true);
  expect(split).toEqual([["guest", 1529], ["nested_guest", 430], ["exit_kernel", 7000], ["halted", null]]);
  expect(statesOf({ states }, true)).toEqual([["guest", 1959], ["exit_kernel", 7000], ["halted", null]]);
});
