//! JSON text, written piece by piece.

use std::io::{self, Write};

use crate::{Arg, Args};

/// Writes a string with the escapes that JSON requires.
pub(crate) fn string(out: &mut impl Write, text: &str) -> io::Result<()> {
    Ok(serde_json::to_writer(out, text)?)
}

/// Writes values as the members of an object, without its braces.
pub(crate) fn members(out: &mut impl Write, args: &Args<'_>) -> io::Result<()> {
    for (at, (name, arg)) in args.iter().enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        string(out, name)?;
        out.write_all(b":")?;
        match arg {
            Arg::Number(number) => write!(out, "{number}")?,
            Arg::Signed(number) => write!(out, "{number}")?,
            Arg::Bool(yes) => write!(out, "{yes}")?,
            Arg::Name(text) | Arg::Text(text) => string(out, text)?,
        }
    }
    Ok(())
}

/// Writes a time in units of 10^`digits` ns, exactly.
pub(crate) fn scaled(out: &mut impl Write, ns: u64, digits: usize) -> io::Result<()> {
    let unit = 10_u64.saturating_pow(digits as u32);
    let (integer, rest) = (ns / unit, ns % unit);
    if rest == 0 { write!(out, "{integer}") } else { write!(out, "{integer}.{rest:0digits$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        let text = |ns, digits| {
            let mut out = Vec::new();
            scaled(&mut out, ns, digits).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(1_234_567, 3), "1234.567");
        assert_eq!(text(1_002_000, 3), "1002");
        assert_eq!(text(5, 6), "0.000005");
        assert_eq!(text(u64::MAX, 3), "18446744073709551.615");
    }

    #[test]
    fn names_from_recordings_stay_within_their_strings() {
        let mut out = Vec::new();
        let args = [("a\"b", Arg::Text("\u{1}</script>\n")), ("n", Arg::Signed(-1))];
        members(&mut out, &args).unwrap();
        let text = format!("{{{}}}", String::from_utf8(out).unwrap());
        let back: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back, serde_json::json!({"a\"b": "\u{1}</script>\n", "n": -1}));
    }
}
