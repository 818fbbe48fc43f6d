// Boots and shutdowns of guests: a bar of phases for each, and the longest initcalls.

import { beginsAt, found, partsOf, type BootMachine, type BootPart } from "../data/boot";
import { el, section } from "../dom";
import type { Context } from "../focus";
import { count, share, time } from "../format";
import { hideTooltip, showTooltip } from "../tooltip";

/** Max initcalls shown at a time. */
const MOST_SHOWN = 20;

/** The colour of a kind of phase; levels alternate, so that adjacent ones can be distinguished. */
const COLOURS: Record<string, string> = {
  before: "--other",
  kernel: "--kernel",
  user: "--user",
  running: "--guest",
  shutdown: "--preempted",
  after: "--other",
};
const LEVELS = ["--guest-kernel", "--guest-irq"];

export function boot(context: Context): HTMLElement | null {
  const machines = context.report.boot?.machines ?? [];
  if (machines.length === 0) return null;
  return section(
    "boot",
    "Boots and shutdowns",
    el("p", { class: "note" }, "Phases as the guest's kernel recorded them, each with the exits that began in it. Click a phase to see it in the timeline."),
    ...machines.map((machine) => figureOf(machine, context)),
  );
}

function figureOf(machine: BootMachine, context: Context): HTMLElement {
  const ns = context.report.nanoseconds;
  const { phases, initcalls } = partsOf(machine);
  const whole = phases.reduce((sum, phase) => sum + (phase.length ?? 0), 0);
  const begin = beginsAt(machine, context.report.origin);
  const name = machine.vm ?? machine.guest ?? "guest";
  const show = (part: BootPart) => context.showTime(begin + part.from, begin + part.from + (part.length ?? 0));
  const colours = coloursOf(phases);
  const segments = phases.map((phase, at) => segment(phase, colours[at]!, whole, ns, () => show(phase)));
  const list = el("tbody");
  const words = el("span", { class: "found", role: "status" });
  const search = el("input", { type: "search", "aria-label": `Find a phase or an initcall of ${name}`, placeholder: "find a phase or an initcall" });
  const fill = () => {
    const inPhases = found(phases, search.value);
    const inCalls = found(initcalls, search.value);
    phases.forEach((phase, at) => segments[at]!.classList.toggle("dim", !inPhases.includes(phase)));
    const rows = [...inPhases, ...inCalls.slice(0, MOST_SHOWN)];
    list.replaceChildren(...rows.map((part) => row(part, whole, ns, () => show(part))));
    const shown = inCalls.length > MOST_SHOWN ? `, the slowest ${MOST_SHOWN} shown` : "";
    words.textContent = `${count(inPhases.length)} phases, ${count(inCalls.length)} initcalls${shown}`;
  };
  search.addEventListener("input", fill);
  fill();
  const titles = ["phase or initcall", "begins", "lasts", "share", "exits"];
  return el(
    "figure",
    { class: "boot" },
    el("figcaption", {}, el("b", {}, name), ` ${time(whole, ns)} in all`),
    el("div", { class: "bar phases", role: "group", "aria-label": `Phases of ${name}` }, ...segments),
    el("p", { class: "boot-search" }, search, " ", words),
    el("div", { class: "scroll" }, el("table", {},
      el("caption", {}, `Phases of ${name}, and its slowest initcalls`),
      el("thead", {}, el("tr", {}, ...titles.map((title, at) => el("th", { scope: "col", class: at > 0 ? "number" : null }, title)))),
      list)),
  );
}

function coloursOf(phases: BootPart[]): string[] {
  let levels = 0;
  return phases.map((phase) => COLOURS[phase.kind] ?? LEVELS[levels++ % LEVELS.length]!);
}

function segment(phase: BootPart, colour: string, whole: number, ns: boolean, show: () => void): HTMLElement {
  const length = time(phase.length, ns);
  const exits = phase.exits === null ? "exits not recorded" : `${count(phase.exits)} exits`;
  const lines = [phase.title, `${length}, ${share(phase.length, whole)}`, `from ${time(phase.from, ns)}`, exits];
  const describe = (event: Event) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const [x, y] = event instanceof MouseEvent ? [event.clientX, event.clientY] : [box.left, box.bottom];
    showTooltip(x, y, lines);
  };
  return el("button", {
    type: "button",
    class: "phase",
    style: `flex: ${phase.length ?? 0} 0 0; background: var(${colour})`,
    "aria-label": lines.join(", "),
    onclick: show,
    onpointermove: describe,
    onpointerleave: hideTooltip,
    onfocus: describe,
    onblur: hideTooltip,
  });
}

function row(part: BootPart, whole: number, ns: boolean, show: () => void): HTMLElement {
  return el(
    "tr",
    { class: part.kind === "initcall" ? "initcall" : null },
    el("th", { scope: "row" }, el("button", { type: "button", class: "finding", onclick: show }, part.title)),
    ...[time(part.from, ns), part.length === null ? "no end" : time(part.length, ns), share(part.length, whole), part.exits === null ? "" : count(part.exits)].map((text) => el("td", { class: "number" }, text)),
  );
}
