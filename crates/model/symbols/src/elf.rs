//! The functions of an ELF file, and the relation of its offsets to its addresses.

use std::cmp::Reverse;

use object::elf::{
    FileHeader32, FileHeader64, PF_X, PT_LOAD, SHF_EXECINSTR, SHT_DYNSYM, SHT_SYMTAB, STB_GLOBAL,
    STB_WEAK, STT_FUNC, STT_GNU_IFUNC, SectionType, SymbolBind,
};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym};
use object::{FileKind, Object};
use perfdata::BuildId;

/// Maximum functions of a file: the largest browsers have a million.
const MAX_FUNCTIONS: usize = 1 << 21;

/// Maximum number of mapped segments of a file.
const MAX_SEGMENTS: usize = 64;

/// Maximum functions to check before an address: the nearest ones can be nested in a larger one.
const MAX_CANDIDATES: usize = 16;

/// Maximum bytes of a name.
const MAX_NAME_BYTES: usize = 1 << 14;

/// Why a file's functions cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// It is not an ELF file, or has an unknown format.
    #[error("no ELF file")]
    NotElf,
    /// Its headers or tables are damaged.
    #[error("damaged: {0}")]
    Damaged(String),
}

/// A segment that is mapped as code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the file in bytes.
    pub file_offset: u64,
    /// Size in the file in bytes; 0 in files with only debug information.
    pub file_len: u64,
    /// Its address in the file's own address space.
    pub address: u64,
    /// Size in memory in bytes.
    pub len: u64,
}

/// A function: its addresses, and the position of its name in the file.
#[derive(Clone, Copy, Debug)]
struct Entry {
    address: u64,
    end: u64,
    name: u64,
}

/// A function at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function<'f> {
    /// Its symbol name.
    pub name: &'f [u8],
    /// Bytes from its start to the address.
    pub offset: u64,
}

/// The functions of an ELF file.
#[derive(Clone, Debug, Default)]
pub struct ElfFunctions {
    /// The file's build id.
    pub build_id: Option<BuildId>,
    /// Its code segments.
    pub segments: Vec<Segment>,
    /// Whether it has all functions, not only exported ones.
    pub is_whole: bool,
    entries: Vec<Entry>,
    /// Range of the names in the file.
    names: (u64, u64),
}

impl ElfFunctions {
    /// Reads the tables of a file.
    ///
    /// # Errors
    /// If it is not an ELF file, or if its tables are damaged.
    pub fn parse(file: &[u8]) -> Result<Self, ElfError> {
        match FileKind::parse(file) {
            Ok(FileKind::Elf64) => Self::parse_as::<FileHeader64<object::Endianness>>(file),
            Ok(FileKind::Elf32) => Self::parse_as::<FileHeader32<object::Endianness>>(file),
            _ => Err(ElfError::NotElf),
        }
    }

    fn parse_as<H: FileHeader<Endian = object::Endianness>>(file: &[u8]) -> Result<Self, ElfError> {
        let damaged = |error: object::Error| ElfError::Damaged(error.to_string());
        let elf = ElfFile::<H>::parse(file).map_err(damaged)?;
        let build_id = elf.build_id().ok().flatten().filter(|id| !id.is_empty());
        let mut found = Self {
            build_id: build_id.map(BuildId::new),
            segments: segments(&elf),
            ..Self::default()
        };
        let sections = elf.elf_section_table();
        for kind in [SHT_SYMTAB, SHT_DYNSYM] {
            found.is_whole = kind == SHT_SYMTAB;
            found.read::<H>(file, elf.endian(), sections, kind).map_err(damaged)?;
            if !found.entries.is_empty() {
                return Ok(found);
            }
        }
        Ok(found)
    }

    /// The build id of a file, without reading its symbol tables.
    #[must_use]
    pub fn build_id_of(file: &[u8]) -> Option<BuildId> {
        fn read_build_id<H: FileHeader<Endian = object::Endianness>>(
            file: &[u8],
        ) -> Option<BuildId> {
            let elf = ElfFile::<'_, H>::parse(file).ok()?;
            elf.build_id().ok().flatten().filter(|id| !id.is_empty()).map(BuildId::new)
        }
        match FileKind::parse(file) {
            Ok(FileKind::Elf64) => read_build_id::<FileHeader64<object::Endianness>>(file),
            Ok(FileKind::Elf32) => read_build_id::<FileHeader32<object::Endianness>>(file),
            _ => None,
        }
    }

    /// Reads the functions of a symbol table.
    fn read<H: FileHeader<Endian = object::Endianness>>(
        &mut self,
        file: &[u8],
        endian: H::Endian,
        sections: &SectionTable<'_, H>,
        kind: SectionType,
    ) -> Result<(), object::Error> {
        let table = sections.symbols(endian, file, kind)?;
        let Ok(strings) = sections.section(table.string_section()) else { return Ok(()) };
        let Some((names_at, names_len)) = strings.file_range(endian) else { return Ok(()) };
        self.names = (names_at, names_at.saturating_add(names_len));
        let mut ranked: Vec<(Entry, Rank)> = Vec::new();
        for (index, symbol) in table.enumerate() {
            let is_code = matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC);
            let name = u64::from(symbol.st_name(endian));
            if !is_code || name == 0 || ranked.len() >= MAX_FUNCTIONS {
                continue;
            }
            let Ok(Some(index)) = table.symbol_section(endian, symbol, index) else { continue };
            let Ok(section) = sections.section(index) else { continue };
            let (from, len): (u64, u64) =
                (section.sh_addr(endian).into(), section.sh_size(endian).into());
            let is_code = section.sh_flags(endian).contains(SHF_EXECINSTR);
            let address: u64 = symbol.st_value(endian).into();
            let section_end = from.saturating_add(len);
            if !is_code || address < from || address >= section_end {
                continue;
            }
            let size: u64 = symbol.st_size(endian).into();
            let end = if size == 0 { section_end } else { address.saturating_add(size) };
            let entry =
                Entry { address, end: end.min(section_end), name: names_at.saturating_add(name) };
            let rank = Rank::new(size, symbol.st_bind(), self.name(file, &entry));
            ranked.push((entry, rank));
        }
        self.entries = best(ranked);
        Ok(())
    }

    /// The function at an address of the file; `file` is the parsed content.
    #[must_use]
    pub fn at<'f>(&self, file: &'f [u8], address: u64) -> Option<Function<'f>> {
        let (_, entry) = self.entry_at(address)?;
        let offset = address.checked_sub(entry.address)?;
        Some(Function { name: self.name(file, entry), offset })
    }

    /// The index of the function at an address, and its start.
    pub(crate) fn number_at(&self, address: u64) -> Option<(usize, u64)> {
        self.entry_at(address).map(|(number, entry)| (number, entry.address))
    }

    fn entry_at(&self, address: u64) -> Option<(usize, &Entry)> {
        let after = self.entries.partition_point(|entry| entry.address <= address);
        let before = self.entries.iter().enumerate().take(after).rev().take(MAX_CANDIDATES);
        before.into_iter().find(|(_, entry)| address < entry.end)
    }

    fn name<'f>(&self, file: &'f [u8], entry: &Entry) -> &'f [u8] {
        let end = self.names.1.min(entry.name.saturating_add(MAX_NAME_BYTES as u64));
        let range = usize::try_from(entry.name).ok().zip(usize::try_from(end).ok());
        let text = range.and_then(|(from, to)| file.get(from..to.min(file.len())));
        text.and_then(|text| text.split(|&byte| byte == 0).next()).unwrap_or_default()
    }

    /// The number of functions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no functions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The file's own address of one of its offsets.
    #[must_use]
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let into = |segment: &Segment| offset.checked_sub(segment.file_offset);
        let inside = |segment: &&Segment| into(segment).is_some_and(|into| into < segment.file_len);
        let segment = self.segments.iter().find(inside)?;
        segment.address.checked_add(into(segment)?)
    }

    /// The file's own address of an offset in the mapped file, for a file with only debug
    /// information.
    ///
    /// Such a file can have other offsets and less code, or its original headers. It has the size
    /// of the code in memory: if `mapped`, the offset and length of the mapping, has the same
    /// number of pages, it is that code.
    #[must_use]
    pub fn address_of_mapped(&self, offset: u64, mapped: (u64, u64)) -> Option<u64> {
        if self.segments.iter().all(|segment| segment.file_len == segment.len) {
            return self.address_of(offset);
        }
        let [segment] = self.segments.as_slice() else { return None };
        let into = offset.checked_sub(mapped.0).filter(|into| *into < mapped.1)?;
        let begin = segment.address.checked_sub(segment.address.checked_rem(PAGE)?)?;
        let end = segment.address.checked_add(segment.len)?.checked_next_multiple_of(PAGE)?;
        (end.checked_sub(begin) == Some(mapped.1)).then_some(())?;
        begin.checked_add(into)
    }
}

/// Mappings are page-aligned. With larger pages the lengths differ, so no function is named
/// wrongly.
const PAGE: u64 = 4096;

fn segments<H: FileHeader<Endian = object::Endianness>>(elf: &ElfFile<'_, H>) -> Vec<Segment> {
    let endian = elf.endian();
    let is_code = |header: &&H::ProgramHeader| {
        header.p_type(endian) == PT_LOAD && header.p_flags(endian).contains(PF_X)
    };
    let code = elf.elf_program_headers().iter().filter(is_code).take(MAX_SEGMENTS);
    code.map(|header| Segment {
        file_offset: header.p_offset(endian).into(),
        file_len: header.p_filesz(endian).into(),
        address: header.p_vaddr(endian).into(),
        len: header.p_memsz(endian).into(),
    })
    .collect()
}

/// The rank of a name among those with the same address; `perf` uses the same order. The smallest
/// is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    without_size: bool,
    weak: bool,
    local: bool,
    underscores: usize,
    longest: Reverse<usize>,
}

impl Rank {
    fn new(size: u64, bind: SymbolBind, name: &[u8]) -> Self {
        Self {
            without_size: size == 0,
            weak: bind == STB_WEAK,
            local: bind != STB_GLOBAL,
            underscores: name.iter().take_while(|&&byte| byte == b'_').count(),
            longest: Reverse(name.len()),
        }
    }
}

/// Selects one function per address, sorted by address.
fn best(mut ranked: Vec<(Entry, Rank)>) -> Vec<Entry> {
    ranked.sort_by_key(|(entry, rank)| (entry.address, *rank));
    ranked.dedup_by_key(|(entry, _)| entry.address);
    ranked.into_iter().map(|(entry, _)| entry).collect()
}
