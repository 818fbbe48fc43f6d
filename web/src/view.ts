// The reader's view, as text in the page's address, so that a reload or a shared link keeps it.
//
// The text is untrusted, but never an error: parts that are unknown, too long or outside the recording are
// ignored.

import { codeParts, PLAIN_CODE, readCode, type CodeView } from "./code_view";
import { EVERYTHING, type Focus } from "./focus";

export interface Span {
  from: number;
  to: number;
}

export interface View {
  /** The shown time; null: everything. */
  time: Span | null;
  selection: Span | null;
  /** The search text of the timeline. */
  find: string;
  /** Filters of the exits table, and of lanes. */
  exits: string;
  lanes: string;
  /** Whether lanes that are hidden by default are shown. */
  quiet: boolean;
  pinned: number[];
  hidden: number[];
  /** Keys of emphasized states. */
  states: string[];
  /** Keys of hidden states. */
  without: string[];
  /** Whether events are listed, and their filter. */
  events: boolean;
  eventWords: string;
  /** The drawer's tab. */
  tab: string;
  /** The drawn request: its path, and the kind of example. */
  request: string;
  focus: Focus;
  /** The flame graph of code. */
  code: CodeView;
  theme: "light" | "dark" | null;
  clock: "relative" | "absolute";
  /** The section that the reader went to. */
  at: string;
}

export const PLAIN: View = {
  time: null,
  selection: null,
  find: "",
  exits: "",
  lanes: "",
  quiet: false,
  pinned: [],
  hidden: [],
  states: [],
  without: [],
  events: false,
  eventWords: "",
  tab: "",
  request: "",
  focus: EVERYTHING,
  code: PLAIN_CODE,
  theme: null,
  clock: "relative",
  at: "",
};

const [MOST_TEXT, MOST_WORDS, MOST_LANES] = [16_384, 200, 2_000];

const span = (of: Span | null) => (of ? `${Math.round(of.from)}-${Math.round(of.to)}` : "");

/** The view as a fragment, without `#`; default values are left out. */
export function toFragment(view: View): string {
  const { focus } = view;
  const parts: [string, string][] = [
    ["t", span(view.time)],
    ["sel", span(view.selection)],
    ["find", view.find],
    ["exits", view.exits],
    ["lanes", view.lanes],
    ["more", view.quiet ? "lanes" : ""],
    ["pin", view.pinned.join(".")],
    ["hide", view.hidden.join(".")],
    ["states", view.states.join(".")],
    ["without", view.without.join(".")],
    ["list", view.events ? "events" : ""],
    ["event", view.eventWords],
    ["tab", view.tab],
    ["request", view.request],
    ["vm", focus.vm ?? ""],
    ["level", focus.level === null ? "" : String(focus.level)],
    ["reason", focus.reason ?? ""],
    ...codeParts(view.code),
    ["theme", view.theme ?? ""],
    ["clock", view.clock === "absolute" ? "absolute" : ""],
    ["at", view.at],
  ];
  return new URLSearchParams(parts.filter(([, value]) => value !== "")).toString();
}

function readSpan(text: string): Span | null {
  const [, from, to] = /^(\d{1,16})-(\d{1,16})$/.exec(text) ?? [];
  if (from === undefined || to === undefined || Number(from) >= Number(to)) return null;
  return Number(to) <= Number.MAX_SAFE_INTEGER ? { from: Number(from), to: Number(to) } : null;
}

function readLanes(text: string): number[] {
  const numbers = text.split(".").slice(0, MOST_LANES).filter((one) => /^\d{1,6}$/.test(one));
  return [...new Set(numbers.map(Number))];
}

function readStates(text: string): string[] {
  return [...new Set(text.split(".").slice(0, 64).filter((one) => /^[a-z_]{1,40}$/.test(one)))];
}

/** The view of a fragment, with or without `#`; a section's name alone is the target. */
export function fromFragment(fragment: string): View {
  const text = fragment.replace(/^#/, "");
  if (text.length > MOST_TEXT) return PLAIN;
  if (/^[a-z]{1,20}$/.test(text)) return { ...PLAIN, at: text };
  const all = new URLSearchParams(text);
  const words = (name: string) => (all.get(name) ?? "").slice(0, MOST_WORDS);
  const [level, theme, at] = [words("level"), words("theme"), words("at")];
  return {
    time: readSpan(words("t")),
    selection: readSpan(words("sel")),
    find: words("find"),
    exits: words("exits"),
    lanes: words("lanes"),
    quiet: words("more") === "lanes",
    pinned: readLanes(all.get("pin") ?? ""),
    hidden: readLanes(all.get("hide") ?? ""),
    states: readStates(all.get("states") ?? ""),
    without: readStates(all.get("without") ?? ""),
    events: words("list") === "events",
    eventWords: words("event"),
    tab: /^[a-z]{1,20}$/.test(words("tab")) ? words("tab") : "",
    request: /^\d{1,4}\.[a-z0-9]{1,8}$/.test(words("request")) ? words("request") : "",
    focus: { vm: words("vm") || null, level: /^\d{1,3}$/.test(level) ? Number(level) : null, reason: words("reason") || null },
    code: readCode(all, words, readStates),
    theme: theme === "light" || theme === "dark" ? theme : null,
    clock: words("clock") === "absolute" ? "absolute" : "relative",
    at: /^[a-z]{1,20}$/.test(at) ? at : "",
  };
}

/** Browsers reject too frequent changes of the address. */
const WRITE_AFTER_MS = 250;

/** The view, kept in the page's address. */
export class ViewStore {
  private current: View;
  private timer = 0;
  private readonly listeners: ((view: View) => void)[] = [];

  constructor() {
    this.current = fromFragment(location.hash);
    addEventListener("hashchange", () => {
      clearTimeout(this.timer);
      this.current = fromFragment(location.hash);
      for (const listener of this.listeners) listener(this.current);
    });
    addEventListener("pagehide", () => this.write());
  }

  get value(): View {
    return this.current;
  }

  /** Records an action of the reader. */
  update(part: Partial<View>): void {
    this.current = { ...this.current, ...part };
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), WRITE_AFTER_MS) as unknown as number;
  }

  /** Calls `listener` when the address changes. */
  follow(listener: (view: View) => void): void {
    this.listeners.push(listener);
  }

  /** The address of this view. */
  address(): string {
    const fragment = toFragment(this.current);
    return `${location.href.split("#")[0]}${fragment ? `#${fragment}` : ""}`;
  }

  private write(): void {
    clearTimeout(this.timer);
    try {
      if (this.address() !== location.href) history.replaceState(null, "", this.address());
    } catch {
      // Pages in a sandbox have no address of their own, so they don't keep the view.
    }
  }
}
