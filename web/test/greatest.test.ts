// Of many things those are kept that weigh most, and the number of the others is known.

import { expect, test } from "vitest";
import { greatest } from "../src/data/greatest";
import { groupsOf, type HeatGroup } from "../src/data/heat";
import type { ExitRow } from "../src/data/report";

test("the greatest are kept in their order", () => {
  const weight = (one: number) => one;
  expect(greatest([3, 1, 2, 9], 2, weight)).toEqual({ kept: [3, 9], others: 2 });
  expect(greatest([3, 1], 2, weight)).toEqual({ kept: [3, 1], others: 0 });
  expect(greatest([5, 5, 5], 1, weight)).toEqual({ kept: [5], others: 2 });
});

/** Each row compared with each group would be 4 * 10^8 comparisons, more than the test's five seconds. */
test("20,000 rows find their groups", () => {
  const named = (at: number) => ({ source: "a", vm: `vm-${at}`, level: 1, reason: "HLT", code: at % 2 ? null : at });
  const all = Array.from({ length: 20_000 }, (_, at) => named(at));
  const groups = [...all].reverse() as unknown as HeatGroup[];
  const found = groupsOf(all as unknown as ExitRow[], groups);
  expect(found.every((of, at) => of.length === 1 && of[0]!.vm === all[at]!.vm)).toBe(true);
  expect(groupsOf([{ ...all[0], level: 2 }] as unknown as ExitRow[], groups)).toEqual([[]]);
});
