//! A part of an input that could not be read, and where it lies.

use std::fmt;

/// Something in an input that is wrong; the rest was read as if nothing had happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset in the file, in bytes; for compressed data that of the chunk.
    pub offset: u64,
    /// CPU whose pages are damaged, if it concerns pages.
    pub cpu: Option<u32>,
    /// What is wrong.
    pub what: String,
}

impl Damage {
    /// Damage in the pages of a CPU.
    #[must_use]
    pub fn on_cpu(cpu: u32, offset: u64, what: String) -> Self {
        Self { offset, cpu: Some(cpu), what }
    }

    /// Damage outside the pages.
    #[must_use]
    pub fn at(offset: u64, what: String) -> Self {
        Self { offset, cpu: None, what }
    }
}

impl From<tracedat::Damage> for Damage {
    fn from(damage: tracedat::Damage) -> Self {
        Self::at(damage.offset, damage.what)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {:#x}", self.offset)?;
        if let Some(cpu) = self.cpu {
            write!(f, ", CPU {cpu}")?;
        }
        write!(f, ": {}", self.what)
    }
}
