// Shell commands that open a session's report: paths come from recordings, and are always quoted.

/** Prefix of a simulated session's source: the recording that its exits were simulated from. */
const SIMULATED = "simulated: ";

/** Hashes replace paths in lakes with pseudonyms. */
const PSEUDONYM = /^p-[0-9a-f]{32}$/;

export interface Source {
  paths: string[];
  isSimulated: boolean;
}

/** The paths of a session's recordings; null: unknown, or with characters that are unsafe in a command. */
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

/** Paths as arguments, none of which can be taken for an option. */
function words(paths: string[]): string {
  return paths.map((path) => quoted(path.startsWith("-") ? `./${path}` : path)).join(" ");
}

/** The file name of the page for a host and a day. */
function pageName(host: string, date: string | null): string {
  const plain = [host, date ?? ""].join("-").replace(/[^\w.-]+/g, "_").replace(/^[-.]+|[-.]+$/g, "");
  return `${plain.slice(0, 100) || "session"}.html`;
}

/** The command that writes the report of a session. */
export function reportCommand(source: Source, host: string, date: string | null): string {
  return `hyperscope report ${words(source.paths)} -o ${quoted(pageName(host, date))}`;
}

/**
 * The command that writes the report of a session of B, compared with one of A; null if that has several files: a run
 * is one.
 */
export function compareCommand(a: Source, b: Source, host: string): string | null {
  if (a.paths.length > 1) return null;
  return `hyperscope report ${words(b.paths)} --baseline ${words(a.paths)} -o ${quoted(pageName(host, "compared"))}`;
}
