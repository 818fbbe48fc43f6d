//! Properties of a print fmt's text that hold for every record: it has only characters that a
//! terminal shows unchanged, and it needs no kernel symbols.

use super::ir::{ConversionKind, Piece, Text};

/// Whether the text of every record has only printable ASCII characters and tabs.
pub(super) fn is_always_plain(pieces: &[Piece]) -> bool {
    pieces.iter().all(|piece| match piece {
        Piece::Literal(text) => is_plain(text),
        Piece::Conversion(conversion) => match &conversion.what {
            ConversionKind::Signed(..)
            | ConversionKind::Unsigned(..)
            | ConversionKind::Address(_) => true,
            ConversionKind::Text(text) => is_plain_text(text),
            ConversionKind::Character(_)
            | ConversionKind::Function { .. }
            | ConversionKind::Pointed(..) => false,
        },
    })
}

fn is_plain_text(text: &Text) -> bool {
    match text {
        Text::Literal(literal) => is_plain(literal),
        Text::Symbol(symbolic) => symbolic.names.iter().all(|(_, name)| is_plain(name)),
        Text::Flags(flags) => {
            is_plain(&flags.delimiter) && flags.names.iter().all(|(_, name)| is_plain(name))
        }
        Text::Hex(hex) => hex.separator.is_none_or(|separator| is_plain(&[separator])),
        Text::Array(_) => true,
        Text::Choice(parts) => is_plain_text(&parts.1) && is_plain_text(&parts.2),
        Text::Indexed(strings, _) => strings.iter().all(|string| is_plain(string)),
        Text::Printed(pieces) => is_always_plain(pieces),
        Text::Chars(_) | Text::Pointer(_) | Text::HexDump(_) | Text::Mask(_) | Text::List(_) => {
            false
        }
    }
}

/// Whether some text comes from a kernel symbol or a constant string of the kernel.
pub(super) fn needs_kernel(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| match piece {
        Piece::Literal(_) => false,
        Piece::Conversion(conversion) => match &conversion.what {
            ConversionKind::Function { .. } => true,
            ConversionKind::Text(text) => text_needs_kernel(text),
            _ => false,
        },
    })
}

fn text_needs_kernel(text: &Text) -> bool {
    match text {
        Text::Pointer(_) => true,
        Text::Choice(parts) => text_needs_kernel(&parts.1) || text_needs_kernel(&parts.2),
        Text::Printed(pieces) => needs_kernel(pieces),
        _ => false,
    }
}

fn is_plain(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
}
