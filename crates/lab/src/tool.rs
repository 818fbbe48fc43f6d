//! Programs that guests have beside the usual ones, each from a Debian package of its own.

use serde::{Deserialize, Serialize};

/// A program that a guest can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// The kernel's `perf`.
    Perf,
}

impl Tool {
    /// Debian's package with it.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::Perf => "linux-perf",
        }
    }

    /// Its programs.
    pub(crate) fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Perf => &["perf"],
        }
    }
}
