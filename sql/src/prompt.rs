//! Reads queries from a prompt or a pipe, one after the other.

use std::io::{self, BufRead, IsTerminal, Write};

/// The prompts before a query, and before its further lines.
const PROMPTS: [&str; 2] = ["hyperscope> ", "         -> "];

/// Reads statements from standard input.
#[derive(Debug)]
pub(crate) struct Prompt {
    is_terminal: bool,
    /// Input after the last statement.
    buffer: String,
}

impl Prompt {
    /// Prints an introduction on a terminal.
    pub(crate) fn new() -> Self {
        let is_terminal = io::stdin().is_terminal();
        if is_terminal {
            printable::print_message(format_args!(
                "\\d lists tables, \\d TABLE its columns, @NAME asks a question of --list, .explain QUERY; shows its plan, \\q ends"
            ));
        }
        Self { is_terminal, buffer: String::new() }
    }

    /// Whether input is a pipe: then an error ends the program, because no user can correct it.
    pub(crate) fn is_pipe(&self) -> bool {
        !self.is_terminal
    }

    /// The next statement; `None` after the last.
    ///
    /// # Errors
    /// When input can't be read.
    pub(crate) fn next(&mut self) -> io::Result<Option<String>> {
        let mut input = io::stdin().lock();
        loop {
            self.show(usize::from(!self.buffer.trim().is_empty()))?;
            let mut line = String::new();
            let read = input.read_line(&mut line)?;
            self.buffer.push_str(&line);
            if read > 0 && !is_whole(&self.buffer) {
                continue;
            }
            let text = std::mem::take(&mut self.buffer);
            match text.trim() {
                "" if read == 0 => return Ok(None),
                "" => {}
                text if is_end(text) => return Ok(None),
                text => return Ok(Some(text.to_owned())),
            }
        }
    }

    fn show(&self, prompt: usize) -> io::Result<()> {
        if !self.is_terminal {
            return Ok(());
        }
        let mut err = io::stderr().lock();
        err.write_all(PROMPTS.get(prompt).unwrap_or(&"").as_bytes())?;
        err.flush()
    }
}

fn is_end(text: &str) -> bool {
    matches!(text.trim(), "\\q" | "quit" | "exit")
}

/// Whether a statement is complete: SQL ends with a semicolon.
fn is_whole(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text.ends_with(';') || text.starts_with(['\\', '@']) || is_end(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_goes_on_until_its_semicolon() {
        for statement in ["SELECT 1;", "\\d exits", "@states", "", "\\q", "quit"] {
            assert!(is_whole(statement), "{statement}");
        }
        assert!(!is_whole("SELECT 1\nFROM exits"));
    }
}
