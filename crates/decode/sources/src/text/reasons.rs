//! Exit reasons of a text: names that numbers are given to.

use std::collections::HashMap;

use super::known;

/// Names of reasons, at most: architectures have some hundred.
const MAX_REASONS: usize = 1024;
/// Set in the number of a reason for which a guest has nothing to do.
pub const TEXT_REASON_WAITS: u64 = 1 << 32;

/// Names of reasons in the order in which they were seen.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    names: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Reasons {
    /// Gives a name its number, once.
    pub(super) fn add(&mut self, name: &str) {
        if self.numbers.contains_key(name) || self.names.len() >= MAX_REASONS {
            return;
        }
        // 0 stands for a line whose reason can't be read.
        let number = self.names.len() as u64 + 1;
        let waits = if known::waits(name) { TEXT_REASON_WAITS } else { 0 };
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number | waits);
    }

    /// The number of a name; 0: it has none.
    pub(super) fn number(&self, name: &str) -> u64 {
        self.numbers.get(name).copied().unwrap_or(0)
    }

    /// All of them, as `__print_symbolic` has them.
    pub(super) fn symbols(&self) -> String {
        let is_plain = |c: char| matches!(c, ' '..='~') && c != '"' && c != '\\';
        let named = |name: &String| {
            let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '?' }).collect();
            format!(", {{ {:#x}, \"{plain}\" }}", self.number(name))
        };
        "{ 0, \"not readable\" }".to_owned() + &self.names.iter().map(named).collect::<String>()
    }
}
