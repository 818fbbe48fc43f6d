//! Escapes texts of recordings for figures: SVG is XML.

/// Text as XML; hidden characters except line breaks become escapes, and characters that XML can't
/// represent become U+FFFD.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in printable::lines(text).chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

/// A name truncated to a number of letters, at least two; `…` replaces the rest.
pub(crate) fn shortened(name: &str, letters: usize) -> String {
    if name.chars().count() <= letters {
        name.to_owned()
    } else {
        name.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
    }
}
