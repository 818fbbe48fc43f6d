//! Counts with their nouns, for descriptions of damage.

use std::fmt::Display;

/// A count with its noun, for descriptions of damage: "1 byte is", "2 bytes are".
#[must_use]
pub fn counted<N: Display + PartialEq + From<u8>>(
    number: N,
    singular: &str,
    plural: &str,
) -> String {
    let noun = if number == N::from(1) { singular } else { plural };
    format!("{number} {noun}")
}

/// A number of bytes with its noun, as [`counted`].
#[must_use]
pub fn bytes<N: Display + PartialEq + From<u8>>(number: N) -> String {
    counted(number, "byte", "bytes")
}
