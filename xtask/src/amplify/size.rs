//! A number of bytes with a unit suffix: `100M`, `10G`.

use std::str::FromStr;

use anyhow::{Context, Error};

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(super) bytes: u64,
}

impl FromStr for Size {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (number, shift) = match text.char_indices().next_back() {
            Some((at, 'k' | 'K')) => (&text[..at], 10),
            Some((at, 'm' | 'M')) => (&text[..at], 20),
            Some((at, 'g' | 'G')) => (&text[..at], 30),
            _ => (text, 0),
        };
        let number: u64 = number.parse().with_context(|| format!("`{text}` is not a size"))?;
        let bytes = number.checked_mul(1 << shift).context("the size is too large")?;
        Ok(Self { bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_powers_of_1024() {
        let bytes = |text: &str| text.parse::<Size>().map(|size| size.bytes).ok();
        assert_eq!(bytes("100M"), Some(100 << 20));
        assert_eq!(bytes("512"), Some(512));
        assert_eq!(bytes("M"), None);
        assert_eq!(bytes("99999999999G"), None);
    }
}
