//! Parses a `%` conversion of a format string.

use crate::eventfmt::digits::{MAX_WIDTH, Shape};

/// A parsed conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spec<'t> {
    /// The flags, as a shape without width and precision.
    pub(super) flags: Shape,
    pub(super) width: Amount,
    pub(super) precision: Amount,
    pub(super) length: Length,
    /// The letter: `d`, `s`, `p`.
    pub(super) conversion: u8,
    /// The letters after `%p`, which give the type of the data.
    pub(super) suffix: &'t [u8],
    /// The full text without `%`.
    pub(super) text: &'t [u8],
}

/// A width or precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    None,
    Fixed(usize),
    /// `*`: comes from an argument.
    Argument,
}

impl Amount {
    pub(super) fn fixed(self) -> usize {
        if let Self::Fixed(amount) = self { amount } else { 0 }
    }
}

/// The C type of a numeric argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Char,
    Short,
    Int,
    Long,
    LongLong,
}

/// Parses the text after a `%`; returns the text after the conversion.
///
/// # Errors
/// The text, if it is not a conversion.
pub(super) fn parse(text: &[u8]) -> Result<(Spec<'_>, &[u8]), &[u8]> {
    let mut flags = Shape::default();
    let mut rest = text;
    while let Some((&flag, tail)) = rest.split_first() {
        match flag {
            b'-' => flags.minus = true,
            b'0' => flags.zero = true,
            b'#' => flags.alternate = true,
            b'+' => flags.plus = true,
            b' ' => flags.space = true,
            _ => break,
        }
        rest = tail;
    }
    let (width, after) = amount(rest);
    let (precision, after) = match after.strip_prefix(b".") {
        Some(tail) => match amount(tail) {
            (Amount::None, tail) => (Amount::Fixed(0), tail),
            found => found,
        },
        None => (Amount::None, after),
    };
    let (length, after) = length(after);
    let (&conversion, after) = after.split_first().ok_or(text)?;
    let suffix = if conversion == b'p' { super::pointer::suffix(after) } else { &[] };
    let after = after.get(suffix.len()..).ok_or(text)?;
    let specifier = text.get(..text.len().saturating_sub(after.len())).ok_or(text)?;
    if !b"diuxXocsp".contains(&conversion) {
        return Err(text);
    }
    Ok((Spec { flags, width, precision, length, conversion, suffix, text: specifier }, after))
}

fn amount(text: &[u8]) -> (Amount, &[u8]) {
    if let Some(tail) = text.strip_prefix(b"*") {
        return (Amount::Argument, tail);
    }
    let mut rest = text;
    let mut amount = 0usize;
    while let Some((&digit, tail)) = rest.split_first().filter(|split| split.0.is_ascii_digit()) {
        let digit = usize::from(digit.wrapping_sub(b'0'));
        amount = amount.saturating_mul(10).saturating_add(digit).min(MAX_WIDTH);
        rest = tail;
    }
    if rest.len() == text.len() { (Amount::None, text) } else { (Amount::Fixed(amount), rest) }
}

fn length(text: &[u8]) -> (Length, &[u8]) {
    let marks: [(&[u8], Length); 8] = [
        (b"hh", Length::Char),
        (b"h", Length::Short),
        (b"ll", Length::LongLong),
        (b"l", Length::Long),
        (b"L", Length::LongLong),
        (b"j", Length::LongLong),
        (b"z", Length::Long),
        (b"t", Length::Long),
    ];
    for (mark, length) in marks {
        if let Some(tail) = text.strip_prefix(mark) {
            return (length, tail);
        }
    }
    (Length::Int, text.strip_prefix(b"Z").unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_taken_apart() {
        let (spec, rest) = parse(b"-08.3lld rest").unwrap();
        assert!(spec.flags.minus && spec.flags.zero);
        assert_eq!((spec.width, spec.precision), (Amount::Fixed(8), Amount::Fixed(3)));
        assert_eq!((spec.length, spec.conversion), (Length::LongLong, b'd'));
        assert_eq!((spec.text, rest), (&b"-08.3lld"[..], &b" rest"[..]));
    }

    #[test]
    fn stars_and_suffixes_are_found() {
        let (spec, rest) = parse(b"*phN]").unwrap();
        assert_eq!((spec.width, spec.suffix, rest), (Amount::Argument, &b"hN"[..], &b"]"[..]));
        let (spec, _) = parse(b".*s").unwrap();
        assert_eq!(spec.precision, Amount::Argument);
        assert_eq!(parse(b".s").unwrap().0.precision, Amount::Fixed(0));
    }

    #[test]
    fn what_is_no_conversion_is_an_error() {
        assert!(parse(b"").is_err());
        assert!(parse(b"5").is_err());
        assert!(parse(b"n").is_err());
        assert_eq!(parse(b"99999999999999999999d").unwrap().0.width, Amount::Fixed(MAX_WIDTH));
    }
}
