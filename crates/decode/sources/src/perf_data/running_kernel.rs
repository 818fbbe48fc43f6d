//! Symbols from the running kernel, for a perf.data of this machine: perf stores none in its files.
//!
//! The kernel is the same if its build id matches, and if it runs at the same address, which each
//! boot randomizes (KASLR).

use std::fs;

use perfdata::{BuildId, Mapping};
use raw_bytes::ByteOrder;

/// perf's name for the kernel, which is also the prefix of a symbol with the kernel's address.
const KERNEL: &str = "[kernel.kallsyms]";
/// The kernel's ELF notes (`kernel/ksysfs.c`).
const NOTES: &str = "/sys/kernel/notes";
const KALLSYMS: &str = "/proc/kallsyms";
/// Alignment of the fields of notes.
const NOTE_STEP: u64 = 4;
/// Maximum bytes of all symbols.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// A kernel according to a perf.data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedKernel {
    build_id: BuildId,
    /// A kernel symbol and its address.
    symbol: Vec<u8>,
    address: u64,
}

/// The symbol whose address a kernel mapping has.
pub(super) fn placed(mapping: &Mapping<'_>) -> Option<(Vec<u8>, u64)> {
    let symbol = mapping.path.strip_prefix(KERNEL.as_bytes())?;
    (!symbol.is_empty()).then(|| (symbol.to_vec(), mapping.file_offset))
}

impl RecordedKernel {
    /// The kernel from a file's build ids and kernel mapping.
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

/// The address of a symbol in lines of `ADDRESS TYPE NAME`.
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
