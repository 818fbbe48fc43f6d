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

/// The digits of a number, at the end of zeros that may be shown before them.
struct Digits {
    bytes: [u8; Self::ROOM],
    /// Where the first digit that counts is.
    first: usize,
}

impl Digits {
    /// Enough for any number of 64 bits in base 8.
    const ROOM: usize = 24;

    #[inline]
    fn new(value: u64, radix: Radix) -> Self {
        match radix {
            Radix::Decimal => Self::decimal(value),
            Radix::Hex => Self::hex(value, b'a'),
            Radix::UpperHex => Self::hex(value, b'A'),
            Radix::Octal => Self::octal(value),
        }
    }

    fn put(&mut self, byte: u8) {
        self.first = self.first.saturating_sub(1);
        if let Some(slot) = self.bytes.get_mut(self.first) {
            *slot = byte;
        }
    }

    fn decimal(mut value: u64) -> Self {
        let mut digits = Self { bytes: [b'0'; Self::ROOM], first: Self::ROOM };
        while value >= 100 {
            let pair = ((value % 100) as usize).wrapping_mul(2);
            digits.put(PAIRS.get(pair.wrapping_add(1)).copied().unwrap_or(b'0'));
            digits.put(PAIRS.get(pair).copied().unwrap_or(b'0'));
            value /= 100;
        }
        digits.put(b'0'.wrapping_add((value % 10) as u8));
        if value >= 10 {
            digits.put(b'0'.wrapping_add((value / 10) as u8));
        }
        digits
    }

    /// All 16 digits at once: shorter than to ask of each whether it is the last.
    fn hex(value: u64, ten: u8) -> Self {
        let mut bytes = [b'0'; Self::ROOM];
        let halves = [eight_digits(value >> 32, ten), eight_digits(value & 0xffff_ffff, ten)];
        let (_, digits) = bytes.split_at_mut(8);
        for (slot, half) in digits.chunks_exact_mut(8).zip(halves) {
            slot.copy_from_slice(&half);
        }
        let count = 67u32.wrapping_sub((value | 1).leading_zeros()) / 4;
        Self { bytes, first: Self::ROOM.wrapping_sub(count as usize) }
    }

    fn octal(mut value: u64) -> Self {
        let mut digits = Self { bytes: [b'0'; Self::ROOM], first: Self::ROOM };
        loop {
            digits.put(b'0'.wrapping_add((value & 7) as u8));
            value >>= 3;
            if value == 0 {
                return digits;
            }
        }
    }

    fn count(&self) -> usize {
        Self::ROOM.wrapping_sub(self.first)
    }

    /// Appends the digits behind `zeros` zeros.
    #[inline]
    fn append(&self, out: &mut Vec<u8>, zeros: usize) {
        let missing = zeros.saturating_sub(self.first);
        if missing > 0 {
            fill(out, b'0', missing);
        }
        let from = self.first.saturating_sub(zeros);
        out.extend_from_slice(self.bytes.get(from..).unwrap_or(&[]));
    }
}

/// The eight hex digits of a number of 32 bits, computed side by side in one word.
fn eight_digits(half: u64, ten: u8) -> [u8; 8] {
    let pairs = (half | half << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (pairs | pairs << 8) & 0x00ff_00ff_00ff_00ff;
    let nibbles = (bytes | bytes << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let above_nine = nibbles.wrapping_add(0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    let letters = above_nine.wrapping_mul(u64::from(ten.wrapping_sub(b'0').wrapping_sub(10)));
    nibbles.wrapping_add(0x3030_3030_3030_3030).wrapping_add(letters).to_be_bytes()
}

/// Appends `value` without any padding.
#[inline]
pub(crate) fn plain(out: &mut Vec<u8>, value: u64, radix: Radix) {
    Digits::new(value, radix).append(out, 0);
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
    let mut digits = Digits::new(value, radix);
    if shape.precision == Some(0) && value == 0 {
        digits.first = Digits::ROOM;
    }
    let shown = prefix.len().saturating_add(digits.count());
    // A precision asks for digits and switches the flag `0` off.
    let zeros = match shape.precision {
        Some(least) => least.min(MAX_WIDTH).saturating_sub(digits.count()),
        None if shape.zero && !shape.left => shape.width.min(MAX_WIDTH).saturating_sub(shown),
        None => 0,
    };
    let pad = shape.width.min(MAX_WIDTH).saturating_sub(shown.saturating_add(zeros));
    if pad > 0 && !shape.left {
        fill(out, b' ', pad);
    }
    out.extend_from_slice(prefix);
    digits.append(out, zeros);
    if pad > 0 && shape.left {
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
