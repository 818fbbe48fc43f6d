// The bar of a row of exits: the parts of its cost or, if that is unknown or the exits wait, of its time.

import { variableOf } from "../colours";
import { timeOf, type ExitRow } from "../data/report";
import { el } from "../dom";
import { share, time } from "../format";

export interface BarPart {
  state: string;
  title: string;
  value: number;
}

export interface RowParts {
  /** The total of the parts. */
  of: "cost" | "time";
  whole: number;
  parts: BarPart[];
  /** Next to the cost: waits, which use no CPU. */
  besides: BarPart[];
}

type Field = [state: string, title: string, field: string];

/** On a CPU. */
const PAID: Field[] = [
  ["exit_kernel", "kernel", "kernel"],
  ["exit_user", "user space", "user"],
];

/** Parts of the time only. */
const REST: Field[] = [
  ["exit_user", "user space + return", "user_and_return"],
  ["not_split", "not split", "not_split"],
  ["waiting", "run queue", "off_cpu_runnable"],
  ["blocked", "blocked", "off_cpu_blocked"],
  ["halt_poll", "halt polling", "halt_poll"],
];

/** The parts of a row's cost or time. */
export function partsOf(row: ExitRow, ns: boolean): RowParts {
  const present = (fields: Field[]) =>
    fields.flatMap(([state, title, field]) => {
      const value = timeOf(row, field, ns);
      return value !== null && value > 0 ? [{ state, title, value }] : [];
    });
  const rest = present(REST);
  if (timeOf(row, "off_cpu_runnable", ns) === null) rest.push(...present([["blocked", "off the CPU", "off_cpu"]]));
  const cost = row.waiting ? null : timeOf(row, "cost", ns);
  if (cost === null) return { of: "time", whole: timeOf(row, "time", ns) ?? 0, parts: [...present(PAID), ...rest], besides: [] };
  const parts = [...present([["before_exit", "before exit", "before_exit"]]), ...present(PAID)];
  return { of: "cost", whole: cost, parts, besides: rest };
}

/** The parts as a bar; its words name them. */
export function partsBar(row: ExitRow, ns: boolean): HTMLElement {
  const { of, whole, parts, besides } = partsOf(row, ns);
  const named = (part: BarPart) => `${part.title} ${time(part.value, ns)}`;
  const lines = [`${of} ${time(whole, ns)}`, ...parts.map((part) => `${named(part)} (${share(part.value, whole, 1)})`)];
  if (besides.length > 0) lines.push(`no part of the cost: ${besides.map(named).join(", ")}`);
  const segments = parts.map((part) => el("span", { style: `flex: ${part.value} 0 0; background: var(${variableOf(part.state)})` }));
  const words = lines.join("\n");
  return el("div", { class: "bar small", role: "img", "aria-label": words, title: words }, ...segments);
}
