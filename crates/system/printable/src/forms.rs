//! Makes text printable in a line, in several lines, in CSV and in JSON.

use std::borrow::Cow;

use crate::hidden::{escaped, escaped_text, is_hidden};

/// Text without line breaks.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escaped_text(text, |_| false)
}

/// Bytes as text without line breaks; they should be UTF-8.
#[must_use]
pub fn line_of_bytes(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => line(text),
        Err(_) => escaped(bytes, |_| false).into(),
    }
}

/// Text of several lines, such as a report: its line breaks remain. Names in it must be made
/// printable by [`line`] first, otherwise they can add lines.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped_text(text, |char| char == '\n')
}

/// A text cell for CSV, before quoting: text that a spreadsheet would treat as a formula gets a
/// leading apostrophe. Numbers are not changed.
#[must_use]
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@']) && !is_number(text);
    if is_formula { format!("'{text}").into() } else { text.into() }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'))
        && text.parse::<f64>().is_ok()
}

/// A JSON document with hidden characters, which can only be in its strings, as `\uXXXX`; line
/// breaks and tabs between its parts remain.
#[must_use]
pub fn json(document: &str) -> Cow<'_, str> {
    let is_kept = |char: char| !is_hidden(char) || char.is_ascii_control() && char != '\x7f';
    if document.chars().all(is_kept) {
        return document.into();
    }
    let mut out = String::with_capacity(document.len());
    for char in document.chars() {
        if is_kept(char) {
            out.push(char);
            continue;
        }
        for unit in char.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_stay_in_their_lines() {
        assert_eq!(line("web\nvm-2\x1b[31m"), "web\\nvm-2\\x1b[31m");
        assert_eq!(lines("a\nb\r\t"), "a\nb\\r\\t");
        assert_eq!(line_of_bytes(b"a\xff"), "a\\xff");
    }

    #[test]
    fn formulas_are_text_and_numbers_are_numbers() {
        for text in ["=1+1", "+cmd|'x'!A1", "-2+3", "@SUM(A1)", "-", "=", "-inf", "--1"] {
            assert_eq!(csv_cell(text), format!("'{text}"));
        }
        for text in ["", "-5", "-0.25", "+1e-9", "a=b", "'x", "1-2"] {
            assert_eq!(csv_cell(text), text);
        }
    }

    #[test]
    fn json_means_the_same() {
        assert_eq!(
            json("{\"a\":\"\u{202e}\u{e0041}\u{9b}\"}\n"),
            "{\"a\":\"\\u202e\\udb40\\udc41\\u009b\"}\n"
        );
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left(bytes in proptest::collection::vec(any::<u8>(), 0..80), text: String) {
            for output in [line_of_bytes(&bytes), line(&text)] {
                prop_assert!(!output.chars().any(is_hidden), "{output:?}");
            }
        }
    }
}
