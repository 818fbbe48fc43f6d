//! The characters that are escaped, and their escapes.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Bytes per step; compilers vectorize a loop of this size.
const CHUNK: usize = 32;

/// Whether text has only printable ASCII characters and tabs, which is true for nearly all text.
#[inline]
pub(crate) fn is_plain(bytes: &[u8]) -> bool {
    // Numbers instead of booleans, because compilers vectorize only those.
    let other = |byte: u8| u8::from(byte.wrapping_sub(b' ') >= 0x5f) & u8::from(byte != b'\t');
    let any = |bytes: &[u8]| bytes.iter().fold(0, |any, &byte| any | other(byte)) != 0;
    let (chunks, rest) = bytes.as_chunks::<CHUNK>();
    // The rest is checked together with bytes before it, if there are any, which needs no loop.
    let rest = match bytes.last_chunk::<CHUNK>() {
        Some(last) => any(last),
        None => {
            let (eights, rest) = rest.as_chunks::<8>();
            eights.iter().any(|eight| any(eight)) || any(rest)
        }
    };
    !chunks.iter().any(|chunk| any(chunk)) && !rest
}

/// Whether a character is invisible, or changes how others are shown.
pub(crate) const fn is_hidden(char: char) -> bool {
    matches!(char,
        '\0'..='\x1f' | '\x7f'..='\u{9f}'
        // Soft hyphen; Arabic letter mark; Mongolian vowel separator.
        | '\u{ad}' | '\u{61c}' | '\u{180e}'
        // Zero-width spaces and joiners, marks of direction.
        | '\u{200b}'..='\u{200f}'
        // Separators of lines and paragraphs, embeddings and overrides of direction.
        | '\u{2028}'..='\u{202e}'
        // Invisible operators, isolates of direction, deprecated formatting.
        | '\u{2060}'..='\u{206f}'
        // Byte order mark; interlinear annotations.
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        // Tags: a whole alphabet that no terminal shows.
        | '\u{e0000}'..='\u{e007f}')
}

/// Appends the escape of a character.
pub(crate) fn push_escape(out: &mut String, char: char) {
    // Writing to memory can't fail.
    let _ = match char {
        '\t' => out.write_str("\\t"),
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\0'..='\x7f' => write!(out, "\\x{:02x}", u32::from(char)),
        char => write!(out, "\\u{{{:x}}}", u32::from(char)),
    };
}

/// Text with escapes for invalid UTF-8 and for hidden characters, except those that `keep` accepts.
pub(crate) fn escaped(bytes: &[u8], keep: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(bytes.len().saturating_add(CHUNK));
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            if is_hidden(char) && !keep(char) {
                push_escape(&mut out, char);
            } else {
                out.push(char);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// Borrows text that needs no escapes.
pub(crate) fn escaped_text(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().any(|char| is_hidden(char) && !keep(char)) {
        return escaped(text.as_bytes(), keep).into();
    }
    text.into()
}

/// Escapes the text of an event, from `begin` to the end of `out`.
///
/// Tabs remain, because some of the kernel's print fmts have them. A line break remains at the end,
/// and before text that cannot be mistaken for an event: a stack frame (`=> function`), a row of a
/// hex dump (`00000010: `).
#[inline]
pub fn escape_event(out: &mut Vec<u8>, begin: usize) {
    if !is_plain(out.get(begin..).unwrap_or(&[])) {
        escape_event_slowly(out, begin);
    }
}

#[cold]
fn escape_event_slowly(out: &mut Vec<u8>, begin: usize) {
    let text = out.split_off(begin.min(out.len()));
    let mut lines = text.split(|&byte| byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        out.extend_from_slice(escaped(line, |char| char == '\t').as_bytes());
        let Some(&next) = lines.peek() else { return };
        let is_end = next.is_empty() && lines.clone().count() == 1;
        out.extend_from_slice(if is_end || may_begin_line(next) { b"\n" } else { b"\\n" });
    }
}

fn may_begin_line(line: &[u8]) -> bool {
    let is_row = |line: &[u8]| {
        line.split_first_chunk::<8>().is_some_and(|(offset, rest)| {
            offset.iter().all(u8::is_ascii_hexdigit) && rest.starts_with(b": ")
        })
    };
    line.trim_ascii_start().starts_with(b"=> ") || is_row(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &[u8]) -> String {
        let mut out = b"kept\x1b".to_vec();
        out.extend_from_slice(text);
        escape_event(&mut out, 5);
        String::from_utf8(out.split_off(5)).unwrap()
    }

    #[test]
    fn text_of_other_languages_is_plain_enough() {
        for text in ["", "comm=qemu prio=120", "\tReason 0x7f", "größer → läuft", "日本語 😀 عربى"]
        {
            assert_eq!(event(text.as_bytes()), text);
        }
    }

    #[test]
    fn one_hidden_character_is_found_wherever_it_is() {
        for hidden in (0..=0x7f_u8).filter(|byte| *byte != b'\t' && is_hidden(char::from(*byte))) {
            for at in 0..100 {
                let mut text = [b'a'; 100];
                if let Some(byte) = text.get_mut(at) {
                    *byte = hidden;
                }
                assert!(!is_plain(&text), "{hidden:#x} at {at}");
            }
        }
        assert!(is_plain(&[b'~'; 100]) && is_plain(b" \t"));
    }

    #[test]
    fn what_a_terminal_would_obey_is_an_escape() {
        assert_eq!(event(b"a\x1b[2Jb\x07\x7f\r"), "a\\x1b[2Jb\\x07\\x7f\\r");
        assert_eq!(
            event("\u{9b}2J \u{202e}x\u{2066}\u{200b}".as_bytes()),
            "\\u{9b}2J \\u{202e}x\\u{2066}\\u{200b}"
        );
        assert_eq!(event("\u{e0041}\u{2028}".as_bytes()), "\\u{e0041}\\u{2028}");
        assert_eq!(event(b"\xff\xc3("), "\\xff\\xc3(");
    }

    #[test]
    fn an_event_can_not_write_the_line_of_another() {
        assert_eq!(
            event(b"x\n qemu-1 [000] 1.0: kvm_exit: forged\n"),
            "x\\n qemu-1 [000] 1.0: kvm_exit: forged\n"
        );
        assert_eq!(event(b"x\n\n"), "x\\n\n");
    }

    #[test]
    fn stacks_and_dumps_keep_their_lines() {
        for text in ["\t=> a\n\t=> b\n", "d: \n00000000: 41 42\n00000010: 43\n"] {
            assert_eq!(event(text.as_bytes()), text);
        }
    }
}
