// States of CPUs and vCPUs in each of some intervals, summed over a machine.

import type { Lane } from "./lane";
import type { LaneInfo } from "./report";

export interface Use {
  /** `host`, or the VM of the vCPUs. */
  name: string;
  kind: "cpu" | "vcpu";
  /** Number of CPUs or vCPUs. */
  lanes: number;
  /** By interval, the time in each state, by state number. */
  bins: Map<number, number>[];
}

/** The use of each machine's CPUs, and of each VM's vCPUs, in `count` intervals from `from` to `to`. */
export function useOf(all: { info: LaneInfo; lane: Lane | null }[], from: number, to: number, count: number): Use[] {
  const uses = new Map<string, Use>();
  for (const { info, lane } of all) {
    if ((info.kind !== "cpu" && info.kind !== "vcpu") || !lane || lane.count === 0) continue;
    const name = info.kind === "vcpu" ? (info.vm ?? info.machine) : info.machine;
    const key = `${info.kind} ${info.machine} ${name}`;
    let use = uses.get(key);
    if (!use) {
      use = { name, kind: info.kind, lanes: 0, bins: Array.from({ length: count }, () => new Map<number, number>()) };
      uses.set(key, use);
    }
    use.lanes += 1;
    const step = (to - from) / count;
    use.bins.forEach((bin, at) => {
      for (const [state, ns] of lane.within(from + at * step, from + (at + 1) * step)) bin.set(state, (bin.get(state) ?? 0) + ns);
    });
  }
  // CPUs first: the vCPUs' states explain their use.
  return [...uses.values()].sort((a, b) => (a.kind === b.kind ? 0 : a.kind === "cpu" ? -1 : 1));
}
