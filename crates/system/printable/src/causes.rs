//! Formats an error as a sentence.

use std::error::Error;

/// An error followed by its causes.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", with_causes(source)),
        None => error.to_string(),
    }
}
