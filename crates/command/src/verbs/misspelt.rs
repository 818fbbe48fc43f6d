//! Advice for command lines that clap does not understand.

use std::path::Path;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{Program, command};

/// Verbs with free-form arguments: text may look like an option.
const TAKE_TEXT: [&str; 3] = ["mark", "sql", "record"];

/// The error, with fitting advice.
pub(super) fn explained<P: Program>(mut error: Error) -> Error {
    let word = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    };
    match (error.kind(), word) {
        (ErrorKind::InvalidSubcommand, Some(word)) => instead_of::<P>(&word).unwrap_or(error),
        (ErrorKind::UnknownArgument, _) => {
            if !takes_text() {
                // clap would suggest to pass the option as a value after `--`, but these verbs take no text.
                let _ = error.remove(ContextKind::Suggested);
            }
            error
        }
        _ => error,
    }
}

/// The suggestion for a first word that is not a verb.
fn instead_of<P: Program>(word: &str) -> Option<Error> {
    let text = match word {
        "version" => format!("{} --version prints the version", P::INSTALLED.name),
        file if Path::new(file).exists() => format!(
            "{word} is a file, not a verb: choose a verb for it, such as hyperscope info {word}, hyperscope exits {word} or hyperscope report {word}"
        ),
        file if looks_like_a_file(file) => {
            format!("{word} is neither a verb nor a file; hyperscope --help lists all verbs")
        }
        _ => return None,
    };
    Some(command::<P>().error(ErrorKind::InvalidSubcommand, printable::line(&text)))
}

fn looks_like_a_file(word: &str) -> bool {
    let has_ending = [".dat", ".data", ".hscope", ".gz", ".zst", ".txt"].iter();
    word.contains('/') || has_ending.into_iter().any(|ending| word.ends_with(ending))
}

fn takes_text() -> bool {
    std::env::args().nth(1).is_some_and(|verb| TAKE_TEXT.contains(&verb.as_str()))
}
