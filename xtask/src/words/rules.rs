//! The refused words: what each one is called instead, and what is exempt.

/// Where a rule looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Identifiers, strings, comments and documents.
    Everywhere,
    /// Identifiers in code only: in a sentence the word may have its usual meaning.
    Identifiers,
}

/// Words that are refused, and the ones to use.
#[derive(Debug)]
pub(super) struct Rule {
    /// One word, or several that follow each other, in lower case.
    pub(super) words: &'static [&'static str],
    pub(super) scope: Scope,
    /// What to write.
    pub(super) instead: &'static str,
}

const fn everywhere(words: &'static [&'static str], instead: &'static str) -> Rule {
    Rule { words, scope: Scope::Everywhere, instead }
}

const fn identifier(words: &'static [&'static str], instead: &'static str) -> Rule {
    Rule { words, scope: Scope::Identifiers, instead }
}

/// All rules. An identifier is split into its words first: `ToldSink` and `told_by` both have "told".
pub(super) const RULES: &[Rule] = &[
    everywhere(&["told"], "reported, recorded, sent, said, known"),
    everywhere(&["untold"], "unreported, not recorded"),
    everywhere(&["tell"], "report, record, send, say, show; `tell apart` may stay"),
    everywhere(&["tells"], "reports, records, sends, says, shows; `tells apart` may stay"),
    everywhere(&["anew"], "again, from the start"),
    everywhere(&["beside"], "next to, with, as well as"),
    everywhere(&["senseless"], "malformed, invalid"),
    everywhere(&["so", "many"], "`n`, a number of, this many"),
    everywhere(&["as", "it", "must", "be"], "as expected, ok"),
    everywhere(&["as", "they", "must", "be"], "as expected"),
    identifier(&["moment"], "event"),
    identifier(&["moments"], "events"),
    identifier(&["turn"], "cycle"),
    identifier(&["turns"], "cycles"),
    identifier(&["stretch"], "interval"),
    identifier(&["stretches"], "intervals"),
    identifier(&["doing"], "activity"),
    identifier(&["manner"], "options"),
    identifier(&["awaited"], "pending"),
    identifier(&["going"], "status, progress"),
    identifier(&["door"], "acceptor"),
    identifier(&["doors"], "acceptors"),
];

/// `tell` and `told` are fine where this word follows within [`MAX_BETWEEN`] words.
pub(super) const APART: &str = "apart";

/// Words between `tell` and `apart`.
pub(super) const MAX_BETWEEN: usize = 10;

/// The unit of microseconds is `us`, as docs/glossary.md has it: these are refused everywhere.
pub(super) const MICRO: &[char] = &['\u{b5}', '\u{3bc}'];

/// Nouns that outputs count: "1 exits" is refused in expected outputs and documents.
pub(super) const PLURALS: &[&str] = &[
    "bytes",
    "calls",
    "cpus",
    "events",
    "exits",
    "files",
    "frames",
    "guests",
    "hosts",
    "hypercalls",
    "machines",
    "pages",
    "paths",
    "records",
    "requests",
    "rows",
    "runs",
    "samples",
    "threads",
    "vcpus",
    "violations",
    "vms",
    "windows",
];

/// Text that is left out of the check wherever it stands, with the reason.
pub(super) const FROZEN: &[(&str, &str)] = &[
    ("senseless_bytes", "a field of session.json and of docs/formats/session.schema.json"),
    ("--cpus 1`", "a command line, not a count"),
];

/// Files and folders that are left out, with the reason.
pub(super) const EXEMPT: &[(&str, &str)] = &[
    ("xtask/src/words", "has the words that it refuses"),
    ("xtask/src/words.rs", "the same"),
    ("web/dist", "built from web/src"),
    ("docs/images", "drawn by the product"),
    ("fixtures", "recordings; README.md and PROVENANCE.toml are read"),
    ("crates/cli/tests/inputs", "small recordings"),
    ("fuzz/corpus", "mutated input"),
    ("fuzz/crashes", "input that once broke a reader"),
    ("fuzz/seeds", "input to begin with"),
];
