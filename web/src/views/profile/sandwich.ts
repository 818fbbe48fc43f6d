// One function between its callers and its callees, over all stacks that contain it.

import type { Stacks } from "../../data/stacks";
import type { Tree } from "./picture";

/** Stacks, merged as they are added. */
export class MergedTree implements Tree {
  readonly names: string[];
  readonly parent = [0];
  readonly layer: number[];
  readonly callees: number[][] = [[]];
  private readonly sums = [0];
  private readonly known = new Map<string, number>();

  constructor(root: string, layer: number) {
    this.names = [root];
    this.layer = [layer];
  }

  /** Adds time to the node with that name below another one. */
  add(below: number, name: string, layer: number, time: number): number {
    const key = `${below} ${layer} ${name}`;
    let at = this.known.get(key);
    if (at === undefined) {
      at = this.names.length;
      this.known.set(key, at);
      this.names.push(name);
      this.layer.push(layer);
      this.parent.push(below);
      this.callees.push([]);
      this.callees[below]!.push(at);
      this.sums.push(0);
    }
    this.sums[at] = this.sums[at]! + time;
    return at;
  }

  addToRoot(time: number): void {
    this.sums[0] = this.sums[0]! + time;
  }

  /** Times, once everything is added; children are sorted, the heaviest first. */
  done(): Float64Array {
    for (const all of this.callees) all.sort((a, b) => this.sums[b]! - this.sums[a]!);
    return Float64Array.from(this.sums);
  }
}

export interface Sandwich {
  callers: MergedTree;
  callees: MergedTree;
  callersTotal: Float64Array;
  calleesTotal: Float64Array;
}

/** The function with that key; null: it is not shown. For recursion, the outermost call counts. */
export function sandwich(stacks: Stacks, total: Float64Array, key: string): Sandwich | null {
  const name = key.slice(key.indexOf(":") + 1);
  const nodes: number[] = [];
  for (let at = 1; at < stacks.length; at++) {
    if (stacks.names[at] === name && stacks.isCode[at] && stacks.isOuter[at] && total[at]! > 0 && stacks.key(at) === key) nodes.push(at);
  }
  if (nodes.length === 0) return null;
  const layer = stacks.layer[nodes[0]!]!;
  const [callers, callees] = [new MergedTree(name, layer), new MergedTree(name, layer)];
  for (const node of nodes) {
    const time = total[node]!;
    callers.addToRoot(time);
    callees.addToRoot(time);
    let below = 0;
    for (let up = stacks.parent[node]!; up > 0; up = stacks.parent[up]!) below = callers.add(below, stacks.names[up]!, stacks.layer[up]!, time);
    const todo: [number, number][] = [[node, 0]];
    for (let next = todo.pop(); next; next = todo.pop()) {
      for (const callee of stacks.callees[next[0]]!) {
        if (total[callee]! > 0) todo.push([callee, callees.add(next[1], stacks.names[callee]!, stacks.layer[callee]!, total[callee]!)]);
      }
    }
  }
  return { callers, callees, callersTotal: callers.done(), calleesTotal: callees.done() };
}
