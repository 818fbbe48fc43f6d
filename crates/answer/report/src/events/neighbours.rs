//! Selects requested lines and those near them: like `grep -A -B`, on merged events.

use std::collections::VecDeque;

/// The number of lines printed before and after a requested one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Near {
    /// Lines before it.
    pub before: usize,
    /// Lines after it.
    pub after: usize,
}

/// Separates lines that are not adjacent.
const SEPARATOR: &[u8] = b"--\n";

/// Selects lines in their order.
#[derive(Debug)]
pub(super) struct Neighbours {
    near: Near,
    has_separators: bool,
    /// The newest lines that were not printed.
    before: VecDeque<Vec<u8>>,
    /// Number of lines still to print after the last requested one.
    after: usize,
    /// Whether a line was left out since the last printed one.
    has_gap: bool,
    wanted: u64,
}

impl Neighbours {
    pub(super) fn new(near: Near, has_separators: bool) -> Self {
        let before = VecDeque::new();
        Self { near, has_separators, before, after: 0, has_gap: false, wanted: 0 }
    }

    /// Number of requested lines so far.
    pub(super) fn printed(&self) -> u64 {
        self.wanted
    }

    /// Takes the next line, and writes the lines that are due to `out`.
    pub(super) fn line(&mut self, text: &[u8], is_wanted: bool, out: &mut dyn FnMut(&[u8])) {
        if is_wanted {
            if self.has_gap && self.wanted > 0 && self.has_separators {
                out(SEPARATOR);
            }
            self.before.drain(..).for_each(|line| out(&line));
            out(text);
            (self.after, self.has_gap) = (self.near.after, false);
            self.wanted += 1;
        } else if self.after > 0 {
            out(text);
            self.after -= 1;
        } else {
            self.keep(text);
        }
    }

    fn keep(&mut self, text: &[u8]) {
        if self.near.before == 0 {
            self.has_gap = true;
            return;
        }
        let mut line = if self.before.len() >= self.near.before {
            self.has_gap = true;
            self.before.pop_front().unwrap_or_default()
        } else {
            Vec::new()
        };
        line.clear();
        line.extend_from_slice(text);
        self.before.push_back(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines 0 to 9, some of which are requested.
    fn printed(before: usize, after: usize, wanted: &[usize]) -> String {
        let mut near = Neighbours::new(Near { before, after }, true);
        let mut out = Vec::new();
        for at in 0..10 {
            let text = format!("{at}\n");
            near.line(text.as_bytes(), wanted.contains(&at), &mut |text| {
                out.extend_from_slice(text)
            });
        }
        assert_eq!(near.printed(), wanted.len() as u64);
        String::from_utf8(out).unwrap().replace('\n', "")
    }

    #[test]
    fn lines_are_those_of_grep() {
        assert_eq!(printed(0, 0, &[2, 3, 7]), "23--7");
        assert_eq!(printed(1, 0, &[0, 5]), "0--45");
        assert_eq!(printed(2, 0, &[0, 3]), "0123");
        assert_eq!(printed(0, 2, &[1, 4]), "123456");
        assert_eq!(printed(0, 1, &[1, 4]), "12--45");
        assert_eq!(printed(1, 1, &[2, 4, 9]), "12345--89");
        assert_eq!(printed(3, 3, &[]), "");
        assert_eq!(printed(100, 100, &[5]), "0123456789");
    }
}
