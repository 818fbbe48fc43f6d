//! Formats integers as C's printf does, without the overhead of `std::fmt`.

/// Maximum width and precision: no kernel text is wider.
pub(crate) const MAX_WIDTH: usize = 1024;

/// Base and letter case of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Radix {
    Decimal,
    Hex,
    UpperHex,
    Octal,
}

/// Flags, width and precision of a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// `-`: pad on the right.
    pub(crate) minus: bool,
    /// `0`: pad with zeros.
    pub(crate) zero: bool,
    /// `#`: begin with `0x` or `0`.
    pub(crate) alternate: bool,
    /// `+`: always show the sign.
    pub(crate) plus: bool,
    /// A space in place of a plus sign.
    pub(crate) space: bool,
    /// Minimum width.
    pub(crate) width: usize,
    /// Minimum number of digits, or maximum length of a string.
    pub(crate) precision: Option<usize>,
}

/// The smallest number with nine decimal digits.
const NINE_DIGITS: u64 = 100_000_000;
/// The letter `0`, eight times.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Appends `value` without padding.
#[inline]
pub(crate) fn plain(out: &mut Vec<u8>, value: u64, radix: Radix) {
    match radix {
        Radix::Decimal => decimal(out, value),
        Radix::Hex => hex(out, value, 1),
        Radix::UpperHex => hex_with(out, value, b'A', 1),
        Radix::Octal => octal(out, value),
    }
}

/// Appends a number in decimal without padding, several times as fast as `std::fmt`.
#[inline]
pub fn append_decimal(out: &mut Vec<u8>, value: u64) {
    decimal(out, value);
}

/// The last six decimal digits of a number.
#[inline]
#[must_use]
pub fn six_digits(value: u64) -> [u8; 6] {
    let [_, _, digits @ ..] = (eight_decimals(value % NINE_DIGITS) | ZEROS).to_le_bytes();
    digits
}

/// Appends `value` in decimal, zero-padded to `min` digits (up to 8).
#[inline]
pub(crate) fn decimal_of(out: &mut Vec<u8>, value: u64, min: usize) {
    if value >= NINE_DIGITS {
        return long_decimal(out, value);
    }
    let digits = eight_decimals(value);
    // Zero still shows one digit.
    let zeros = ((digits | 1 << 56).trailing_zeros() / 8).min(8u32.saturating_sub(min as u32));
    let text = (digits | ZEROS).wrapping_shr(zeros.wrapping_mul(8));
    append_first(out, text.to_le_bytes(), 8usize.wrapping_sub(zeros as usize));
}

/// The number of digits that [`plain`] appends.
fn count(value: u64, radix: Radix) -> usize {
    let bits = 64u32.wrapping_sub((value | 1).leading_zeros());
    let digits = match radix {
        Radix::Decimal => value.checked_ilog10().unwrap_or(0).wrapping_add(1),
        Radix::Hex | Radix::UpperHex => bits.div_ceil(4),
        Radix::Octal => bits.div_ceil(3),
    };
    digits as usize
}

/// Appends the first `count` bytes. Appending all of them and truncating is faster than copying
/// `count` bytes: a copy of constant size needs no function call.
#[inline]
fn append_first<const N: usize>(out: &mut Vec<u8>, text: [u8; N], count: usize) {
    let end = out.len().saturating_add(count);
    out.extend_from_slice(&text);
    out.truncate(end);
}

#[inline]
fn decimal(out: &mut Vec<u8>, value: u64) {
    decimal_of(out, value, 1);
}

fn long_decimal(out: &mut Vec<u8>, value: u64) {
    decimal(out, value / NINE_DIGITS);
    let last = eight_decimals(value % NINE_DIGITS) | ZEROS;
    out.extend_from_slice(&last.to_le_bytes());
}

/// Appends `value` in hex, zero-padded to `min` digits (up to 16).
#[inline]
pub(crate) fn hex(out: &mut Vec<u8>, value: u64, min: usize) {
    hex_with(out, value, b'a', min);
}

/// Computes all 16 digits at once, which is faster than testing each for a leading zero.
#[inline]
fn hex_with(out: &mut Vec<u8>, value: u64, ten: u8, min: usize) {
    if value == 0 {
        // Most zero-padded numbers are 0.
        return append_first(out, [b'0'; 16], min.clamp(1, 16));
    }
    let high = u128::from(eight_hex(value >> 32, ten)) << 64;
    let digits = high | u128::from(eight_hex(value & 0xffff_ffff, ten));
    let zeros = ((value | 1).leading_zeros() / 4).min(16u32.saturating_sub(min as u32));
    let text = digits.wrapping_shl(zeros.wrapping_mul(8));
    append_first(out, text.to_be_bytes(), 16usize.wrapping_sub(zeros as usize));
}

fn octal(out: &mut Vec<u8>, mut value: u64) {
    let start = out.len();
    fill(out, b'0', count(value, Radix::Octal));
    for digit in out.iter_mut().skip(start).rev() {
        *digit = b'0'.wrapping_add((value & 7) as u8);
        value >>= 3;
    }
}

/// The digits (not yet letters) of a number below 10^8, computed in parallel in one word: the first
/// in the lowest byte.
///
/// Multiplication by 1/100 and 1/10, rounded so that the integer part is exact, splits four digits
/// into two and two into one.
#[inline]
fn eight_decimals(value: u64) -> u64 {
    let fours = (value / 10_000) | (value % 10_000) << 32;
    let hundreds = fours.wrapping_mul(10_486) >> 20 & 0x7f_0000_007f;
    let twos = hundreds | fours.wrapping_sub(hundreds.wrapping_mul(100)) << 16;
    let tens = twos.wrapping_mul(103) >> 10 & 0x000f_000f_000f_000f;
    tens | twos.wrapping_sub(tens.wrapping_mul(10)) << 8
}

/// The eight hex digits of a 32-bit number, computed in parallel in one word: the first in the
/// highest byte.
#[inline]
fn eight_hex(half: u64, ten: u8) -> u64 {
    let pairs = (half | half << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (pairs | pairs << 8) & 0x00ff_00ff_00ff_00ff;
    let nibbles = (bytes | bytes << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let above_nine = nibbles.wrapping_add(0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    let letters = above_nine.wrapping_mul(u64::from(ten.wrapping_sub(b'0').wrapping_sub(10)));
    nibbles.wrapping_add(ZEROS).wrapping_add(letters)
}

/// Appends `0x` and `value`.
pub(crate) fn address(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(b"0x");
    plain(out, value, Radix::Hex);
}

/// Appends a byte as two digits.
pub(crate) fn hex_byte(out: &mut Vec<u8>, byte: u8) {
    let digits = b"0123456789abcdef";
    let digit = |nibble: u8| digits.get(usize::from(nibble)).copied().unwrap_or(b'0');
    out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
}

/// Appends a signed number.
pub(crate) fn signed(out: &mut Vec<u8>, value: i64, shape: Shape) {
    let sign: &[u8] = match (value < 0, shape.plus, shape.space) {
        (true, ..) => b"-",
        (false, true, _) => b"+",
        (false, false, true) => b" ",
        _ => b"",
    };
    shaped(out, sign, value.unsigned_abs(), Radix::Decimal, shape);
}

/// Appends an unsigned number.
pub(crate) fn unsigned(out: &mut Vec<u8>, value: u64, radix: Radix, shape: Shape) {
    let prefix: &[u8] = match radix {
        Radix::Hex if shape.alternate && value != 0 => b"0x",
        Radix::UpperHex if shape.alternate && value != 0 => b"0X",
        Radix::Octal if shape.alternate && value != 0 => b"0",
        _ => b"",
    };
    shaped(out, prefix, value, radix, shape);
}

/// Appends prefix and digits with the padding of `shape`.
fn shaped(out: &mut Vec<u8>, prefix: &[u8], value: u64, radix: Radix, shape: Shape) {
    let none = shape.precision == Some(0) && value == 0;
    let digits = if none { 0 } else { count(value, radix) };
    let shown = prefix.len().saturating_add(digits);
    // A precision sets the number of digits and disables the flag `0`.
    let zeros = match shape.precision {
        Some(min) => min.min(MAX_WIDTH).saturating_sub(digits),
        None if shape.zero && !shape.minus => shape.width.min(MAX_WIDTH).saturating_sub(shown),
        None => 0,
    };
    let pad = shape.width.min(MAX_WIDTH).saturating_sub(shown.saturating_add(zeros));
    if pad > 0 && !shape.minus {
        fill(out, b' ', pad);
    }
    out.extend_from_slice(prefix);
    fill(out, b'0', zeros);
    if !none {
        plain(out, value, radix);
    }
    if pad > 0 && shape.minus {
        fill(out, b' ', pad);
    }
}

fn fill(out: &mut Vec<u8>, byte: u8, count: usize) {
    out.resize(out.len().saturating_add(count), byte);
}

/// Truncates and pads the string that was appended after `start`.
pub(crate) fn pad_text(out: &mut Vec<u8>, start: usize, shape: Shape) {
    if let Some(max) = shape.precision {
        out.truncate(start.saturating_add(max));
    }
    let shown = out.len().saturating_sub(start);
    let pad = shape.width.min(MAX_WIDTH).saturating_sub(shown);
    fill(out, b' ', pad);
    if !shape.minus
        && let Some(tail) = out.get_mut(start..)
    {
        tail.rotate_right(pad.min(tail.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(value: u64, shape: Shape) -> String {
        let mut out = Vec::new();
        unsigned(&mut out, value, Radix::Hex, shape);
        String::from_utf8(out).unwrap()
    }

    fn decimal(value: i64, shape: Shape) -> String {
        let mut out = Vec::new();
        signed(&mut out, value, shape);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_equal_those_of_the_library() {
        let edges = (0..64).flat_map(|bit| [1 << bit, u64::MAX >> bit]);
        let tens = (0..20).flat_map(|power| [10u64.pow(power) - 1, 10u64.pow(power)]);
        // Every pair and every group of four digits.
        let parts = (0..10_000).flat_map(|four| [four * 10_001, four * 10_000]);
        for value in edges.chain(tens).chain(parts) {
            let mut out = Vec::new();
            plain(&mut out, value, Radix::Decimal);
            out.push(b' ');
            plain(&mut out, value, Radix::Hex);
            out.push(b' ');
            plain(&mut out, value, Radix::Octal);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{value} {value:x} {value:o}"));
            assert_eq!(count(value, Radix::Decimal), value.to_string().len());
            assert_eq!(count(value, Radix::Hex), format!("{value:x}").len());
        }
    }

    #[test]
    fn six_digits_are_the_last_ones() {
        assert_eq!(&six_digits(0), b"000000");
        assert_eq!(&six_digits(20_345), b"020345");
        assert_eq!(&six_digits(1_999_999), b"999999");
        assert_eq!(&six_digits(u64::MAX), b"551615");
    }

    #[test]
    fn decimals_have_as_many_digits_as_asked_for() {
        for value in [0, 7, 99, 1_234_567, 12_345_678, 99_999_999, 100_000_000, u64::MAX] {
            for min in 0..=8 {
                let mut out = Vec::new();
                decimal_of(&mut out, value, min);
                assert_eq!(String::from_utf8(out).unwrap(), format!("{value:0min$}"));
            }
        }
    }

    #[test]
    fn shapes_follow_printf() {
        let zero = Shape { zero: true, width: 8, ..Shape::default() };
        assert_eq!(hex(5, zero), "00000005");
        assert_eq!(hex(5, Shape { alternate: true, ..zero }), "0x000005");
        assert_eq!(hex(0, Shape { alternate: true, ..zero }), "00000000");
        let wide = Shape { width: 6, ..Shape::default() };
        assert_eq!(hex(0x1f, Shape { alternate: true, ..wide }), "  0x1f");
        assert_eq!(decimal(-5, wide), "    -5");
        assert_eq!(decimal(-5, Shape { minus: true, ..wide }), "-5    ");
        assert_eq!(decimal(-5, Shape { zero: true, ..wide }), "-00005");
        assert_eq!(
            decimal(5, Shape { plus: true, precision: Some(3), zero: true, ..wide }),
            "  +005"
        );
        assert_eq!(decimal(0, Shape { precision: Some(0), ..Shape::default() }), "");
        assert_eq!(decimal(i64::MIN, Shape::default()), i64::MIN.to_string());
    }

    #[test]
    fn strings_are_cut_and_padded() {
        let mut out = b"a:hello".to_vec();
        pad_text(&mut out, 2, Shape { width: 6, precision: Some(4), ..Shape::default() });
        assert_eq!(out, b"a:  hell");
        pad_text(&mut out, 2, Shape { width: 8, minus: true, ..Shape::default() });
        assert_eq!(out, b"a:  hell  ");
    }
}
