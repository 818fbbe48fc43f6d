//! What a workload is asked for.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::number_argument;

/// The longest that a workload runs.
const MAX_MS: u64 = 600_000;
/// The most threads that it has.
const MAX_THREADS: u64 = 64;

/// Options that no workload has read yet.
#[derive(Debug)]
pub(super) struct PlantOptions(BTreeMap<String, u64>);

impl PlantOptions {
    /// Reads `WORD=NUMBER` each.
    pub(super) fn read(arguments: impl Iterator<Item = String>) -> io::Result<Self> {
        let mut numbers = BTreeMap::new();
        for argument in arguments {
            let (word, number) = number_argument::number(&argument)?;
            numbers.insert(word.to_owned(), number);
        }
        Ok(Self(numbers))
    }

    /// The value of an option, or its default.
    pub(super) fn number(&mut self, word: &str, default: u64) -> u64 {
        self.0.remove(word).unwrap_or(default)
    }

    /// How long the workload runs.
    pub(super) fn time(&mut self) -> io::Result<Duration> {
        let ms = self.0.remove("ms").filter(|ms| (1..=MAX_MS).contains(ms));
        ms.map(Duration::from_millis).ok_or_else(|| number_argument::refused("ms"))
    }

    /// A time in microseconds.
    pub(super) fn microseconds(&mut self, word: &str, default: u64) -> Duration {
        Duration::from_micros(self.number(word, default))
    }

    /// How many threads there are.
    pub(super) fn threads(&mut self, default: u64) -> io::Result<usize> {
        let threads = self.number("threads", default);
        let threads = Some(threads).filter(|threads| (1..=MAX_THREADS).contains(threads));
        let threads = threads.and_then(|threads| usize::try_from(threads).ok());
        threads.ok_or_else(|| number_argument::refused("threads"))
    }

    /// Checks that all options were read.
    pub(super) fn none_is_left(&self) -> io::Result<()> {
        self.0.keys().next().map_or(Ok(()), |word| Err(number_argument::refused(word)))
    }
}
