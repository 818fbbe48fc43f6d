//! Symbols of the kernel that runs here, for a perf.data that it made: perf keeps none in its files.
//!
//! It is the same kernel where the build id is, and where it lies at the same place, which each boot chooses
//! (KASLR).

use std::fs;

use perfdata::{BuildId, Mapping};
use raw_bytes::ByteOrder;

/// What perf calls the kernel, and what is before a symbol of it that says where that was.
const KERNEL: &str = "[kernel.kallsyms]";
/// Notes of the kernel's own (`kernel/ksysfs.c`).
const NOTES: &str = "/sys/kernel/notes";
const KALLSYMS: &str = "/proc/kallsyms";
/// The alignment of the parts of notes.
const NOTE_STEP: u64 = 4;
/// Bytes of all its symbols, at most.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// A kernel, as a perf.data describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedKernel {
    build_id: BuildId,
    /// A symbol of it, and where that was.
    symbol: Vec<u8>,
    address: u64,
}

/// The symbol that a mapping of the kernel's says the place of.
pub(super) fn placed(mapping: &Mapping<'_>) -> Option<(Vec<u8>, u64)> {
    let symbol = mapping.path.strip_prefix(KERNEL.as_bytes())?;
    (!symbol.is_empty()).then(|| (symbol.to_vec(), mapping.file_offset))
}

impl RecordedKernel {
    /// By the build ids of a file, and what it says of the kernel's place.
    pub(super) fn from_build_ids(
        build_ids: &[(BuildId, String)],
        placed: Option<(Vec<u8>, u64)>,
    ) -> Option<Self> {
        let (build_id, _) = build_ids.iter().find(|(_, name)| name == KERNEL)?;
        let (symbol, address) = placed?;
        Some(Self { build_id: *build_id, symbol, address })
    }

    /// The text of all symbols, if this is the running kernel and it shows them to every user.
    pub(crate) fn kallsyms(&self) -> Option<Vec<u8>> {
        let order = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };
        if BuildId::in_notes(&fs::read(NOTES).ok()?, order, NOTE_STEP)? != self.build_id {
            return None;
        }
        let text = fs::read(KALLSYMS).ok().filter(|text| text.len() <= MAX_TEXT_BYTES)?;
        (address(&text, &self.symbol)? == self.address).then_some(text)
    }
}

/// Where a symbol is, by lines of `ADDRESS TYPE NAME`.
fn address(kallsyms: &[u8], symbol: &[u8]) -> Option<u64> {
    let mut lines = kallsyms.split(|&byte| byte == b'\n');
    let address_in = |line: &[u8]| {
        let mut words = line.split(|&byte| byte == b' ');
        let (address, _, name) = (words.next()?, words.next()?, words.next()?);
        let address = std::str::from_utf8(address).ok()?;
        (name == symbol).then(|| u64::from_str_radix(address, 16).ok())?
    };
    lines.find_map(address_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_is_found_by_its_whole_name() {
        let text = b"ffffffff81000000 T _text\nffffffff81000040 T _textual\t[m]\nzz T odd\n";
        assert_eq!(address(text, b"_text"), Some(0xffff_ffff_8100_0000));
        assert_eq!((address(text, b"_tex"), address(text, b"odd")), (None, None));
    }
}
