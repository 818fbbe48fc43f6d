// The states of vCPUs, with the time of nested guests separate from the guest's own.

import type { Known } from "./report";

export interface StateTimes {
  states: { [state: string]: Known };
  level2_ns?: Known;
  level2_cycles?: Known;
}

/** Each state by its key, with its time in nanoseconds or ticks. */
export function statesOf(row: StateTimes, nanoseconds: boolean): [string, Known][] {
  const suffix = nanoseconds ? "_ns" : "_cycles";
  const nested = (nanoseconds ? row.level2_ns : row.level2_cycles) ?? 0;
  return Object.entries(row.states)
    .filter(([name]) => name.endsWith(suffix))
    .flatMap(([name, value]): [string, Known][] => {
      const key = name.slice(0, -suffix.length);
      if (key !== "guest" || value === null || nested === 0) return [[key, value]];
      return [[key, Math.max(0, value - nested)], ["nested_guest", Math.min(nested, value)]];
    });
}
