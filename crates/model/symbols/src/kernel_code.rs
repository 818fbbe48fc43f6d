//! A kernel's code as it ran, including patches by alternatives, static keys and tracers: pages
//! that a recorder copied, in an ELF file like /proc/kcore.

use std::path::Path;

use object::FileKind;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{ElfFile, ProgramHeader};
use sys::FileMap;

use crate::elf::ElfError;

/// Maximum runs of pages in a file: a recorder copies a few thousand pages.
const MAX_RUNS: usize = 1 << 16;

/// Offset of `e_machine` in an ELF header.
const MACHINE_AT: usize = 18;

/// A contiguous range of kernel code.
#[derive(Clone, Copy, Debug)]
struct Run {
    address: u64,
    file_offset: u64,
    len: u64,
}

/// The copied pages.
#[derive(Debug)]
pub struct KernelCode {
    file: FileMap,
    machine: u16,
    /// Sorted by address.
    runs: Vec<Run>,
}

impl KernelCode {
    /// Opens such a file; `None` if it is empty.
    ///
    /// # Errors
    /// If it is not such a file.
    pub fn open(path: &Path) -> Result<Option<Self>, ElfError> {
        if !path.is_file() {
            return Ok(None);
        }
        let file = FileMap::open(path).map_err(|error| ElfError::Damaged(error.to_string()))?;
        // A killed recorder can leave an empty file.
        if file.is_empty() { Ok(None) } else { Self::parse(file).map(Some) }
    }

    /// Parses the header of a file in memory.
    ///
    /// # Errors
    /// As for [`KernelCode::open`].
    pub fn parse(file: FileMap) -> Result<Self, ElfError> {
        if !matches!(FileKind::parse(&*file), Ok(FileKind::Elf64)) {
            return Err(ElfError::NotElf);
        }
        let damaged = |error: object::Error| ElfError::Damaged(error.to_string());
        let elf = ElfFile::<FileHeader64<object::Endianness>>::parse(&*file).map_err(damaged)?;
        let endian = elf.endian();
        let loads =
            elf.elf_program_headers().iter().filter(|header| header.p_type(endian) == PT_LOAD);
        let run = |header: &object::elf::ProgramHeader64<_>| Run {
            address: header.p_vaddr(endian),
            file_offset: header.p_offset(endian),
            len: header.p_filesz(endian),
        };
        let mut runs: Vec<Run> = loads.take(MAX_RUNS).map(run).collect();
        runs.sort_unstable_by_key(|run| run.address);
        let machine = elf_machine(&file).unwrap_or(0);
        Ok(Self { file, machine, runs })
    }

    /// `e_machine` of the file.
    #[must_use]
    pub const fn elf_machine(&self) -> u16 {
        self.machine
    }

    /// At most `max` bytes from an address on, up to the end of the run; empty if they were not
    /// copied.
    #[must_use]
    pub fn from(&self, address: u64, max: usize) -> &[u8] {
        let next = self.runs.partition_point(|run| run.address <= address);
        let bytes = next.checked_sub(1).and_then(|at| self.runs.get(at)).and_then(|run| {
            let into = address.checked_sub(run.address)?;
            let available = usize::try_from(run.len.checked_sub(into)?).ok()?;
            let at = usize::try_from(run.file_offset.checked_add(into)?).ok()?;
            self.file.get(at..at.checked_add(available.min(max))?)
        });
        bytes.unwrap_or_default()
    }
}

/// `e_machine` of a little-endian ELF file: all supported instruction sets are little-endian.
pub(crate) fn elf_machine(file: &[u8]) -> Option<u16> {
    let bytes = file.get(MACHINE_AT..)?.first_chunk::<2>()?;
    Some(u16::from_le_bytes(*bytes))
}
