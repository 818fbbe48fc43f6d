//! An error as one sentence.

use std::error::Error;

/// An error with what caused it.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", with_causes(source)),
        None => error.to_string(),
    }
}
