//! Shows texts that a guest or another process chose: shortened, and without characters that have a
//! special effect in a terminal or a page.

/// Maximum characters of a label.
const MAX_CHARS: usize = 64;

/// A label from an untrusted text. Control characters and bidirectional controls are escaped.
#[must_use]
pub fn label(text: &str) -> String {
    let mut shown = String::new();
    // Longer text is truncated.
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
