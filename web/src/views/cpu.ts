// The users of the CPUs: states of vCPUs, threads that serve VMs, tasks of guests, and the threads on the host's CPUs.

import { variableOf } from "../colours";
import { greatest } from "../data/greatest";
import type { CpuDocument } from "../data/report";
import { statesOf } from "../data/vcpu_states";
import { el, plainTable, scrolled, section, tableBehind } from "../dom";
import type { Context } from "../focus";
import { count, share, time } from "../format";
import { bar, type Part } from "./bar";

/** Max rows of a table; the JSON of `hyperscope cpu` has all. */
const MOST_ROWS = 12;

/** Max bars of a figure. */
const MOST_BARS = 256;

export function cpu({ report }: Context): HTMLElement | null {
  const document_ = report.cpu;
  // For a clock without nanoseconds, the shares are in the tables of exits.
  if (!document_ || !report.nanoseconds || document_.vcpus.length + document_.cpus.length === 0) return null;
  return section(
    "cpu",
    "Who used the CPUs",
    el(
      "div",
      { class: "payers" },
      document_.vcpus.length > 0 ? vcpus(document_, report.timeline.states) : null,
      document_.cpus.length > 0 ? cpus(document_) : null,
    ),
    serving(document_),
    tasks(document_),
  );
}

function vcpus(document_: CpuDocument, states: { key: string; title: string }[]): HTMLElement {
  const titles = new Map(states.map((state) => [state.key, state.title]));
  const bars = document_.vcpus.map((vcpu) => {
    const parts = statesOf(vcpu, true).map(([key, value]) => {
      return { title: titles.get(key) ?? key.replaceAll("_", " "), variable: variableOf(key), value };
    });
    return { name: `${vcpu.vm}, vCPU ${vcpu.vcpu}`, whole: vcpu.time_ns, parts };
  });
  return figure("What each vCPU did", "vCPU", bars);
}

function cpus(document_: CpuDocument): HTMLElement {
  const bars = document_.cpus.map((one) => {
    const parts: Part[] = [
      { title: "vCPUs", variable: "--guest", value: one.vcpu_ns },
      { title: "VMM threads", variable: "--user", value: one.vmm_ns },
      { title: "vhost", variable: "--halt-poll", value: one.vhost_ns },
      { title: "KVM's threads", variable: "--kernel", value: one.kvm_ns },
      { title: "other threads", variable: "--other", value: one.other_ns },
      { title: "idle", variable: "--halted", value: one.idle_ns },
      { title: "unknown", variable: "--unknown", value: one.unknown_ns },
    ];
    return { name: `CPU ${one.cpu}`, whole: parts.reduce((all, part) => all + (part.value ?? 0), 0), parts };
  });
  return figure("Whose the host's CPUs were", "CPU", bars);
}

/**
 * One bar per row, with a common legend, and the table behind them; if there are many, those with the longest times.
 */
function figure(title: string, of: string, all: { name: string; whole: number; parts: Part[] }[]): HTMLElement {
  const { kept: bars, others } = greatest(all, MOST_BARS, (bar) => bar.whole);
  const cut = others > 0 ? `: the ${MOST_BARS} with most time; hyperscope cpu has ${count(others)} more` : "";
  const there = (part: Part) => bars.some((bar) => bar.parts.some((one) => one.title === part.title && (one.value ?? 0) > 0));
  const legend = (bars[0]?.parts ?? []).filter(there);
  const cell = (bar: (typeof bars)[number], title_: string) => bar.parts.find((part) => part.title === title_)?.value ?? null;
  return el(
    "figure",
    { class: "payer" },
    el("figcaption", {}, el("b", {}, title), cut),
    ...bars.map(row),
    el("ul", { class: "legend" }, ...legend.map((part) => el("li", {}, el("i", { style: `background: var(${part.variable})` }), part.title))),
    tableBehind("Table behind this figure", () =>
      plainTable(title, [of, "time", ...legend.map((part) => part.title)], bars.map((bar) => [bar.name, time(bar.whole), ...legend.map((part) => share(cell(bar, part.title), bar.whole))])),
    ),
  );
}

function row({ name, whole, parts }: { name: string; whole: number; parts: Part[] }): HTMLElement {
  return el("div", { class: "use" }, el("span", { class: "who" }, name), bar(name, parts, whole));
}

/** Threads of the host that serve VMs: their true use excludes their guests' idle time and polling. */
function serving(document_: CpuDocument): HTMLElement | null {
  const threads = document_.threads.filter((one) => one.vm !== null);
  if (threads.length === 0) return null;
  const rows = threads.slice(0, MOST_ROWS).map((one) => [
    `${one.vm}: ${one.name}-${one.tid}`, one.part, time(one.cpu_ns), time(one.guest_idle_ns), time(one.halt_poll_ns), time(one.busy_ns), share(one.busy_ns, document_.span_ns),
  ]);
  const titles = ["thread", "part", "CPU time", "guest idle", "halt poll", "true use", "of a CPU"];
  return table(`Threads of the host that serve VMs${more(threads.length)}`, titles, rows);
}

function tasks(document_: CpuDocument): HTMLElement | null {
  const busy = document_.tasks.filter((one) => one.tid !== 0);
  const rows = busy.slice(0, MOST_ROWS).map((one) => [
    `${one.vm ?? one.source}: ${one.name}-${one.tid}`, time(one.time_ns), time(one.ran_ns), time(one.exits_ns), time(one.stolen_ns),
  ]);
  if (rows.length === 0) return null;
  const titles = ["task", "as its guest counts", "ran truly", "in exits", "stolen"];
  return table(`Tasks of guests${more(busy.length)}`, titles, rows);
}

function more(all: number): string {
  return all > MOST_ROWS ? `: the first ${MOST_ROWS}; hyperscope cpu has all` : "";
}

function table(caption: string, titles: string[], rows: (string | number)[][]): HTMLElement {
  return scrolled(caption, plainTable(caption, titles, rows));
}
