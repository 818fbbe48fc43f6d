// The reader's view of the flame graph of code, as parts of an address.

export interface CodeView {
  /** The node that fills the width; 0: the root. */
  zoom: number;
  find: string;
  /** The function whose callers and callees are shown, by layer and name. */
  of: string;
  vm: string;
  /** Only this vCPU or thread. */
  owner: number | null;
  /** Emphasized layers, and hidden layers. */
  out: string[];
  without: string[];
  idle: boolean;
  threads: boolean;
  /** Callees above their callers. */
  up: boolean;
  /** Show all of the time, whatever is selected. */
  always: boolean;
}

export const PLAIN_CODE: CodeView = { zoom: 0, find: "", of: "", vm: "", owner: null, out: [], without: [], idle: false, threads: false, up: false, always: false };

const SWITCHES = ["idle", "threads", "up", "always"] as const;

/** Parts of an address; default values are empty. */
export function codeParts(view: CodeView): [string, string][] {
  return [
    ["czoom", view.zoom > 0 ? String(view.zoom) : ""],
    ["cfind", view.find],
    ["cof", view.of],
    ["cvm", view.vm],
    ["cwho", view.owner === null ? "" : String(view.owner)],
    ["cout", view.out.join(".")],
    ["cwithout", view.without.join(".")],
    ["cshow", SWITCHES.filter((one) => view[one]).join(".")],
  ];
}

const MOST_NAME = 500;

function number(text: string): number | null {
  return /^\d{1,7}$/.test(text) ? Number(text) : null;
}

/** `words` returns a part of an address, truncated if it is too long, and `keys` a list in a part. */
export function readCode(all: URLSearchParams, words: (name: string) => string, keys: (text: string) => string[]): CodeView {
  const shown = new Set(keys(words("cshow")));
  const [idle, threads, up, always] = SWITCHES.map((one) => shown.has(one)) as [boolean, boolean, boolean, boolean];
  return {
    zoom: number(words("czoom")) ?? 0,
    find: words("cfind"),
    of: (all.get("cof") ?? "").slice(0, MOST_NAME),
    vm: words("cvm"),
    owner: number(words("cwho")),
    out: keys(words("cout")),
    without: keys(words("cwithout")),
    idle,
    threads,
    up,
    always,
  };
}
