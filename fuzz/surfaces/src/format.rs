//! An event's format text with a record.
//!
//! The first byte selects byte order and long size; the text ends at the first NUL, and the record
//! follows.

use ftrace::eventfmt::EventFormat;
use raw_bytes::{Abi, ByteOrder, LongSize};

use crate::printing::Kernel;

/// Parses the text and prints the record.
pub fn run(bytes: &[u8]) {
    let Some((&flags, rest)) = bytes.split_first() else { return };
    let (text, record) = split_nul(rest);
    for system in ["kvm", "ftrace"] {
        match EventFormat::parse(system, text) {
            Ok(format) => {
                let (blank, size) = (format.blank_record(), format.record_size());
                assert!(blank.len() == size && format.full_name().starts_with(system));
                let kernel = Kernel::new(abi(flags), b"%s %d");
                kernel.print(&format, record);
                kernel.print(&format, &blank);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Byte order and long size from the two lowest bits.
pub(crate) fn abi(flags: u8) -> Abi {
    let order = if flags & 1 == 0 { ByteOrder::Little } else { ByteOrder::Big };
    let long = if flags & 2 == 0 { LongSize::Eight } else { LongSize::Four };
    Abi { order, long }
}

/// The bytes before and after the first NUL.
pub(crate) fn split_nul(bytes: &[u8]) -> (&[u8], &[u8]) {
    let at = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let (text, rest) = bytes.split_at(at);
    (text, rest.get(1..).unwrap_or_default())
}
