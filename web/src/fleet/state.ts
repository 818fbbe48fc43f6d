// The reader's view of a fleet's page, as text in its address, so that a reload or a shared link keeps it.
//
// As in the page of a recording, the text is untrusted: unknown parts are ignored.

/** The comparison of a cell: a host with itself at an earlier time, or with the hosts of its kind on a side. */
export type Compare = "change" | "a" | "b";
export type Order = "kind" | "change";

export interface FleetView {
  metric: string;
  /** The selected exits, by their `idOf`. */
  key: string;
  host: string;
  compare: Compare;
  order: Order;
  /** Words in hosts' names or kinds. */
  words: string;
  theme: "light" | "dark" | null;
}

const MOST_TEXT = 4_096;
const MOST_WORDS = 300;

/** The fragment, without `#`, of values that differ from `usual`. */
export function toFragment(view: FleetView, usual: FleetView): string {
  const names = ["metric", "key", "host", "compare", "order", "words", "theme"] as const;
  const parts = names.filter((name) => view[name] !== usual[name]).map((name) => [name, view[name] ?? ""]);
  return new URLSearchParams(parts).toString();
}

/** The view of a fragment, with or without `#`. */
export function fromFragment(fragment: string, usual: FleetView): FleetView {
  const text = fragment.replace(/^#/, "");
  if (text.length > MOST_TEXT) return usual;
  const all = new URLSearchParams(text);
  const words = (name: string) => all.get(name)?.slice(0, MOST_WORDS);
  const one = <T extends string>(name: string, known: readonly T[]) => known.find((value) => value === all.get(name));
  return {
    metric: words("metric") ?? usual.metric,
    key: words("key") ?? usual.key,
    host: words("host") ?? usual.host,
    compare: one("compare", ["change", "a", "b"]) ?? usual.compare,
    order: one("order", ["kind", "change"]) ?? usual.order,
    words: words("words") ?? usual.words,
    theme: one("theme", ["light", "dark"] as const) ?? usual.theme,
  };
}

/** Browsers reject too frequent changes of the address. */
const WRITE_AFTER_MS = 250;

/** The view, kept in the page's address. */
export class FleetStore {
  private current: FleetView;
  private timer = 0;
  private readonly listeners: ((view: FleetView) => void)[] = [];

  constructor(private readonly usual: FleetView) {
    this.current = fromFragment(location.hash, usual);
    addEventListener("hashchange", () => {
      clearTimeout(this.timer);
      this.current = fromFragment(location.hash, usual);
      this.say();
    });
    addEventListener("pagehide", () => this.write());
  }

  get value(): FleetView {
    return this.current;
  }

  update(part: Partial<FleetView>): void {
    this.current = { ...this.current, ...part };
    this.say();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), WRITE_AFTER_MS) as unknown as number;
  }

  /** Calls `listener` at every change. */
  follow(listener: (view: FleetView) => void): void {
    this.listeners.push(listener);
  }

  private say(): void {
    for (const listener of this.listeners) listener(this.current);
  }

  private write(): void {
    clearTimeout(this.timer);
    const fragment = toFragment(this.current, this.usual);
    const address = `${location.href.split("#")[0]}${fragment ? `#${fragment}` : ""}`;
    try {
      if (address !== location.href) history.replaceState(null, "", address);
    } catch {
      // Pages in a sandbox have no address of their own, so they don't keep the view.
    }
  }
}
