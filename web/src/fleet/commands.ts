// The commands that open a session's report, for a shell: paths come from recordings and are quoted, whatever is in them.

/** How a simulated session names the recording that its exits are like. */
const SIMULATED = "simulated: ";

/** Hashes stand in place of paths in lakes with pseudonyms. */
const PSEUDONYM = /^p-[0-9a-f]{32}$/;

export interface Source {
  paths: string[];
  isSimulated: boolean;
}

/** Where a session's recordings are; null: that is not known, or has characters that no command should have. */
export function sourceOf(uri: string | null): Source | null {
  if (!uri || /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/u.test(uri)) return null;
  const isSimulated = uri.startsWith(SIMULATED);
  const paths = uri.slice(isSimulated ? SIMULATED.length : 0).split(" ").filter((path) => path !== "");
  return paths.length === 0 || paths.some((path) => PSEUDONYM.test(path)) ? null : { paths, isSimulated };
}

/** A word of a command. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) && !word.startsWith("-") ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Paths as arguments: none of them is an option. */
function words(paths: string[]): string {
  return paths.map((path) => quoted(path.startsWith("-") ? `./${path}` : path)).join(" ");
}

/** The name of a page of a host and a day. */
function pageName(host: string, date: string | null): string {
  const plain = [host, date ?? ""].join("-").replace(/[^\w.-]+/g, "_").replace(/^[-.]+|[-.]+$/g, "");
  return `${plain.slice(0, 100) || "session"}.html`;
}

/** Writes the report of a session. */
export function reportCommand(source: Source, host: string, date: string | null): string {
  return `hyperscope report ${words(source.paths)} -o ${quoted(pageName(host, date))}`;
}

/** Writes the report of a session of B, compared with one of A; null where that is of several files: a run is one. */
export function compareCommand(a: Source, b: Source, host: string): string | null {
  if (a.paths.length > 1) return null;
  return `hyperscope report ${words(b.paths)} --baseline ${words(a.paths)} -o ${quoted(pageName(host, "compared"))}`;
}
