//! Limits on memory and temporary space for verbs that read recordings.

use std::str::FromStr;

use clap::Args;

use super::size::size;

/// Limits on what reading files may use, whatever they contain.
#[derive(Clone, Copy, Debug, Args)]
pub struct MemoryArgs {
    /// Fail rather than use more memory than this; K, M and G are KiB, MiB and GiB
    #[arg(long, value_name = "SIZE", default_value = "256M", help_heading = "Limits")]
    pub max_memory: Bytes,
    /// Fail rather than store more input from a pipe than this in an unnamed temporary file (in
    /// TMPDIR)
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = size, help_heading = "Limits")]
    pub max_spool: u64,
}

impl MemoryArgs {
    /// Applies the limits to this process.
    pub fn apply(self) {
        timeline::rounds::fit_into_memory(self.max_memory.0);
        sys::bound_spool(self.max_spool);
        sys::bound_memory(self.max_memory.0);
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl Bytes {
    /// The size of each of `parts` equal parts.
    pub fn part(self, parts: u64) -> usize {
        usize::try_from(self.0 / parts.max(1)).unwrap_or(usize::MAX)
    }
}

/// Verbs can't do useful work with less.
const MIN_BYTES: u64 = 16 << 20;

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = size(text)?;
        if bytes < MIN_BYTES {
            return Err(format!("{text} is too small: the minimum is 16M"));
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_verb_runs_with_next_to_nothing() {
        let bytes = |text: &str| Bytes::from_str(text).map(|bytes| bytes.0);
        assert_eq!(bytes("256M"), Ok(256 << 20));
        assert_eq!(bytes("16M"), Ok(MIN_BYTES));
        assert_eq!(bytes("20000000"), Ok(20_000_000));
        for bad in ["", "1M", "16383K"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
