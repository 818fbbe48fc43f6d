//! Pieces of a kernel's code in ascending order, and the ELF file that stores them: in the format of /proc/kcore, which
//! debuggers can open.

use raw_bytes::ByteOrder;

/// Size of an ELF header, and of a program header (64 bits).
pub(crate) const HEAD: usize = 64;
pub(crate) const PART: usize = 56;
/// Offset of `e_machine` in the header.
pub(crate) const MACHINE: usize = 18;
/// Max runs: `e_phnum` has 16 bits, and its highest value has another meaning.
const MAX_RUNS: usize = 1 << 15;
/// `ET_CORE`, `EV_CURRENT`; `PT_LOAD`, `PF_R | PF_X`.
const CORE: u16 = 4;
const CURRENT: u32 = 1;
pub(crate) const LOAD: u32 = 1;
const READ_EXECUTE: u32 = 5;

/// Why a piece is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PieceError {
    /// It begins before the end of the previous piece.
    #[error("pieces overlap or are out of order")]
    Order,
    /// It ends beyond the last address.
    #[error("a piece ends after the last address")]
    End,
    /// There are too many pieces.
    #[error("there are more pieces than any kernel's code needs")]
    Many,
}

/// Pieces of one kernel's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptCode {
    elf_machine: u16,
    order: ByteOrder,
    /// By address; adjacent pieces are merged.
    runs: Vec<(u64, Vec<u8>)>,
    bytes: u64,
}

impl KeptCode {
    /// Empty code of a processor with this `e_machine`.
    #[must_use]
    pub const fn new(elf_machine: u16, order: ByteOrder) -> Self {
        Self { elf_machine, order, runs: Vec::new(), bytes: 0 }
    }

    /// The processor's `e_machine`.
    #[must_use]
    pub const fn elf_machine(&self) -> u16 {
        self.elf_machine
    }

    /// Contiguous runs of bytes, with their addresses.
    pub fn runs(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.runs.iter().map(|(address, bytes)| (*address, &bytes[..]))
    }

    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds the next piece.
    ///
    /// # Errors
    /// When it is not in order; the code is unchanged then.
    pub fn push(&mut self, address: u64, bytes: &[u8]) -> Result<(), PieceError> {
        if bytes.is_empty() {
            return Ok(());
        }
        address.checked_add(bytes.len() as u64).ok_or(PieceError::End)?;
        let end = self.runs.last().map(|(begin, run)| begin.saturating_add(run.len() as u64));
        let count = self.runs.len();
        match (end, self.runs.last_mut()) {
            (Some(end), _) if address < end => return Err(PieceError::Order),
            (Some(end), Some((_, run))) if address == end => run.extend(bytes),
            _ if count >= MAX_RUNS => return Err(PieceError::Many),
            _ => self.runs.push((address, bytes.to_vec())),
        }
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// The content of the ELF file.
    #[must_use]
    pub fn to_elf(&self) -> Vec<u8> {
        let is_big = self.order == ByteOrder::Big;
        let half = |value: u16| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        let word = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        let long = |value: u64| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut file = b"\x7fELF\x02".to_vec();
        file.extend([if is_big { 2 } else { 1 }, 1]);
        file.resize(MACHINE - 2, 0);
        file.extend([half(CORE), half(self.elf_machine)].concat());
        file.extend(word(CURRENT));
        // No entry point; program headers follow the header; no sections, no flags.
        [0, HEAD as u64, 0].iter().for_each(|&value| file.extend(long(value)));
        file.extend(word(0));
        let count = u16::try_from(self.runs.len()).unwrap_or(u16::MAX);
        [HEAD as u16, PART as u16, count, 0, 0, 0]
            .iter()
            .for_each(|&value| file.extend(half(value)));
        let mut offset = (HEAD + PART * self.runs.len()) as u64;
        for (address, bytes) in self.runs() {
            let len = bytes.len() as u64;
            file.extend([word(LOAD), word(READ_EXECUTE)].concat());
            [offset, address, 0, len, len, 1].iter().for_each(|&value| file.extend(long(value)));
            offset += len;
        }
        self.runs().for_each(|(_, bytes)| file.extend(bytes));
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86_64: u16 = 62;

    fn push_all(pieces: &[(u64, &[u8])]) -> (KeptCode, Vec<PieceError>) {
        let mut code = KeptCode::new(X86_64, ByteOrder::Little);
        let wrong = pieces.iter().filter_map(|(address, bytes)| code.push(*address, bytes).err());
        let wrong = wrong.collect();
        (code, wrong)
    }

    #[test]
    fn pieces_that_follow_each_other_are_one_run() {
        let (code, wrong) = push_all(&[(16, b"abc"), (19, b"de"), (21, b""), (32, b"f")]);
        let runs: Vec<_> = code.runs().collect();
        assert_eq!(runs, [(16, &b"abcde"[..]), (32, b"f")]);
        assert_eq!((code.bytes(), wrong), (6, vec![]));
    }

    #[test]
    fn pieces_that_can_not_be_are_refused_and_change_nothing() {
        let last = u64::MAX - 1;
        let pieces: [(u64, &[u8]); 5] =
            [(16, b"ab"), (17, b"c"), (0, b"d"), (last, b"xy"), (18, b"e")];
        let (code, wrong) = push_all(&pieces);
        assert_eq!(wrong, [PieceError::Order, PieceError::Order, PieceError::End]);
        assert_eq!(code, push_all(&[(16, b"abe")]).0);
    }

    #[test]
    fn there_is_an_end_to_how_many_there_may_be() {
        let mut code = KeptCode::new(X86_64, ByteOrder::Little);
        let all = (0..).map(|at| code.push(at * 2, b"x"));
        let count = all.take_while(Result::is_ok).count();
        assert_eq!(count, MAX_RUNS);
        assert_eq!(code.push(u64::MAX / 2, b"x"), Err(PieceError::Many));
    }

    /// Another program reads the file: objdump of GNU binutils.
    #[test]
    fn objdump_finds_each_run_where_it_is() {
        let (code, _) =
            push_all(&[(0xffff_ffff_8100_0000, b"\x90\xc3"), (0xffff_ffff_c000_0000, b"\xcc")]);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), code.to_elf()).unwrap();
        let objdump =
            std::process::Command::new("objdump").args(["-s", "-h"]).arg(file.path()).output();
        let Ok(output) = objdump else { return testkit::skip!("objdump is missing") };
        let listing = String::from_utf8_lossy(&output.stdout).into_owned();
        if !listing.contains("elf64-x86-64") {
            return testkit::skip!("objdump is of another machine: {listing}");
        }
        assert!(listing.contains("ffffffff81000000 90c3"), "{listing}");
        assert!(listing.contains("ffffffffc0000000 cc"), "{listing}");
    }
}
