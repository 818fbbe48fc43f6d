//! Arguments of guest programs: words with a number each.

use std::io;

/// Parses `WORD=NUMBER`.
///
/// # Errors
/// With the argument, if it has another form.
pub(crate) fn number(argument: &str) -> io::Result<(&str, u64)> {
    let read = || {
        let (word, number) = argument.split_once('=')?;
        Some((word, number.parse().ok()?))
    };
    read().ok_or_else(|| refused(argument))
}

/// The error of an argument that is not supported.
pub(crate) fn refused(argument: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, argument.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_a_number() {
        assert_eq!(number("files=40").unwrap(), ("files", 40));
        for wrong in ["files", "files=", "files=-1", "files=x", ""] {
            assert_eq!(number(wrong).unwrap_err().to_string(), wrong);
        }
    }
}
