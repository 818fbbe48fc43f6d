//! Integers to text the way C's printf does, without the formatting machinery of the library.

/// The largest width and precision: nothing the kernel prints is wider.
pub(crate) const MAX_WIDTH: usize = 1024;

/// Base and letters of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Radix {
    Decimal,
    Hex,
    UpperHex,
    Octal,
}

/// Flags, width and precision of one conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// `-`: pad on the right.
    pub(crate) left: bool,
    /// `0`: pad with zeros.
    pub(crate) zero: bool,
    /// `#`: begin with `0x` or `0`.
    pub(crate) alternate: bool,
    /// `+`: always show the sign.
    pub(crate) plus: bool,
    /// A space in place of a plus sign.
    pub(crate) space: bool,
    /// Least width of the whole.
    pub(crate) width: usize,
    /// Least number of digits, or greatest length of a string.
    pub(crate) precision: Option<usize>,
}

const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// A scratch area that holds the digits of any 64-bit number, filled from its end.
type Scratch = [u8; 24];

/// Puts `byte` before what `scratch` holds from `at` on.
fn prepend(scratch: &mut Scratch, at: &mut usize, byte: u8) {
    *at = at.saturating_sub(1);
    if let Some(slot) = scratch.get_mut(*at) {
        *slot = byte;
    }
}

fn decimal_digits(scratch: &mut Scratch, mut value: u64) -> usize {
    let mut at = scratch.len();
    while value >= 100 {
        let pair = ((value % 100) as usize).wrapping_mul(2);
        prepend(scratch, &mut at, PAIRS.get(pair.wrapping_add(1)).copied().unwrap_or(b'0'));
        prepend(scratch, &mut at, PAIRS.get(pair).copied().unwrap_or(b'0'));
        value /= 100;
    }
    prepend(scratch, &mut at, b'0'.wrapping_add((value % 10) as u8));
    if value >= 10 {
        prepend(scratch, &mut at, b'0'.wrapping_add((value / 10) as u8));
    }
    at
}

fn power_digits(scratch: &mut Scratch, mut value: u64, bits: u32, digits: &[u8; 16]) -> usize {
    let mask = 1u64.wrapping_shl(bits).wrapping_sub(1);
    let mut at = scratch.len();
    loop {
        let digit = digits.get((value & mask) as usize).copied().unwrap_or(b'0');
        prepend(scratch, &mut at, digit);
        value = value.wrapping_shr(bits);
        if value == 0 {
            return at;
        }
    }
}

fn digits(scratch: &mut Scratch, value: u64, radix: Radix) -> usize {
    match radix {
        Radix::Decimal => decimal_digits(scratch, value),
        Radix::Hex => power_digits(scratch, value, 4, b"0123456789abcdef"),
        Radix::UpperHex => power_digits(scratch, value, 4, b"0123456789ABCDEF"),
        Radix::Octal => power_digits(scratch, value, 3, b"0123456789abcdef"),
    }
}

/// Appends `value` without any padding.
pub(crate) fn plain(out: &mut Vec<u8>, value: u64, radix: Radix) {
    let mut scratch = [0; 24];
    let at = digits(&mut scratch, value, radix);
    out.extend_from_slice(scratch.get(at..).unwrap_or(&[]));
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

/// Appends a number without sign.
pub(crate) fn unsigned(out: &mut Vec<u8>, value: u64, radix: Radix, shape: Shape) {
    let prefix: &[u8] = match radix {
        Radix::Hex if shape.alternate && value != 0 => b"0x",
        Radix::UpperHex if shape.alternate && value != 0 => b"0X",
        Radix::Octal if shape.alternate && value != 0 => b"0",
        _ => b"",
    };
    shaped(out, prefix, value, radix, shape);
}

/// Appends prefix and digits, padded as `shape` says.
fn shaped(out: &mut Vec<u8>, prefix: &[u8], value: u64, radix: Radix, shape: Shape) {
    let mut scratch = [0; 24];
    let at = digits(&mut scratch, value, radix);
    let mut digits = scratch.get(at..).unwrap_or(&[]);
    if shape.precision == Some(0) && value == 0 {
        digits = &[];
    }
    let shown = prefix.len().saturating_add(digits.len());
    // A precision asks for digits and switches the flag `0` off.
    let zeros = match shape.precision {
        Some(least) => least.min(MAX_WIDTH).saturating_sub(digits.len()),
        None if shape.zero && !shape.left => shape.width.min(MAX_WIDTH).saturating_sub(shown),
        None => 0,
    };
    let pad = shape.width.min(MAX_WIDTH).saturating_sub(shown.saturating_add(zeros));
    if !shape.left {
        fill(out, b' ', pad);
    }
    out.extend_from_slice(prefix);
    fill(out, b'0', zeros);
    out.extend_from_slice(digits);
    if shape.left {
        fill(out, b' ', pad);
    }
}

fn fill(out: &mut Vec<u8>, byte: u8, count: usize) {
    out.resize(out.len().saturating_add(count), byte);
}

/// Cuts and pads the string that was appended since `start`.
pub(crate) fn pad_text(out: &mut Vec<u8>, start: usize, shape: Shape) {
    if let Some(most) = shape.precision {
        out.truncate(start.saturating_add(most));
    }
    let shown = out.len().saturating_sub(start);
    let pad = shape.width.min(MAX_WIDTH).saturating_sub(shown);
    fill(out, b' ', pad);
    if !shape.left
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
        for value in [0, 1, 9, 10, 99, 100, 101, 12345, u64::MAX, 1 << 63] {
            let mut out = Vec::new();
            plain(&mut out, value, Radix::Decimal);
            out.push(b' ');
            plain(&mut out, value, Radix::Hex);
            out.push(b' ');
            plain(&mut out, value, Radix::Octal);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{value} {value:x} {value:o}"));
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
        assert_eq!(decimal(-5, Shape { left: true, ..wide }), "-5    ");
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
        pad_text(&mut out, 2, Shape { width: 8, left: true, ..Shape::default() });
        assert_eq!(out, b"a:  hell  ");
    }
}
