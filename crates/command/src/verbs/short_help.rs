//! What `-h` of a verb shows: at most ten options, and that `--help` shows the rest.

use clap::Command;

/// Options that many verbs have and few runs need.
const RARE: [&str; 4] = ["max-memory", "max-spool", "method", "name"];

/// The options in `-h` of commands that would show more than ten without those in [`RARE`].
const SHOWN: &[(&str, &[&str])] = &[
    ("ab", &["lab", "a", "b", "runs", "until", "metric", "exits", "format", "output"]),
    ("align", &["method", "format", "output", "from", "to", "vm", "vcpu"]),
    ("bench channels", &["channel", "rounds", "seconds", "rate", "offline", "format", "output"]),
    (
        "bench exits",
        &["vm", "lab", "levels", "ablate", "kind", "runs", "offline", "format", "output"],
    ),
    (
        "bench tracers",
        &["tracer", "subject", "rounds", "iterations", "levels", "offline", "format", "output"],
    ),
    ("boot", &["until", "down", "top", "format", "output", "from", "to", "vm", "vcpu"]),
    ("calls", &["sort", "top", "tree", "depth", "flame", "format", "output", "vm", "vcpu"]),
    ("diff", &["all", "min-effect", "fail-if", "flame", "format", "output", "from", "to", "vm"]),
    ("events", &["event", "cpu", "pid", "where", "format", "output", "from", "to", "vm"]),
    ("export", &["format", "event", "cpu", "tables", "output", "from", "to", "vm", "vcpu"]),
    (
        "fleet diff",
        &["a", "b", "control", "strata", "metric", "all", "fail-if", "format", "output"],
    ),
    ("fleet since", &["where", "strata", "metric", "step", "fail-if", "format", "output"]),
    ("lab fetch", &["levels", "name", "arch", "kernel", "modules", "guest-kernel", "root"]),
    (
        "lab up",
        &["levels", "name", "arch", "kernel", "cpus", "memory", "append", "share", "offline"],
    ),
    ("lake add", &["event", "pseudonymize", "tables", "details", "host", "begun", "label"]),
    ("listen", &["event", "profile", "tracer", "function", "sample", "output", "for", "guests"]),
    ("profile", &["by", "top", "threads", "flame", "pprof", "format", "output", "vm", "vcpu"]),
    ("record", &["event", "profile", "kprobe", "flight", "vm", "guest", "sample", "output", "for"]),
    ("report", &["output", "serve", "port", "title", "baseline", "from", "to", "vm", "vcpu"]),
    ("sensitivity", &["vm", "reason", "vcpu", "delays", "progress", "for", "format", "output"]),
    ("sql", &["list", "engine", "format", "output", "from", "to", "vm", "tables", "label"]),
    ("top", &["once", "by", "rows", "guest", "steal", "interval", "for", "format", "record"]),
];

/// The command with the `-h` of each of its verbs shortened.
pub(super) fn shortened(command: Command) -> Command {
    command.mut_subcommands(|verb| shorter(verb, ""))
}

fn shorter(verb: Command, before: &str) -> Command {
    let path = format!("{before}{}", verb.get_name());
    let shown = SHOWN.iter().find(|(name, _)| *name == path).map(|(_, options)| *options);
    let is_rare = |option: &str| match shown {
        Some(options) => !options.contains(&option),
        None => RARE.contains(&option) && !path.starts_with("lab"),
    };
    let mut hidden = 0;
    let verb = verb.mut_args(|arg| {
        let hides = !arg.is_hide_set() && arg.get_long().is_some_and(is_rare);
        hidden += usize::from(hides);
        if hides { arg.hide_short_help(true) } else { arg }
    });
    let verb = if hidden == 0 { verb } else { with_rest(verb, &path, hidden) };
    verb.mut_subcommands(|part| shorter(part, &format!("{path} ")))
}

/// The verb with a last line in `-h` that names the way to its other options.
fn with_rest(verb: Command, path: &str, hidden: usize) -> Command {
    let options = if hidden == 1 { "option" } else { "options" };
    let rest = format!("{hidden} more {options}: hyperscope {path} --help");
    match verb.get_after_long_help().or(verb.get_after_help()).cloned() {
        Some(after) => verb.after_help(format!("{after}\n\n{rest}")).after_long_help(after),
        // An empty text would be replaced by that of `-h`, so `--help` repeats its own last line.
        None => verb.after_help(rest).after_long_help("These are all options."),
    }
}
