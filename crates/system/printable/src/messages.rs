//! Messages for users on standard error, one per line.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use crate::forms::line;

/// Start of the error number that the standard library appends; the text before it has the same
/// meaning.
const ERROR_NUMBER: &str = " (os error ";

/// An error text without the system's error numbers.
#[must_use]
pub fn without_error_numbers(text: &str) -> Cow<'_, str> {
    if !text.contains(ERROR_NUMBER) {
        return text.into();
    }
    let mut parts = text.split(ERROR_NUMBER);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.bytes().all(|digit| digit.is_ascii_digit()) => {
                out += rest;
            }
            _ => {
                out += ERROR_NUMBER;
                out += part;
            }
        }
    }
    out.into()
}

/// Writes messages with `writeln!`: each becomes one printable line, whatever its content.
#[derive(Debug)]
pub struct Messages<W>(W);

/// Messages on standard error.
#[must_use]
pub fn messages() -> Messages<io::StderrLock<'static>> {
    Messages(io::stderr().lock())
}

/// Writes a message to standard error. If that is closed, the message cannot be reported.
pub fn print_message(message: fmt::Arguments<'_>) {
    let _ = writeln!(messages(), "{message}");
}

impl<W: Write> Messages<W> {
    /// Messages to another writer.
    pub fn to(out: W) -> Self {
        Self(out)
    }
}

impl<W: Write> Write for Messages<W> {
    /// Unformatted bytes are complete messages from another writer.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(crate::forms::lines(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn write_fmt(&mut self, message: fmt::Arguments<'_>) -> io::Result<()> {
        let text = message.to_string();
        let text = without_error_numbers(&text);
        let (text, end) = text.strip_suffix('\n').map_or((&*text, ""), |text| (text, "\n"));
        // A single write, so that messages of several threads and processes do not mix.
        self.0.write_all(format!("{}{end}", line(text)).as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_have_words_and_no_numbers() {
        let error = io::Error::from_raw_os_error(2);
        let text = format!("cannot read a: {error}, b: {error}");
        let plain = "cannot read a: No such file or directory, b: No such file or directory";
        assert_eq!(without_error_numbers(&text), plain);
        for message in ["", "plain", "a (os error x)", "a (os error "] {
            assert_eq!(without_error_numbers(message), message);
        }
        let mut out = Vec::new();
        writeln!(Messages::to(&mut out), "{error}").unwrap();
        assert_eq!(out, b"No such file or directory\n");
    }

    #[test]
    fn a_message_is_one_line() {
        let mut out = Vec::new();
        let why = "no\nhyperscope: all is well\x1b[1A";
        writeln!(Messages::to(&mut out), "hyperscope: guest web: {why}").unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "hyperscope: guest web: no\\nhyperscope: all is well\\x1b[1A\n");
    }
}
