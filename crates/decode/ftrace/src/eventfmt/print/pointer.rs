//! The kernel's extensions of `%p`: addresses, functions, network addresses, raw bytes.

use std::io::Write as _;

use super::ir::Pointed;
use crate::eventfmt::digits::{self, Radix};

/// The kind of a `%p` conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The address itself.
    Address,
    /// The function at the address.
    Function { offset: bool },
    /// The bytes at the address.
    Bytes(Pointed),
}

/// All known suffixes of `%p`; longer ones precede their prefixes.
const SUFFIXES: &[(&[u8], Meaning)] = &[
    (b"I4h", Meaning::Bytes(Pointed::Ip4 { zeros: false, reversed: true })),
    (b"I4l", Meaning::Bytes(Pointed::Ip4 { zeros: false, reversed: true })),
    (b"I4n", Meaning::Bytes(Pointed::Ip4 { zeros: false, reversed: false })),
    (b"I4b", Meaning::Bytes(Pointed::Ip4 { zeros: false, reversed: false })),
    (b"I4", Meaning::Bytes(Pointed::Ip4 { zeros: false, reversed: false })),
    (b"i4", Meaning::Bytes(Pointed::Ip4 { zeros: true, reversed: false })),
    (b"I6c", Meaning::Bytes(Pointed::Ip6 { colons: true, compressed: true })),
    (b"I6", Meaning::Bytes(Pointed::Ip6 { colons: true, compressed: false })),
    (b"i6", Meaning::Bytes(Pointed::Ip6 { colons: false, compressed: false })),
    (b"ISpc", Meaning::Bytes(Pointed::Socket { port: true, compressed: true, zeros: false })),
    (b"ISp", Meaning::Bytes(Pointed::Socket { port: true, compressed: false, zeros: false })),
    (b"ISc", Meaning::Bytes(Pointed::Socket { port: false, compressed: true, zeros: false })),
    (b"IS", Meaning::Bytes(Pointed::Socket { port: false, compressed: false, zeros: false })),
    (b"iS", Meaning::Bytes(Pointed::Socket { port: false, compressed: false, zeros: true })),
    (b"MFR", Meaning::Bytes(Pointed::Mac { separator: Some(b'-'), reversed: true })),
    (b"MF", Meaning::Bytes(Pointed::Mac { separator: Some(b'-'), reversed: false })),
    (b"MR", Meaning::Bytes(Pointed::Mac { separator: Some(b':'), reversed: true })),
    (b"M", Meaning::Bytes(Pointed::Mac { separator: Some(b':'), reversed: false })),
    (b"mR", Meaning::Bytes(Pointed::Mac { separator: None, reversed: true })),
    (b"m", Meaning::Bytes(Pointed::Mac { separator: None, reversed: false })),
    (b"UL", Meaning::Bytes(Pointed::Uuid { little: true, upper: true })),
    (b"Ul", Meaning::Bytes(Pointed::Uuid { little: true, upper: false })),
    (b"UB", Meaning::Bytes(Pointed::Uuid { little: false, upper: true })),
    (b"Ub", Meaning::Bytes(Pointed::Uuid { little: false, upper: false })),
    (b"U", Meaning::Bytes(Pointed::Uuid { little: false, upper: false })),
    (b"hC", Meaning::Bytes(Pointed::Hex { separator: Some(b':') })),
    (b"hD", Meaning::Bytes(Pointed::Hex { separator: Some(b'-') })),
    (b"hN", Meaning::Bytes(Pointed::Hex { separator: None })),
    (b"h", Meaning::Bytes(Pointed::Hex { separator: Some(b' ') })),
    (b"bl", Meaning::Bytes(Pointed::Bits { list: true })),
    (b"b", Meaning::Bytes(Pointed::Bits { list: false })),
    (b"SR", Meaning::Function { offset: true }),
    (b"S", Meaning::Function { offset: true }),
    (b"sR", Meaning::Function { offset: false }),
    (b"s", Meaning::Function { offset: false }),
    (b"F", Meaning::Function { offset: true }),
    (b"f", Meaning::Function { offset: false }),
    (b"Bb", Meaning::Function { offset: true }),
    (b"B", Meaning::Function { offset: true }),
    // Their data is in kernel memory, not in the record: only the address can be shown.
    (b"K", Meaning::Address),
    (b"x", Meaning::Address),
    (b"e", Meaning::Address),
    (b"d", Meaning::Address),
    (b"D", Meaning::Address),
    (b"a", Meaning::Address),
];

/// The known suffix at the start of `text`.
pub(super) fn suffix(text: &[u8]) -> &[u8] {
    let known = SUFFIXES.iter().find(|suffix| text.starts_with(suffix.0));
    known.and_then(|suffix| text.get(..suffix.0.len())).unwrap_or(&[])
}

/// The meaning of a suffix.
pub(super) fn parse(suffix: &[u8]) -> Meaning {
    let known = SUFFIXES.iter().find(|known| known.0 == suffix);
    known.map_or(Meaning::Address, |known| known.1)
}

/// Size of the data that the pointer refers to; for hex it is the width.
pub(super) fn size(pointed: Pointed, width: usize, socket: usize) -> usize {
    match pointed {
        Pointed::Ip4 { .. } => 4,
        Pointed::Ip6 { .. } | Pointed::Uuid { .. } => 16,
        Pointed::Mac { .. } => 6,
        Pointed::Socket { .. } => socket,
        // The kernel shows one byte without a width, and at most 64.
        Pointed::Hex { .. } => width.clamp(1, 64),
        Pointed::Bits { .. } => 0,
    }
}

/// Appends the bytes in the format of their conversion.
pub(super) fn write(out: &mut Vec<u8>, pointed: Pointed, bytes: &[u8]) {
    match pointed {
        Pointed::Ip4 { zeros, reversed } => ip4(out, bytes, zeros, reversed),
        Pointed::Ip6 { colons, compressed: false } => ip6(out, bytes, colons),
        Pointed::Ip6 { compressed: true, .. } => ip6_compressed(out, bytes),
        Pointed::Socket { port, compressed, zeros } => socket(out, bytes, port, compressed, zeros),
        Pointed::Mac { separator, reversed: true } => {
            joined(out, bytes.iter().rev(), separator);
        }
        Pointed::Mac { separator, reversed: false } | Pointed::Hex { separator } => {
            joined(out, bytes.iter(), separator);
        }
        Pointed::Uuid { little, upper } => uuid(out, bytes, little, upper),
        Pointed::Bits { .. } => {}
    }
}

/// Appends bytes in hex with `separator` between them.
pub(super) fn joined<'b>(
    out: &mut Vec<u8>,
    bytes: impl Iterator<Item = &'b u8>,
    separator: Option<u8>,
) {
    for (index, &byte) in bytes.enumerate() {
        if index > 0 {
            out.extend(separator);
        }
        digits::hex_byte(out, byte);
    }
}

fn ip4(out: &mut Vec<u8>, bytes: &[u8], zeros: bool, reversed: bool) {
    let part = |out: &mut Vec<u8>, index: usize, byte: u8| {
        if index > 0 {
            out.push(b'.');
        }
        let width = if zeros { 3 } else { 0 };
        let shape = digits::Shape { zero: true, width, ..digits::Shape::default() };
        digits::unsigned(out, u64::from(byte), Radix::Decimal, shape);
    };
    if reversed {
        bytes.iter().rev().enumerate().for_each(|(index, &byte)| part(out, index, byte));
    } else {
        bytes.iter().enumerate().for_each(|(index, &byte)| part(out, index, byte));
    }
}

fn ip6(out: &mut Vec<u8>, bytes: &[u8], colons: bool) {
    for (index, &byte) in bytes.iter().enumerate() {
        if colons && index > 0 && index.is_multiple_of(2) {
            out.push(b':');
        }
        digits::hex_byte(out, byte);
    }
}

fn ip6_compressed(out: &mut Vec<u8>, bytes: &[u8]) {
    let Some(bytes) = bytes.first_chunk::<16>() else { return };
    let address = std::net::Ipv6Addr::from(*bytes);
    // The library uses the kernel's format: RFC 5952 with mapped IPv4 addresses in decimal. Writing
    // to memory cannot fail.
    let _ = write!(out, "{address}");
}

fn socket(out: &mut Vec<u8>, bytes: &[u8], port: bool, compressed: bool, zeros: bool) {
    // The family is in the recorder's byte order, and below 256 in either.
    let family = bytes.iter().take(2).fold(0u8, |all, &byte| all | byte);
    let shown = |out: &mut Vec<u8>| {
        out.push(b':');
        let number = bytes.get(2..4).and_then(|port| port.first_chunk::<2>());
        let number = u16::from_be_bytes(number.copied().unwrap_or_default());
        digits::plain(out, u64::from(number), Radix::Decimal);
    };
    match family {
        2 => {
            ip4(out, bytes.get(4..8).unwrap_or(&[]), zeros, false);
            if port {
                shown(out);
            }
        }
        10 => {
            if port {
                out.push(b'[');
            }
            let address = bytes.get(8..24).unwrap_or(&[]);
            if compressed {
                ip6_compressed(out, address)
            } else {
                ip6(out, address, !zeros)
            }
            if port {
                out.push(b']');
                shown(out);
            }
        }
        _ => {}
    }
}

fn uuid(out: &mut Vec<u8>, bytes: &[u8], little: bool, upper: bool) {
    let order: [usize; 16] = if little {
        [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15]
    } else {
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
    };
    let start = out.len();
    for (index, from) in order.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        digits::hex_byte(out, bytes.get(from).copied().unwrap_or(0));
    }
    if upper && let Some(tail) = out.get_mut(start..) {
        tail.make_ascii_uppercase();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(suffix: &[u8], bytes: &[u8]) -> String {
        let Meaning::Bytes(pointed) = parse(suffix) else { panic!("not about bytes") };
        let mut out = Vec::new();
        write(&mut out, pointed, bytes);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn network_addresses_are_shown() {
        assert_eq!(shown(b"I4", &[192, 168, 0, 1]), "192.168.0.1");
        assert_eq!(shown(b"i4", &[192, 168, 0, 1]), "192.168.000.001");
        assert_eq!(shown(b"I4h", &[1, 0, 168, 192]), "192.168.0.1");
        assert_eq!(shown(b"M", &[0, 1, 2, 0xab, 4, 5]), "00:01:02:ab:04:05");
        assert_eq!(shown(b"mR", &[0, 1, 2, 3, 4, 5]), "050403020100");
        let six = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(shown(b"I6c", &six), "fe80::1");
        assert_eq!(shown(b"I6", &six), "fe80:0000:0000:0000:0000:0000:0000:0001");
        let socket = [2, 0, 0, 80, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(shown(b"ISpc", &socket), "10.0.0.1:80");
    }

    #[test]
    fn uuids_come_in_both_orders() {
        let bytes: Vec<u8> = (0..16).map(|byte| byte | 0xa0).collect();
        assert_eq!(shown(b"Ub", &bytes), "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
        assert_eq!(shown(b"UL", &bytes), "A3A2A1A0-A5A4-A7A6-A8A9-AAABACADAEAF");
    }

    #[test]
    fn a_suffix_is_the_longest_known() {
        assert_eq!(suffix(b"hN]"), b"hN");
        assert_eq!(suffix(b"I6c,"), b"I6c");
        assert_eq!(suffix(b", "), b"");
        assert_eq!(suffix(b"S+x"), b"S");
    }
}
