//! Text for terminals with an ASCII locale.

use std::ffi::OsStr;

/// ASCII replacements of characters in tables and sentences.
const STANDS_FOR: [(char, &str); 16] = [
    ('\u{251c}', "|"),
    ('\u{2514}', "`"),
    ('\u{2502}', "|"),
    ('\u{2500}', "-"),
    ('\u{2192}', "->"),
    ('\u{2190}', "<-"),
    ('\u{2026}', "..."),
    ('\u{b1}', "+-"),
    ('\u{d7}', "x"),
    ('\u{b5}', "u"),
    ('\u{3bc}', "u"),
    ('\u{2264}', "<="),
    ('\u{2265}', ">="),
    ('\u{2013}', "-"),
    ('\u{2588}', "#"),
    ('\u{b7}', "."),
];

/// Whether a locale can show UTF-8, according to the first of `LC_ALL`, `LC_CTYPE` and `LANG` that
/// is set. It can if none is set: terminals use UTF-8 by default.
#[must_use]
pub fn locale_has_utf8<'v>(variables: impl IntoIterator<Item = Option<&'v OsStr>>) -> bool {
    let set = variables.into_iter().flatten().find(|value| !value.is_empty());
    set.is_none_or(|locale| {
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// The text in ASCII. Following columns keep their position if there is enough space before them.
#[must_use]
pub fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Number of characters by which the line has become longer.
    let mut longer = 0_usize;
    for char in text.chars() {
        if char == ' ' && longer > 0 && out.ends_with(' ') {
            longer = longer.saturating_sub(1);
            continue;
        }
        if char == '\n' {
            longer = 0;
        }
        if char.is_ascii() {
            out.push(char);
            continue;
        }
        let instead =
            STANDS_FOR.iter().find(|(symbol, _)| *symbol == char).map_or("?", |(_, text)| text);
        out.push_str(instead);
        longer = longer.saturating_add(instead.len().saturating_sub(1));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keep_their_columns() {
        let table = "a → b    12 \u{b1}3\n\u{251c}\u{2500} größe…  7\n";
        assert_eq!(ascii(table), "a -> b   12 +-3\n|- gr??e... 7\n");
        assert_eq!(ascii("plain  text\n"), "plain  text\n");
    }

    #[test]
    fn the_first_variable_that_is_set_says_it() {
        let has = |all: [&str; 3]| locale_has_utf8(all.map(|value| Some(OsStr::new(value))));
        assert!(has(["", "", ""]) && has(["", "C.UTF-8", "C"]) && has(["de_DE.utf8", "C", "C"]));
        assert!(!has(["C", "C.UTF-8", ""]) && !has(["", "", "POSIX"]) && !has(["", "", "en_US"]));
        assert!(locale_has_utf8([None, None, None]));
    }
}
