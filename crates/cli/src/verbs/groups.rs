//! The verbs in `hyperscope --help`, grouped by purpose.

use clap::Command;

use super::Verb;

/// The verb that clap adds when it parses, at the end of the last group.
const HELP: &str = "help";

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
    let names = Verb::GROUPS.iter().flat_map(|(_, verbs)| *verbs);
    let width = names.map(|name| name.len()).max().unwrap_or(0);
    let mut list = String::new();
    for (title, verbs) in Verb::GROUPS {
        list.push_str(&format!("\n{title}:\n"));
        for name in *verbs {
            let name = name.to_lowercase();
            let about = command.find_subcommand(&name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            list.push_str(&format!("  {name:width$}  {about}\n"));
        }
    }
    list + &format!("  {HELP:width$}  Print this message or the help of a verb\n")
}
