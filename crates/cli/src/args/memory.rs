//! How much memory verbs that read recordings may take.

use std::str::FromStr;

use clap::Args;

/// Bounds of what reading takes, whatever is in the files.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct MemoryArgs {
    /// End with an error rather than take more memory than this; K, M and G are KiB, MiB and GiB
    #[arg(long, value_name = "SIZE", default_value = "256M", help_heading = "Limits")]
    pub(crate) max_memory: Bytes,
}

impl MemoryArgs {
    /// Bounds this process.
    pub(crate) fn apply(self) {
        timeline::rounds::fit_into_memory(self.max_memory.0);
        sys::bound_memory(self.max_memory.0);
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) u64);

/// No verb gets far with less.
const LEAST_BYTES: u64 = 16 << 20;

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.trim_end_matches(|end: char| !end.is_ascii_digit());
        let shift = match text.get(digits.len()..).unwrap_or_default() {
            "" => 0,
            "K" | "k" | "KiB" => 10,
            "M" | "m" | "MiB" => 20,
            "G" | "g" | "GiB" => 30,
            other => return Err(format!("\"{other}\" is no unit: give K, M or G")),
        };
        let count: u64 =
            digits.parse().map_err(|_| format!("\"{text}\" is no size, as 256M is"))?;
        let bytes = count.checked_mul(1 << shift).ok_or_else(|| format!("{text} is too much"))?;
        if bytes < LEAST_BYTES {
            return Err(format!("{text} is too little: 16M at least"));
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let bytes = |text: &str| Bytes::from_str(text).map(|bytes| bytes.0);
        assert_eq!(bytes("256M"), Ok(256 << 20));
        assert_eq!(bytes("2GiB"), Ok(2 << 30));
        assert_eq!(bytes("20000000"), Ok(20_000_000));
        for bad in ["", "M", "1.5G", "64Q", "99999999999G", "1M"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
