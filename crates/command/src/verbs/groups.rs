//! The commands in `hyperscope --help`, grouped by the question that each answers.

use clap::Command;

use super::Program;

/// The command that clap adds at the end of the list when it parses.
const HELP: &str = "help";

/// Columns for the names of rarely used commands.
const WIDTH: usize = 78;

/// The command with its subcommands listed by group; the last group lists only names.
pub(super) fn grouped<P: Program>(command: Command) -> Command {
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n{}\nOptions:\n{{options}}{{after-help}}",
        list::<P>(&command)
    );
    command.help_template(template)
}

fn list<P: Program>(command: &Command) -> String {
    let Some(((rare_title, rare), common)) = P::GROUPS.split_last() else {
        return String::new();
    };
    let names = common.iter().flat_map(|(_, names)| *names);
    let width = names.map(|name| name.len()).max().unwrap_or(0);
    let mut list = String::new();
    for (title, names) in common {
        list.push_str(&format!("\n{title}:\n"));
        for name in *names {
            let name = name.to_lowercase();
            let about = command.find_subcommand(&name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            list.push_str(&format!("  {name:width$}  {about}\n"));
        }
    }
    list.push_str(&format!("\n{rare_title}, each with its own --help:\n"));
    let others = P::BECOMES.iter().flat_map(|program| program.verbs).map(|(name, _)| *name);
    list.push_str(&wrapped(rare.iter().copied().chain(others)));
    list + &format!("\n  {HELP:width$}  Print this message or the help of a command\n")
}

/// Names in alphabetical order, in lines of at most [`WIDTH`] columns.
fn wrapped<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut names: Vec<String> = names.map(str::to_lowercase).collect();
    names.sort_unstable();
    let mut lines = vec![String::new()];
    for name in names {
        let is_full = lines.last().is_some_and(|line| line.len() + name.len() + 2 > WIDTH);
        if is_full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str("  ");
            line.push_str(&name);
        }
    }
    lines.join("\n") + "\n"
}
