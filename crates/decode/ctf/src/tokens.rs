//! Tokens of TSDL, the metadata language of CTF 1.8: words, numbers, strings and signs.

use crate::CtfError;

/// The kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    Number(i128),
    Text(String),
    Sign(&'static str),
}

/// A token with its line.
#[derive(Clone, Debug)]
pub(crate) struct TokenAt {
    pub(crate) token: Token,
    pub(crate) line: usize,
}

/// Longer signs come first.
const SIGNS: [&str; 18] =
    ["...", ":=", "->", "{", "}", "[", "]", "(", ")", "<", ">", ";", ":", ",", "=", ".", "*", "-"];

/// Splits a text into tokens.
pub(crate) fn tokens(text: &[u8]) -> Result<Vec<TokenAt>, CtfError> {
    let mut lexer = Lexer { rest: text, line: 1 };
    let mut all = Vec::new();
    loop {
        lexer.skip()?;
        if lexer.rest.is_empty() {
            return Ok(all);
        }
        let line = lexer.line;
        all.push(TokenAt { token: lexer.token()?, line });
    }
}

struct Lexer<'t> {
    rest: &'t [u8],
    line: usize,
}

impl<'t> Lexer<'t> {
    fn fail<T>(&self, what: impl Into<String>) -> Result<T, CtfError> {
        Err(CtfError::Text { line: self.line, what: what.into() })
    }

    /// Consumes the next `len` bytes.
    fn take(&mut self, len: usize) -> &'t [u8] {
        let (head, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        self.line += head.iter().filter(|&&byte| byte == b'\n').count();
        head
    }

    fn take_while(&mut self, is_in: impl Fn(u8) -> bool) -> &'t [u8] {
        let len = self.rest.iter().position(|&byte| !is_in(byte)).unwrap_or(self.rest.len());
        self.take(len)
    }

    /// Skips white space and comments. LTTng fills unwritten space with NULs.
    fn skip(&mut self) -> Result<(), CtfError> {
        loop {
            self.take_while(|byte| byte.is_ascii_whitespace() || byte == 0);
            if self.rest.starts_with(b"//") {
                self.take_while(|byte| byte != b'\n');
            } else if self.rest.starts_with(b"/*") {
                match self.rest.windows(2).position(|two| two == b"*/") {
                    Some(end) => drop(self.take(end + 2)),
                    None => return self.fail("a comment has no end"),
                }
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Token, CtfError> {
        let Some(&first) = self.rest.first() else { return self.fail("it ends unexpectedly") };
        if first.is_ascii_digit() {
            return self.number();
        }
        if first == b'_' || first.is_ascii_alphabetic() {
            let word = self.take_while(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
            if word == b"L" && matches!(self.rest.first(), Some(b'"' | b'\'')) {
                return self.token();
            }
            return Ok(Token::Word(String::from_utf8_lossy(word).into_owned()));
        }
        if first == b'"' || first == b'\'' {
            return self.text(first);
        }
        match SIGNS.iter().find(|sign| self.rest.starts_with(sign.as_bytes())) {
            Some(sign) => {
                self.take(sign.len());
                Ok(Token::Sign(sign))
            }
            None => self.fail(format!("{:?} is unexpected", char::from(first))),
        }
    }

    fn number(&mut self) -> Result<Token, CtfError> {
        let digits = self.take_while(|byte| byte.is_ascii_alphanumeric());
        let text = String::from_utf8_lossy(digits).to_ascii_lowercase();
        let is_hex = text.starts_with("0x");
        // C suffixes, none of which is a digit.
        let plain = text.trim_end_matches(['u', 'l']);
        let parsed = if is_hex {
            i128::from_str_radix(plain.trim_start_matches("0x"), 16)
        } else if let Some(binary) = plain.strip_prefix("0b") {
            i128::from_str_radix(binary, 2)
        } else if plain.len() > 1 && plain.starts_with('0') {
            i128::from_str_radix(plain, 8)
        } else {
            plain.parse()
        };
        match parsed {
            Ok(number) if number <= i128::from(u64::MAX) => Ok(Token::Number(number)),
            _ => self.fail(format!("{text} is not a number")),
        }
    }

    fn text(&mut self, quote: u8) -> Result<Token, CtfError> {
        self.take(1);
        let mut text = Vec::new();
        loop {
            match self.rest.first() {
                None => return self.fail("a string has no end"),
                Some(&byte) if byte == quote => {
                    self.take(1);
                    return Ok(Token::Text(String::from_utf8_lossy(&text).into_owned()));
                }
                Some(b'\\') => {
                    self.take(1);
                    text.extend(self.escaped());
                }
                Some(&byte) => {
                    self.take(1);
                    text.push(byte);
                }
            }
        }
    }

    /// The character for an escape sequence.
    fn escaped(&mut self) -> Option<u8> {
        let octal =
            self.rest.iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
        if octal > 0 {
            let digits = self.take(octal);
            return Some(digits.iter().fold(0, |sum: u8, digit| {
                sum.wrapping_mul(8).wrapping_add(digit.wrapping_sub(b'0'))
            }));
        }
        let byte = *self.take(1).first()?;
        Some(match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'x' => {
                let digits = self.take_while(|digit| digit.is_ascii_hexdigit());
                let digits = std::str::from_utf8(digits).unwrap_or("");
                return u8::from_str_radix(digits, 16).ok();
            }
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_apart() {
        let text =
            br#"/* CTF 1.8 */ enum : uint5_t { a = 0 ... 0x1E, "b\"\n" = 017u } x[4]; // end"#;
        let all: Vec<Token> = tokens(text).unwrap().into_iter().map(|token| token.token).collect();
        let word = |text: &str| Token::Word(text.to_owned());
        assert_eq!(all.first(), Some(&word("enum")));
        assert!(all.contains(&Token::Number(30)) && all.contains(&Token::Number(15)));
        assert!(all.contains(&Token::Sign("...")));
        assert!(all.contains(&Token::Text("b\"\n".to_owned())));
        assert_eq!(all.len(), 19);
    }

    #[test]
    fn what_is_no_token_is_refused_with_its_line() {
        for text in
            [&b"\n\n@"[..], b"\n\n\"abc", b"\n\n/* abc", b"\n\n0x", b"\n\n99999999999999999999"]
        {
            assert!(matches!(tokens(text), Err(CtfError::Text { line: 3, .. })), "{text:?}");
        }
    }
}
