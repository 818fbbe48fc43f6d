// All stacks of a profile as one tree: machine, vCPU, its state, and the code. The tree never changes; the selected
// time determines the times of its nodes.

import { isCut, isHostCode, threadName, timeWithin, type Profile } from "./profile";

/** The owner of a frame's code, or why there is none. */
export const LAYERS = ["who", "guest_user", "guest_kernel", "nested_guest", "guest", "host_kernel", "vmm", "host_user", "not_split", "waits"] as const;
export type Layer = (typeof LAYERS)[number];

const NUMBER = Object.fromEntries(LAYERS.map((layer, at) => [layer, at])) as Record<Layer, number>;

const OF_STATE: Record<string, Layer> = {
  guest_user: "guest_user",
  guest_kernel: "guest_kernel",
  guest_irq: "guest_kernel",
  guest_idle: "guest_kernel",
  guest: "guest",
  before_exit: "host_kernel",
  exit_kernel: "host_kernel",
  halt_poll: "host_kernel",
  not_split: "not_split",
  host: "host_kernel",
  exit_user: "vmm",
};

const isGuest = (state: string) => state.startsWith("guest");

/** The layer of a vCPU's state. */
export function layerOfState(state: string, level: number): Layer {
  return isGuest(state) && level > 1 ? "nested_guest" : (OF_STATE[state] ?? "waits");
}

export interface Wanted {
  vm: string | null;
  owner: number | null;
  level: number | null;
  reason: string | null;
  idle: boolean;
  threads: boolean;
  without: Layer[];
  /** Slices of time: the first, and the end (exclusive). */
  slices: { first: number; end: number } | null;
}

/** Nodes with callers before callees; node 0 is the root. */
export class Stacks {
  readonly names: string[] = ["all"];
  readonly parent: number[] = [0];
  readonly depth: number[] = [0];
  readonly layer: number[] = [0];
  /** Whether it is code, not a machine, state or thread. */
  readonly isCode: boolean[] = [false];
  /** Callees, in descending order of their total time. */
  readonly callees: number[][] = [[]];
  /** Whether no caller is the same function. */
  readonly isOuter: boolean[] = [true];
  /** By row: its node, and the owner of its code. */
  readonly leaf: Uint32Array;
  readonly rowLayer: Uint8Array;
  /** By node: the number of its function; -1: it is none. */
  private readonly functionOf: number[] = [-1];
  private readonly functionKeys: string[] = [];
  private readonly known = new Map<string, number>();

  constructor(readonly profile: Profile) {
    const { rows } = profile.info;
    this.leaf = new Uint32Array(rows);
    this.rowLayer = new Uint8Array(rows);
    for (let row = 0; row < rows; row++) this.add(row);
    const whole = this.sums(profile.time).total;
    for (let at = 1; at < this.names.length; at++) this.callees[this.parent[at]!]!.push(at);
    for (const all of this.callees) all.sort((a, b) => whole[b]! - whole[a]!);
    this.nameFunctions();
    for (let at = 1; at < this.names.length; at++) this.isOuter[at] = !this.hasCaller(at);
    this.known.clear();
  }

  get length(): number {
    return this.names.length;
  }

  /** The key of a function: code of host and guest may have equal names. */
  key(at: number): string {
    return `${LAYERS[this.layer[at]!]}:${this.names[at]}`;
  }

  private nameFunctions(): void {
    const numbers = new Map<string, number>();
    for (let at = 1; at < this.length; at++) {
      const key = this.isCode[at] ? this.key(at) : null;
      const number = key === null ? -1 : (numbers.get(key) ?? numbers.size);
      this.functionOf.push(number);
      if (key === null || number < numbers.size) continue;
      numbers.set(key, number);
      this.functionKeys.push(key);
    }
  }

  private hasCaller(at: number): boolean {
    const function_ = this.functionOf[at]!;
    if (function_ < 0) return false;
    for (let up = this.parent[at]!; up > 0; up = this.parent[up]!) if (this.functionOf[up] === function_) return true;
    return false;
  }

  private callee(of: number, name: string, layer: Layer, isCode: boolean): number {
    const key = `${of} ${NUMBER[layer]} ${isCode ? 1 : 0} ${name}`;
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const at = this.names.length;
    this.known.set(key, at);
    this.names.push(name);
    this.parent.push(of);
    this.depth.push(this.depth[of]! + 1);
    this.layer.push(NUMBER[layer]);
    this.isCode.push(isCode);
    this.callees.push([]);
    this.isOuter.push(true);
    return at;
  }

  private add(row: number): void {
    const { profile } = this;
    const owner = profile.info.owners[profile.owner[row]!]!;
    const state = profile.info.states[profile.state[row]!]!.key;
    const [level, host] = [profile.level[row]!, isHostCode(profile, row)];
    const layer = layerOfState(state, level);
    const guest = isGuest(state);
    let at = this.callee(0, owner.vm === "" ? "host" : `VM ${owner.vm}`, "who", false);
    if (owner.vcpu === null) at = this.callee(at, owner.part === null ? threadName(owner) : `${owner.part} ${owner.comm ?? "?"}`, "who", false);
    else at = this.callee(at, `vCPU ${owner.vcpu}`, "who", false);
    if (level > 1) at = this.callee(at, "level 2", "who", false);
    if (owner.vcpu !== null) at = this.callee(at, state, layer, false);
    if (profile.reason[row]! > 0) at = this.callee(at, profile.names[profile.reason[row]! - 1]!, layer, false);
    if (guest && profile.comm[row]! > 0) at = this.callee(at, profile.names[profile.comm[row]! - 1]!, layer, false);
    // On the way into the guest, or out of it.
    if (guest && host) at = this.callee(at, "host", "host_kernel", false);
    const ofHost: Layer = owner.vcpu === null && owner.part === null ? "host_user" : "vmm";
    const frames: number[] = [];
    for (let frame = profile.frame[row]!; frame > 0; frame = profile.parent[frame - 1]!) frames.push(frame - 1);
    for (const frame of frames.reverse()) {
      const user = profile.userSpace[frame] === 1;
      const code: Layer = host || !guest ? (user ? ofHost : "host_kernel") : level > 1 ? "nested_guest" : user ? "guest_user" : "guest_kernel";
      at = this.callee(at, profile.names[profile.name[frame]!]!, code, true);
    }
    if (isCut(profile, row)) at = this.callee(at, "…", layer, false);
    this.leaf[row] = at;
    this.rowLayer[row] = NUMBER[frames.length > 0 ? LAYERS[this.layer[at]!]! : layer];
  }

  /** The time of each wanted row; 0 for others. */
  times(wanted: Wanted): Float64Array {
    const { profile } = this;
    const { owners, states } = profile.info;
    const times = new Float64Array(profile.info.rows);
    const without = new Set(wanted.without.map((layer) => NUMBER[layer]));
    for (let row = 0; row < times.length; row++) {
      const owner = owners[profile.owner[row]!]!;
      if (wanted.owner !== null ? profile.owner[row] !== wanted.owner : owner.vcpu === null && !wanted.threads) continue;
      if (wanted.vm !== null && owner.vm !== wanted.vm) continue;
      if (wanted.level !== null && profile.level[row] !== wanted.level) continue;
      if (wanted.reason !== null && (profile.reason[row] === 0 || profile.names[profile.reason[row]! - 1] !== wanted.reason)) continue;
      if ((states[profile.state[row]!]!.is_idle && !wanted.idle) || without.has(this.rowLayer[row]!)) continue;
      times[row] = wanted.slices ? timeWithin(profile, row, wanted.slices.first, wanted.slices.end) : profile.time[row]!;
    }
    return times;
  }

  /** Times of nodes, with and without their callees. */
  sums(times: Float64Array): Sums {
    const [total, own] = [new Float64Array(this.length), new Float64Array(this.length)];
    for (let row = 0; row < times.length; row++) own[this.leaf[row]!] = own[this.leaf[row]!]! + times[row]!;
    total.set(own);
    for (let at = this.length - 1; at > 0; at--) total[this.parent[at]!] = total[this.parent[at]!]! + total[at]!;
    return { total, own };
  }

  /** Samples of rows below a node, and the interval of their time: independent errors add up as squares. */
  sureness(node: number, times: Float64Array): { samples: number; below: number; above: number } {
    let [samples, below, above] = [0, 0, 0];
    const { profile } = this;
    for (let row = 0; row < times.length; row++) {
      if (times[row] === 0 || !this.isBelow(this.leaf[row]!, node)) continue;
      samples += profile.samples[row]!;
      below += profile.below[row]! ** 2;
      above += profile.above[row]! ** 2;
    }
    return { samples, below: Math.sqrt(below), above: Math.sqrt(above) };
  }

  private isBelow(at: number, node: number): boolean {
    for (let up = at; up >= node; up = this.parent[up]!) if (up === node) return true;
    return false;
  }

  /** Nodes from the root to this one. */
  path(node: number): number[] {
    const path = [node];
    for (let up = node; up > 0; ) path.unshift((up = this.parent[up]!));
    return path;
  }

  /** Marks nodes whose names match; returns their time, counted once per stack. */
  matches(match: (name: string) => boolean, total: Float64Array): { found: Uint8Array; time: number } {
    const [found, inside] = [new Uint8Array(this.length), new Uint8Array(this.length)];
    let time = 0;
    // Tests each name only once.
    const known = new Map<string, boolean>();
    const matches = (name: string) => {
      let is = known.get(name);
      if (is === undefined) known.set(name, (is = match(name)));
      return is;
    };
    for (let at = 1; at < this.length; at++) {
      const within = inside[this.parent[at]!]! === 1;
      const own = matches(this.names[at]!);
      found[at] = own ? 1 : 0;
      inside[at] = within || own ? 1 : 0;
      if (own && !within) time += total[at]!;
    }
    return { found, time };
  }

  /** Functions by key: self time, and total time counted once per stack. */
  functions({ total, own }: Sums): FunctionTime[] {
    const all: FunctionTime[] = [];
    const places = new Int32Array(this.functionKeys.length).fill(-1);
    for (let at = 1; at < this.length; at++) {
      const number = this.functionOf[at]!;
      if (number < 0 || total[at] === 0) continue;
      if (places[number]! < 0) {
        places[number] = all.length;
        all.push({ key: this.functionKeys[number]!, name: this.names[at]!, layer: LAYERS[this.layer[at]!]!, own: 0, total: 0 });
      }
      const sum = all[places[number]!]!;
      sum.own += own[at]!;
      if (this.isOuter[at]) sum.total += total[at]!;
    }
    return all;
  }
}

export interface Sums {
  total: Float64Array;
  own: Float64Array;
}

export interface FunctionTime {
  key: string;
  name: string;
  layer: Layer;
  own: number;
  total: number;
}

/** A matcher for words: the words in any case, or a regular expression between slashes. Null: an invalid expression. */
export function matcher(words: string): ((name: string) => boolean) | null {
  const expression = /^\/(.+?)\/?$/.exec(words)?.[1];
  if (expression === undefined) {
    const lower = words.toLowerCase();
    return (name) => name.toLowerCase().includes(lower);
  }
  try {
    const wanted = new RegExp(expression, "i");
    return (name) => wanted.test(name);
  } catch {
    return null;
  }
}
