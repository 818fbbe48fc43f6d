// The columns of the exits table: how each number is shown, sorted, and named.

import { variableOf } from "../colours";
import { timeOf, type ExitRow, type Known, type Report } from "../data/report";
import { el } from "../dom";
import { count, NOT_RECORDED, share, time } from "../format";
import { sparkline } from "./sparkline";

export interface Column {
  key: string;
  title: string;
  hint: string;
  /** Shown at first. */
  main: boolean;
  text: boolean;
  sort: (row: ExitRow) => number | string | null;
  /** As the JSON has it; absent where it was not recorded. */
  value: (row: ExitRow) => string | null;
  cell: (row: ExitRow, focus: () => void) => (Node | string)[];
}

type Histograms = Map<ExitRow, Map<number, number>>;

export function columnsFor(report: Report, histograms: Histograms, range: [number, number], perOctave: number): Column[] {
  const ns = report.nanoseconds;
  const total = report.exits.rows.reduce((all, row) => all + (timeOf(row, "time", ns) ?? 0), 0);
  const manyVms = new Set(report.exits.rows.map((row) => row.vm)).size > 1;
  const timed = (name: string, title: string, hint: string, main = false): Column =>
    number(name, title, hint, (row) => timeOf(row, name, ns), (value) => time(value, ns), main);
  return [
    reason(),
    text("vm", "VM", "The virtual machine", (row) => row.vm, manyVms),
    number("level", "level", "1: a guest of this machine; 2: a guest inside one", (row) => row.level, count, true),
    text("isa", "isa", "Instruction set", (row) => row.isa),
    text("code", "code", "The raw code", (row) => (row.code === null ? null : String(row.code))),
    number("count", "exits", "Exits, whether or not their entry was seen", (row) => row.count, count, true),
    number("paired", "timed", "Exits whose entry was seen: times are of these", (row) => row.paired, count),
    timed("time", "time", "From exit to entry, all exits together", true),
    {
      ...timed("share", "share", "Share of the time of all exits", true),
      sort: (row) => timeOf(row, "time", ns),
      value: () => null,
      cell: (row) => [share(timeOf(row, "time", ns), total)],
    },
    {
      ...text("parts", "who pays", "What the time is made of", () => null, true),
      sort: (row) => timeOf(row, "user", ns),
      cell: (row) => [partsBar(row, ns)],
    },
    {
      ...text("distribution", "distribution", "How long exits took, on a logarithmic scale that all rows share", () => null, true),
      sort: (row) => timeOf(row, "p50", ns),
      cell: (row) => [sparkline(histograms.get(row) ?? new Map(), range, perOctave, row, ns)],
    },
    timed("min", "min", "The shortest"),
    timed("p50", "p50", "Half are done by then", true),
    timed("p90", "p90", "Nine in ten are done by then"),
    timed("p99", "p99", "99 in a hundred are done by then", true),
    timed("p999", "p99.9", "999 in a thousand are done by then"),
    timed("max", "max", "The longest", true),
    timed("mean", "mean", "Arithmetic mean"),
    timed("sd", "sd", "Sample standard deviation"),
    number("relative_error", "± mean", "Standard error of the mean, relative to it", (row) => row.relative_error, (value) => share(value, value === null ? null : 1)),
    timed("kernel", "kernel", "The host's kernel, with the switch out of the guest and back"),
    timed("user", "user", "user space"),
    timed("user_and_return", "user + return", "User space and the way back, where that was not recorded by itself"),
    timed("off_cpu", "off CPU", "Off the CPU, whatever for"),
    timed("off_cpu_runnable", "run queue", "Runnable, without a CPU: woken and not yet scheduled, or preempted"),
    timed("off_cpu_blocked", "blocked", "Off the CPU, waiting for something"),
    timed("halt_poll", "halt poll", "Polling for work before giving up the CPU"),
    timed("before_exit", "before exit", "Host work seen before kvm_exit"),
    timed("guest", "guest", "Time the guest ran before these exits"),
    number("handled_kernel", "by kernel", "Handled by the host's kernel alone", (row) => row.handled.kernel, count),
    number("handled_user", "by user", "Handled in user space", (row) => row.handled.user, count),
    number("handled_l1", "by level 1", "Handed on to the guest that runs the nested one", (row) => row.handled.l1, count),
    number("dropped", "dropped", "Left out of the times: events were lost in them", (row) => row.dropped, count),
    text("source", "recording", "The recording", (row) => row.source, report.sources.length > 1),
  ];
}

function reason(): Column {
  return {
    ...text("reason", "reason", "The kernel's name of the reason", (row) => row.reason, true),
    cell: (row, focus) => [
      el("button", { type: "button", class: "reason", onclick: focus, title: "Show only these in all figures" }, row.reason ?? NOT_RECORDED),
      row.waiting ? el("small", {}, " waits") : "",
    ],
  };
}

function text(key: string, title: string, hint: string, of: (row: ExitRow) => string | null, main = false): Column {
  return { key, title, hint, main, text: true, sort: of, value: of, cell: (row) => [of(row) ?? notRecorded()] };
}

function number(
  key: string,
  title: string,
  hint: string,
  of: (row: ExitRow) => Known,
  show: (value: Known) => string,
  main = false,
): Column {
  return {
    key,
    title,
    hint,
    main,
    text: false,
    sort: of,
    value: (row) => (of(row) === null ? null : String(of(row))),
    cell: (row) => [of(row) === null ? notRecorded() : show(of(row))],
  };
}

function notRecorded(): HTMLElement {
  return el("span", { class: "missing", title: "not recorded", role: "img", "aria-label": "not recorded" }, NOT_RECORDED);
}

const BAR: [string, string, string][] = [
  ["exit_kernel", "kernel", "kernel"],
  ["exit_user", "user space", "user"],
  ["exit_user", "user space + return", "user_and_return"],
  ["waiting", "run queue", "off_cpu_runnable"],
  ["blocked", "blocked", "off_cpu_blocked"],
  ["halt_poll", "halt polling", "halt_poll"],
];

/** The parts of a row's time as a bar; its words name them. */
function partsBar(row: ExitRow, ns: boolean): HTMLElement {
  const whole = timeOf(row, "time", ns);
  const parts = BAR.map(([state, title, field]) => ({ state, title, value: timeOf(row, field, ns) }));
  if (timeOf(row, "off_cpu_runnable", ns) === null) {
    parts.push({ state: "blocked", title: "off the CPU", value: timeOf(row, "off_cpu", ns) });
  }
  const there = parts.filter((part) => part.value !== null && part.value > 0);
  const words = there.map((part) => `${part.title} ${time(part.value, ns)} (${share(part.value, whole, 1)})`).join("\n");
  const segments = there.map((part) => el("span", { style: `flex: ${part.value} 0 0; background: var(${variableOf(part.state)})` }));
  return el("div", { class: "bar small", role: "img", "aria-label": words || "no time", title: words }, ...segments);
}
