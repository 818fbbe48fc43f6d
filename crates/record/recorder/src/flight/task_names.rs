//! Names of recorded tasks: the kernel saves only a few, and forgets earlier ones.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Max tasks: as many as may exist at a time.
const MOST: usize = 1 << 16;

/// Names by thread id, with the time each was last seen.
#[derive(Debug, Default)]
pub(crate) struct TaskNames(BTreeMap<u32, (String, Instant)>);

impl TaskNames {
    /// Adds the kernel's saved names, a line each, and removes names that the kernel has not had for `keep`.
    pub(crate) fn take(&mut self, saved: &[u8], keep: Duration) {
        let now = Instant::now();
        self.0.retain(|_, (_, seen)| now.duration_since(*seen) <= keep);
        for line in String::from_utf8_lossy(saved).lines() {
            let Some((number, name)) = line.split_once(' ') else { continue };
            let Ok(number) = number.parse() else { continue };
            if self.0.len() < MOST || self.0.contains_key(&number) {
                self.0.insert(number, (name.to_owned(), now));
            }
        }
    }

    /// All names in the same format.
    pub(crate) fn text(&self) -> Vec<u8> {
        let lines = self.0.iter().map(|(number, (name, _))| format!("{number} {name}\n"));
        lines.collect::<String>().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_kernel_has_forgotten_stay_for_a_while() {
        let mut names = TaskNames::default();
        let long = Duration::from_secs(600);
        names.take(b"7 old name\n9 other\nno line of this\n", long);
        names.take(b"9 changed\n", long);
        assert_eq!(names.text(), b"7 old name\n9 changed\n");
        names.take(b"11 new\n", Duration::ZERO);
        assert_eq!(names.text(), b"11 new\n");
    }
}
