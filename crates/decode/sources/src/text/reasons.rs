//! Exit reasons of a text: names that get numbers.

use std::collections::HashMap;

use super::known;

/// Maximum names of reasons: architectures have a few hundred.
const MAX_REASONS: usize = 1024;
/// Flag in the numbers of reasons of waiting exits.
pub const TEXT_REASON_WAITS: u64 = 1 << 32;

/// Names of reasons in order of appearance.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    names: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Reasons {
    /// Adds a name if it is new.
    pub(super) fn add(&mut self, name: &str) {
        if self.numbers.contains_key(name) || self.names.len() >= MAX_REASONS {
            return;
        }
        // 0 stands for an unreadable reason.
        let number = self.names.len() as u64 + 1;
        let waits = if known::waits(name) { TEXT_REASON_WAITS } else { 0 };
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number | waits);
    }

    /// The number of a name; 0 if it has none.
    pub(super) fn number(&self, name: &str) -> u64 {
        self.numbers.get(name).copied().unwrap_or(0)
    }

    /// All names in the format of `__print_symbolic`.
    pub(super) fn symbols(&self) -> String {
        let is_plain = |c: char| matches!(c, ' '..='~') && c != '"' && c != '\\';
        let named = |name: &String| {
            let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '?' }).collect();
            format!(", {{ {:#x}, \"{plain}\" }}", self.number(name))
        };
        "{ 0, \"not readable\" }".to_owned() + &self.names.iter().map(named).collect::<String>()
    }
}
