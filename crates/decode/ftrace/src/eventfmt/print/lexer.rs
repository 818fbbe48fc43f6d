//! Splits a print fmt into C tokens.

use crate::eventfmt::error::PrintError;

/// Maximum length of a print fmt; no kernel has a longer one.
const MAX_TEXT: usize = 1 << 18;

/// A token and its offset in the print fmt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) kind: TokenKind<'t>,
    pub(super) at: usize,
}

/// The kind of token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind<'t> {
    /// A name or a keyword.
    Word(&'t str),
    /// A number with its base prefix and suffix.
    Number(&'t str),
    /// A string literal with escapes resolved.
    Text(Box<[u8]>),
    /// A character constant.
    Character(u8),
    /// An operator or bracket.
    Mark(&'static str),
}

/// Longer marks precede their prefixes.
const MARKS: &[&str] = &[
    "<<=", ">>=", "...", "->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++", "--", "(",
    ")", "[", "]", "{", "}", ",", ";", "?", ":", ".", "+", "-", "*", "/", "%", "&", "|", "^", "~",
    "!", "<", ">", "=",
];

/// Splits a print fmt into tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, PrintError> {
    if text.len() > MAX_TEXT {
        return Err(PrintError::TooLong(MAX_TEXT));
    }
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next_token()? {
        tokens.push(token);
    }
    Ok(tokens)
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn advance(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    fn next_token(&mut self) -> Result<Option<Token<'t>>, PrintError> {
        let rest = self.rest();
        self.advance(rest.len().saturating_sub(rest.trim_start().len()));
        let (rest, at) = (self.rest(), self.at);
        let Some(first) = rest.bytes().next() else { return Ok(None) };
        let kind = match first {
            b'"' => TokenKind::Text(self.quoted(b'"')?.into()),
            b'\'' => TokenKind::Character(self.quoted(b'\'')?.first().copied().unwrap_or(0)),
            b'0'..=b'9' => TokenKind::Number(self.word()),
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => TokenKind::Word(self.word()),
            _ => {
                let mark = MARKS.iter().find(|mark| rest.starts_with(**mark));
                let mark = mark.ok_or_else(|| self.syntax("an operator"))?;
                self.advance(mark.len());
                TokenKind::Mark(mark)
            }
        };
        Ok(Some(Token { kind, at }))
    }

    fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or("");
        self.advance(word.len());
        word
    }

    /// The content of a literal, from its quote to the matching one.
    fn quoted(&mut self, quote: u8) -> Result<Vec<u8>, PrintError> {
        let mut content = Vec::new();
        let mut bytes = self.rest().bytes().skip(1);
        let mut used = 1usize;
        loop {
            used = used.saturating_add(1);
            match bytes.next() {
                None => return Err(self.syntax("a closing quote")),
                Some(b'\\') => {
                    used = used.saturating_add(1);
                    content.push(unescaped(bytes.next().unwrap_or(b'\\')));
                }
                Some(byte) if byte == quote => break,
                Some(byte) => content.push(byte),
            }
        }
        self.advance(used);
        Ok(content)
    }

    fn syntax(&self, wanted: &'static str) -> PrintError {
        let found = self.rest().chars().take(16).collect();
        PrintError::Syntax { at: self.at, wanted, found }
    }
}

fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'0' => 0,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_print_fmt_is_split() {
        let kinds: Vec<_> = tokens(r#""a\n%d", REC->x >>0x1fUL"#)
            .unwrap()
            .into_iter()
            .map(|token| token.kind)
            .collect();
        let expected = [
            TokenKind::Text(b"a\n%d"[..].into()),
            TokenKind::Mark(","),
            TokenKind::Word("REC"),
            TokenKind::Mark("->"),
            TokenKind::Word("x"),
            TokenKind::Mark(">>"),
            TokenKind::Number("0x1fUL"),
        ];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn open_quotes_and_strange_bytes_are_errors() {
        assert!(tokens("\"abc").is_err());
        assert!(tokens("'").is_err());
        assert!(tokens("\"a\\").is_err());
        assert!(tokens("@").is_err());
        assert!(tokens("ä").is_err());
        assert!(tokens(&" ".repeat(MAX_TEXT.wrapping_add(1))).is_err());
    }
}
