// The JSON part of the page, `hyperscope.report/1`: see docs/formats/report.md.

import type { ProfileInfo } from "./profile";
import type { EachRequestInfo } from "./each_request";
import type { BootDocument } from "./boot";
import type { StateTimes } from "./vcpu_states";

export interface Piece {
  text: string;
  strong: boolean;
}

export interface Link {
  section: string;
  vm: string | null;
  level: number | null;
  reason: string | null;
}

export interface Finding {
  weight: "info" | "notice" | "warning";
  pieces: Piece[];
  link: Link | null;
  /** Its cause, and what usually helps. */
  advice: AdviceRow[];
}

/** A piece of advice, as in `hyperscope advice`. */
export interface AdviceRow {
  rule: string;
  vm: string;
  title: string;
  why: string;
  helps: string[];
  evidence: { what: string; value: number; unit: "count" | "ns" | "share" | "ratio" }[];
  saving_at_least_ns: number;
  saving_at_most_ns: number;
  saving_of: string;
  checked: string;
}

/** A value that was not recorded is null. */
export type Known = number | null;

export interface ExitRow {
  source: string;
  vm: string | null;
  level: number | null;
  isa: string | null;
  reason: string | null;
  code: number | string | null;
  handled: { kernel: Known; user: Known; l1: Known };
  waiting: boolean;
  count: number;
  paired: number;
  relative_error: Known;
  dropped: number;
  /** Times, as `NAME_ns`, or `NAME_cycles` where the recording has no nanoseconds. */
  [time: string]: unknown;
}

/** The definition of a column of `hyperscope exits`: its name in CSV, its heading, its meaning. */
export interface ColumnDefinition {
  name: string;
  title: string;
  unit: "text" | "number" | "count" | "ratio" | "flag" | "time";
  help: string;
}

export interface Losses {
  events_lost: number;
  uncounted_losses: number;
  pages_damaged: number;
  /** Events that the kernel counted but the recording lacks. */
  events_missing: number;
  pairs_dropped: number;
  /** Whether the recording shows how much is missing, including at its end. */
  known: boolean;
}

export interface RecorderCost {
  cpu_ns: number;
  available_ns: number;
  agents: { guest: string; cpu_ns: Known; wakeups: Known }[];
}

export interface ExitsDocument {
  sources: string[];
  span_ns: Known;
  span_cycles?: number;
  losses: Losses;
  recorder_cost: RecorderCost | null;
  vms: { source: string; vm: string; pid: Known; vcpus: number; comm: string | null }[];
  rows: ExitRow[];
}

export interface NestedRow {
  source: string;
  vm: string;
  reason: string;
  code: number | string;
  count: number;
  reflected: number;
  handled_by_host: number;
  injected_as: { reason: string; count: number }[];
  round_trips: number;
  unfinished: number;
  ancillary: { reason: string; code: number | string; count: number; per_exit: Known; [time: string]: unknown }[];
  factor: Known;
  [time: string]: unknown;
}

export interface NestedDocument {
  levels: { source: string; vm: string; level1: number; level2: number }[];
  rows: NestedRow[];
}

export interface AlignRow {
  source: string;
  vm: string;
  vcpu: number;
  guest_cpu: number;
  method: string;
  drift_ppb: number;
  events: number;
  violations: number;
  [time: string]: unknown;
}

export interface AlignDocument {
  guests: {
    vm: string;
    host: string;
    guest: string;
    method: string | null;
    checked: boolean;
    methods: { method: string; usable: boolean; reason: string | null; events: number; violations: number; [time: string]: unknown }[];
  }[];
  rows: AlignRow[];
}

export interface HeatGroupInfo {
  source: string;
  vm: string;
  level: number;
  reason: string;
  code: number | string;
  cells: number;
}

export interface HeatInfo {
  columns_in: string;
  from_ns: number;
  column_ns: number;
  columns: number;
  rows_per_octave: number;
  groups: HeatGroupInfo[];
}

/** Exits of one vCPU with the same level, reason and code. */
export interface ExitGroupInfo {
  vm: string;
  vcpu: number;
  level: number;
  isa: string;
  reason: string;
  code: number | string | null;
  exits: number;
}

/** All exits of a recording; left out if there were too many. */
export interface EachExitInfo {
  source: string;
  columns_in: string;
  from_ns: number;
  off_cpu_recorded: boolean;
  halt_poll_recorded: boolean;
  groups: ExitGroupInfo[];
  /** Details of exits, and positions of their guests. */
  values: string[];
}

export interface LaneInfo {
  columns_in: string;
  machine: string;
  kind: "cpu" | "vcpu" | "thread" | "task" | "call";
  name: string;
  vm: string | null;
  /** Depth in the stack, for a lane of calls. */
  depth: Known;
  /** Whether its thread or task ran less than those shown by default. */
  quiet: boolean;
  spans: number;
}

export interface TimelineInfo {
  spans: number;
  merged_below_ns: number;
  lanes_left_out: number;
  states: { key: string; title: string }[];
  labels: string[];
  lanes: LaneInfo[];
}

export interface ArrowsInfo {
  columns_in: string;
  arrows: number;
  kinds: string[];
  left_out: number;
  left_out_below_ns: number;
  without_lane: number;
  /** By path, example and step: the index of its lane. */
  request_lanes: (number | null)[][][];
}

/** The waits of a task's threads. */
export interface CriticalDocument {
  task: string;
  waited_ns: number;
  parts: { machine: string; thread: string; state: string; what: string; time_ns: number; count: number }[];
  others_ns: number;
  /** The longest waits; lanes are indices into those of the timeline. */
  waits: CriticalWait[];
}

export interface CriticalWait {
  machine: string;
  tid: number;
  from_ns: number;
  to_ns: number;
  lane: number | null;
  cut: boolean;
  steps: { from_ns: number; to_ns: number; machine: string; thread: string; what: string; lane: number | null }[];
}

/** A request of a path, step by step. */
export interface PathExample {
  of: "p50" | "p99" | "worst";
  total_ns: number;
  steps: { hop: number | null; ts_ns: number; what: string; on: string; source: string | null; cpu: number; tid: Known }[];
}

export interface PathDocument {
  paths: {
    name: string;
    vm?: string | null;
    count: number;
    total: { p50_ns: Known; p90_ns: Known; p99_ns: Known };
    hops: { from: string; to: string; on: string; count?: number; p50_ns: Known; p90_ns: Known; p99_ns: Known }[];
    example?: { hop?: number | null; ts_ns: number; what: string; on: string }[];
    examples?: PathExample[];
  }[];
}

export interface CpuDocument {
  span_ns: number;
  vms: ({ source: string; vm: string } & StateTimes)[];
  vcpus: ({ vm: string; vcpu: number; time_ns: number } & StateTimes)[];
  threads: { vm: string | null; part: string; tid: number; name: string; cpu_ns: number; guest_idle_ns: Known; halt_poll_ns: Known; busy_ns: number }[];
  tasks: { source: string; vm: string | null; tid: number; name: string; time_ns: number; ran_ns: number; exits_ns: number; stolen_ns: number }[];
  cpus: { cpu: number; vcpu_ns: number; vmm_ns: number; vhost_ns: number; kvm_ns: number; other_ns: number; idle_ns: number; unknown_ns: number }[];
}

export interface HandlerRow {
  machine: string;
  kind: "irq" | "vector" | "ipi" | "softirq";
  number: Known;
  name: string | null;
  count: number;
  placed: number;
  delayed: number;
  share_of_cpu: Known;
  /** Times, as `NAME_ns`, or `NAME_cycles` where the recording has no nanoseconds. */
  [time: string]: unknown;
}

/** Handlers of interrupts: the longest-running ones of each machine. */
export interface IrqsDocument {
  machines: { machine: string; span_ns: Known; recorded: boolean }[];
  handlers: HandlerRow[];
  /** One for each handler: runs shorter than a power of two, and at least half of it. */
  histograms: { below: { ns: number; count: number }[] }[];
}

export interface CalledFunction {
  name: string | null;
  module: string | null;
  address: string;
  count: number;
  callers: { function: string; count: number }[];
  /** Times, as `NAME_ns`, or `NAME_cycles` where the recording has no nanoseconds. */
  [time: string]: unknown;
}

export interface CallNode {
  depth: number;
  name: string;
  count: number;
  [time: string]: unknown;
}

export interface CallsSource {
  path: string;
  machine: string;
  tracer: "function" | "function_graph" | null;
  count: number;
  without_call: number;
  without_return: number;
  functions: CalledFunction[];
  tree: CallNode[];
  [time: string]: unknown;
}

export interface DiffRow {
  vm: string | null;
  level: number | null;
  reason: string | null;
  metric: string;
  a: Known;
  b: Known;
  ratio: Known;
  /** The basis of ci_low and ci_high: the ratio, otherwise the difference. */
  interval_of?: string | null;
  ci_low: Known;
  ci_high: Known;
  p_value: Known;
  p_adjusted?: Known;
  significant: boolean | null;
}

export interface Report {
  schema: string;
  title: string;
  generator: string;
  sources: string[];
  nanoseconds: boolean;
  /** Decimal digits: the clock may exceed a double's exact range. */
  origin: string;
  length_ns: number;
  findings: Finding[];
  notes: { source: string; missing: string[] }[];
  exits: ExitsDocument;
  exits_columns: ColumnDefinition[];
  nested: NestedDocument | null;
  align: AlignDocument | null;
  align_summaries: string[];
  heat: HeatInfo | null;
  each_exit: EachExitInfo[];
  timeline: TimelineInfo;
  arrows: ArrowsInfo;
  cpu: CpuDocument;
  irqs: IrqsDocument | null;
  profile: ProfileInfo | null;
  calls: { sources: CallsSource[] } | null;
  path: PathDocument | null;
  each_request: EachRequestInfo | null;
  critical: CriticalDocument | null;
  boot: BootDocument | null;
  diff: { a?: string[]; b?: string[]; notes?: string[]; rows: DiffRow[] } | null;
  /** Whether the page can request more data from its server. */
  served: boolean;
}

export const SCHEMA = "hyperscope.report/1";

/** Reads the report from the page; throws an error for the reader if there is none. */
export function readReport(page: Document): Report {
  const element = page.getElementById("hyperscope-report");
  if (!element?.textContent) throw new Error("This page contains no report: create one with hyperscope report FILE -o report.html.");
  const report = JSON.parse(element.textContent) as Report;
  if (report.schema !== SCHEMA) throw new Error(`This page can't show ${report.schema}.`);
  return report;
}

/** A time of a row, in nanoseconds or ticks; null: not recorded. */
export function timeOf(row: { [key: string]: unknown }, name: string, nanoseconds: boolean): Known {
  const value = row[`${name}_${nanoseconds ? "ns" : "cycles"}`];
  return typeof value === "number" ? value : null;
}
