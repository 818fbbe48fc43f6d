//! The verbs in `hyperscope --help`, grouped by purpose.

use clap::Command;

/// Verbs by purpose, in the order of the help. Each verb is in one group.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Look at a recording",
        &[
            "info",
            "exits",
            "nested",
            "advice",
            "cpu",
            "profile",
            "irqs",
            "virtio",
            "vmm",
            "path",
            "critical",
            "boot",
            "calls",
            "hypertrace",
            "events",
        ],
    ),
    ("Compare and pass on", &["diff", "report", "export", "lake", "sql", "fleet", "align"]),
    ("Record", &["record", "flight", "listen", "serve"]),
    ("For guests", &["top", "mark", "publish", "keys"]),
    ("Try and measure", &["ab", "sensitivity", "lab", "bench"]),
    ("Shell", &["completions", "man", "help"]),
];

/// The command with its verbs listed by group.
pub(crate) fn grouped(command: Command) -> Command {
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n{}\nOptions:\n{{options}}{{after-help}}",
        list(&command)
    );
    command.help_template(template)
}

/// The groups, each verb with what it does.
fn list(command: &Command) -> String {
    let width = GROUPS.iter().flat_map(|(_, verbs)| verb_widths(verbs)).max().unwrap_or(0);
    let mut list = String::new();
    for (title, verbs) in GROUPS {
        list.push_str(&format!("\n{title}:\n"));
        for verb in *verbs {
            list.push_str(&format!("  {verb:width$}  {}\n", about(command, verb)));
        }
    }
    list
}

fn verb_widths<'v>(verbs: &'v [&str]) -> impl Iterator<Item = usize> + 'v {
    verbs.iter().map(|verb| verb.len())
}

fn about(command: &Command, verb: &str) -> String {
    match command.find_subcommand(verb).and_then(Command::get_about) {
        Some(about) => about.to_string(),
        // clap adds this verb when it parses.
        None => "Print this message or the help of a verb".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;

    #[test]
    fn each_verb_is_in_one_group() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        let command = crate::args::Cli::command();
        let all: BTreeSet<&str> =
            command.get_subcommands().map(Command::get_name).chain(["help"]).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), all);
        assert_eq!(grouped.len(), all.len());
    }
}
