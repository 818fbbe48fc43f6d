//! Rewrites print fmts for libtraceevent, which shows `[FAILED TO PARSE]` for expressions that it does not know, and so
//! do trace-cmd and KernelShark.
//!
//! Two constructs of kernels are valid only in C: `a ?: b`, and tables without an entry. Both have a longer form.

use std::borrow::Cow;

/// The beginning of the print fmt in a format.
const PRINT_FMT: &str = "\nprint fmt:";
/// Replaces a table's missing entry; no number of less than 64 bits has this value.
const NO_ENTRY: &str = "{ -1, \"\" }";

/// The text of a format with a print fmt that libtraceevent parses, as far as that is possible.
pub(crate) fn readable(format: &str) -> Cow<'_, str> {
    let Some((head, print)) = format.split_once(PRINT_FMT) else { return format.into() };
    let mut rest = Rest { text: print, out: String::with_capacity(print.len()) };
    let mut is_changed = false;
    while let Some(next) = rest.text.chars().next() {
        match next {
            '"' => rest.take(literal_len(rest.text)),
            '{' => is_changed |= rest.table(),
            '?' => is_changed |= rest.choice(),
            _ => rest.take(next.len_utf8()),
        }
    }
    if is_changed { format!("{head}{PRINT_FMT}{}", rest.out).into() } else { format.into() }
}

/// The remaining print fmt, and the result so far.
struct Rest<'t> {
    text: &'t str,
    out: String,
}

impl Rest<'_> {
    /// Copies bytes unchanged.
    fn take(&mut self, bytes: usize) {
        let (prefix, rest) = self.text.split_at_checked(bytes).unwrap_or((self.text, ""));
        self.out.push_str(prefix);
        self.text = rest;
    }

    /// At `{`: replaces an empty entry, and returns whether there was one.
    fn table(&mut self) -> bool {
        let inner = self.text.strip_prefix('{').unwrap_or(self.text).trim_start();
        match inner.strip_prefix('}') {
            Some(rest) => {
                self.out.push_str(NO_ENTRY);
                self.text = rest;
                true
            }
            None => {
                self.take(1);
                false
            }
        }
    }

    /// At `?`: repeats the operand of `?:`, and returns whether it could.
    fn choice(&mut self) -> bool {
        let behind = self.text.strip_prefix('?').unwrap_or(self.text).trim_start();
        let operand = operand(self.out.trim_end()).to_owned();
        if !behind.starts_with(':') || operand.is_empty() {
            self.take(1);
            return false;
        }
        self.out.push_str(&format!("? {operand} "));
        self.text = behind;
        true
    }
}

/// Length of the string literal at the beginning of a text.
fn literal_len(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The field at the end of a text: `REC->name`.
fn operand(text: &str) -> &str {
    let name_at = |text: &str| {
        text.trim_end_matches(|character: char| {
            character.is_ascii_alphanumeric() || character == '_'
        })
        .len()
    };
    let field = name_at(text);
    let record = text.get(..field).and_then(|before| before.strip_suffix("->"));
    let Some(record) = record.filter(|_| field < text.len()) else { return "" };
    text.get(name_at(record)..).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libtraceevent_does_not_take_has_its_longer_form() {
        let made = |print: &str| readable(&format!("name: e\nprint fmt: {print}\n")).into_owned();
        let format_text = |print: &str| format!("name: e\nprint fmt: {print}\n");
        for (print, expected) in [
            (
                r#""%s %d", REC->name ?: "UNKN", REC->x"#,
                r#""%s %d", REC->name ? REC->name : "UNKN", REC->x"#,
            ),
            (
                r#""%s", __print_symbolic(REC->x, { })"#,
                r#""%s", __print_symbolic(REC->x, { -1, "" })"#,
            ),
            (r#""{} ?: \"{}", REC->x"#, r#""{} ?: \"{}", REC->x"#),
            (r#""%s", REC->x ? "a" : "b""#, r#""%s", REC->x ? "a" : "b""#),
            (r#""%s", f(1) ?: "b""#, r#""%s", f(1) ?: "b""#),
            (r#""%s", { 1, "a" }, {"#, r#""%s", { 1, "a" }, {"#),
            (r#""open"#, r#""open"#),
        ] {
            assert_eq!(made(print), format_text(expected));
        }
        assert_eq!(readable("name: e\n"), "name: e\n");
    }
}
