//! Text of recordings in pictures: SVG is XML.

/// Text as XML has it, its hidden characters as escapes but for line breaks; what XML has no place for
/// is told apart as U+FFFD.
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

/// As much of a name as there are letters for, two at least; what is cut off is `…`.
pub(crate) fn shortened(name: &str, letters: usize) -> String {
    if name.chars().count() <= letters {
        name.to_owned()
    } else {
        name.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
    }
}
