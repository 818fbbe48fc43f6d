//! Texts that a guest or another process chose, as they are shown: short, and without what a terminal
//! or a page would take for more than text.

/// Characters that are shown of one, at most.
const MAX_CHARS: usize = 64;

/// A text that others chose, fit to be shown. Control characters, and those that change the direction
/// of what follows, are written as escapes.
#[must_use]
pub fn label(text: &str) -> String {
    let mut shown = String::new();
    // After this many nothing is shown, however long the text is.
    for c in text.chars().take(MAX_CHARS + 1) {
        match c {
            '\'' | '"' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    if let Some((at, _)) = shown.char_indices().nth(MAX_CHARS) {
        shown.truncate(at);
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_chose_is_text_and_short() {
        assert_eq!(label("web's \"first\""), "web's \"first\"");
        assert_eq!(label("größe"), "größe");
        assert_eq!(label("\u{1b}[31mred\n"), "\\u{1b}[31mred\\n");
        assert_eq!(label("a\u{202e}b"), "a\\u{202e}b");
        let long = label(&"x".repeat(1 << 20));
        assert_eq!(long.chars().count(), MAX_CHARS + 1);
        assert_eq!(label(""), "");
    }
}
