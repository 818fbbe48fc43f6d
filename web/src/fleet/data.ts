// The data of a fleet's page: hyperscope.fleet_page/1, as docs/formats/fleet_page.schema.json describes it.

import type { Known } from "../data/report";

/** A selection of exits; without a reason: all except waiting exits. */
export interface Key {
  level: Known;
  isa: string | null;
  reason: string | null;
  waiting: boolean;
}

/** A row of `hyperscope fleet diff --format json`, without its hosts. */
export interface Row extends Key {
  stratum: string | null;
  metric: string;
  a: Known;
  b: Known;
  hosts_a: number;
  hosts_b: number;
  paired: number;
  ratio: Known;
  ci_low: Known;
  ci_high: Known;
  p_adjusted: Known;
  significant: boolean;
  went_away: boolean | null;
  shifted_with: string | null;
  finding: boolean;
  total_ratio: Known;
  total_low: Known;
  total_high: Known;
  carried_by: string[];
}

/** A change of `hyperscope fleet since --format json`, without its hosts. */
export interface Change extends Key {
  day: string;
  stratum_column: string | null;
  stratum: string | null;
  metric: string;
  before: number;
  after: number;
  ratio: number;
  ci_low: number;
  ci_high: number;
  hosts_compared: number;
  hosts_of_all: number;
  went_away: boolean;
  shifted_with: string | null;
  finding: boolean;
  carried_by: string[];
  shared: { name: string; value: string; carriers: number; others: number }[];
  came_with: { name: string; before: string; since: string; carriers: number; others: number }[];
}

export interface Side {
  condition: string;
  hosts: number;
  sessions: number;
  covered_ns: number;
}

export interface Session {
  session_id: string;
  date: string | null;
  kernel_release: string | null;
  source_uri: string | null;
}

export interface Host {
  host: string;
  stratum: string | null;
  control: boolean;
  /** The newest ones of each side, and their number. */
  a: Session[];
  b: Session[];
  sessions: [number, number];
}

/** Each host's values of a number. */
export interface Numbers {
  key: Key;
  metric: string;
  a: Known[];
  b: Known[];
}

export interface Outlier {
  host: string;
  key: Key;
  metric: string;
  of: "change" | "level";
  times: number;
  /** Null: the others are equal. */
  deviations: Known;
  peers: number;
}

/** A number of the typical host, by steps. */
export interface Curve {
  stratum_column: string | null;
  stratum: string | null;
  key: Key;
  metric: string;
  steps: number[];
  levels: number[];
}

export interface Fleet {
  schema: string;
  title: string;
  generator: string;
  diff: { a: Side; b: Side; paired: number; control: string | null; controls: number; strata: string; alpha: number; left_out: Record<string, number>; rows: Row[] };
  /** Indices of rows that form one finding. */
  findings: number[][];
  hosts: Host[];
  hosts_left_out: number;
  grid: Numbers[];
  outliers: Outlier[];
  outliers_left_out: number;
  since: { hosts: number; from_day: string | null; to_day: string | null; steps: number; changes: Change[] };
  since_findings: number[][];
  dates: string[];
  curves: Curve[];
}

export const ALL_EXITS: Key = { level: null, isa: null, reason: null, waiting: false };

/** An id of the exits. */
export function idOf({ level, isa, reason, waiting }: Key): string {
  return [level ?? "", isa ?? "", waiting ? "waiting" : "", reason ?? ""].join("/");
}

/** The exits in words. */
export function nameOf(key: Key): string {
  if (key.reason === null) return "all exits";
  return key.level === null || key.level === 1 ? key.reason : `${key.reason} (level ${key.level})`;
}

/** A short form of the same. */
export function shortNameOf(key: Key): string {
  return key.reason === null || key.level === null || key.level === 1 ? nameOf(key) : `${key.reason} L${key.level}`;
}

/** Reads the page's data. */
export function readFleet(document: Document): Fleet {
  const text = document.getElementById("hyperscope-fleet")?.textContent;
  if (!text) throw new Error("This page has no data. hyperscope fleet diff … LAKE -o page.html creates one with data.");
  const fleet = JSON.parse(text) as Fleet;
  if (fleet.schema !== "hyperscope.fleet_page/1") throw new Error(`This page cannot show data of the kind ${fleet.schema}.`);
  return fleet;
}
