//! Names places in code.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use perfdata::BuildId;

use crate::debug_files::{DebugFiles, FoundFiles};
use crate::demangle::demangle;
use crate::files::MappedFile;
use crate::kernel_code::elf_machine;
use crate::machine::{Machine, Place};

/// Maximum functions of all files in memory; beyond it, files are read again.
const MAX_FUNCTIONS: usize = 1 << 22;

/// Maximum open files.
const MAX_OPEN: usize = 1024;

/// The name of a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The function; `None` if unknown.
    pub symbol: Option<Arc<str>>,
    /// Bytes from the function's start; 0 without a function.
    pub into: u64,
    /// The kernel module, or the name of the file; `None` for the kernel itself, or if unknown.
    pub module: Option<Arc<str>>,
    /// The file's build id.
    pub build_id: Option<BuildId>,
    /// Offset in the file in bytes; the address if there is no file.
    pub offset: u64,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.symbol, &self.module) {
            (Some(symbol), Some(module)) => write!(f, "{symbol} [{module}]"),
            (Some(symbol), None) => f.write_str(symbol),
            (None, Some(module)) => write!(f, "{module}+{:#x}", self.offset),
            (None, None) => write!(f, "{:#x}", self.offset),
        }
    }
}

/// Machine code of a function in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileCode<'n> {
    /// The file's `e_machine`.
    pub elf_machine: u16,
    /// The function's start in the file's own address space.
    pub begin: u64,
    /// The code from there on.
    pub bytes: &'n [u8],
}

/// The result of the search for a file, and its names.
#[derive(Debug, Default)]
struct Table {
    found: FoundFiles,
    /// Names by function index.
    names: HashMap<usize, Arc<str>>,
}

/// A file by its build id, and by its path if the path matters.
type FileKey = (BuildId, Option<Arc<[u8]>>);

/// Names places, and caches the files that it has read.
#[derive(Debug, Default)]
pub struct Names {
    files: DebugFiles,
    tables: HashMap<FileKey, Table>,
    functions: usize,
}

impl Names {
    /// Uses these debug files.
    #[must_use]
    pub fn new(files: DebugFiles) -> Self {
        Self { files, ..Self::default() }
    }

    /// Uses files of this system and files from the program's [`fetch_by`](crate::fetch_by) source.
    #[must_use]
    pub fn of_files_here() -> Self {
        Self::new(DebugFiles::of_this_system())
    }

    /// The name of a machine's place.
    pub fn name(&mut self, machine: &Machine<'_>, place: Place) -> Name {
        match place {
            Place::Kernel(address) => kernel(machine, address),
            Place::User(offset) => Name { offset, ..Name::unknown() },
            Place::File { offset, .. } => match machine.file(place) {
                Some(file) => self.in_file(file, machine.is_here, offset),
                None => Name { offset, ..Name::unknown() },
            },
        }
    }

    /// The code of the function at a place in a file, which is `into` bytes from its start: at most
    /// `max` bytes. `None` if the file itself is not available.
    pub fn code(
        &mut self,
        machine: &Machine<'_>,
        place: Place,
        into: u64,
        max: usize,
    ) -> Option<FileCode<'_>> {
        let Place::File { offset, .. } = place else { return None };
        let file = machine.file(place)?;
        let original = self.table(file, machine.is_here)?.found.original.as_ref()?;
        let begin_offset = offset.checked_sub(into)?;
        let begin = original.functions.address_of(begin_offset)?;
        let rest = original.file.get(usize::try_from(begin_offset).ok()?..)?;
        let bytes = rest.get(..max).unwrap_or(rest);
        Some(FileCode { elf_machine: elf_machine(&original.file)?, begin, bytes })
    }

    fn in_file(&mut self, file: &MappedFile, is_here: bool, offset: u64) -> Name {
        let function = self.function(file, is_here, offset);
        let (symbol, into) = function.map_or((None, 0), |(name, into)| (Some(name), into));
        let module = Some(file.name().into());
        Name { symbol, into, module, build_id: file.build_id, offset }
    }

    fn function(
        &mut self,
        file: &MappedFile,
        is_here: bool,
        offset: u64,
    ) -> Option<(Arc<str>, u64)> {
        let table = self.table(file, is_here)?;
        let address = table.found.address_of(offset, file.mapped)?;
        let elf = table.found.functions()?;
        let (number, begin) = elf.functions.number_at(address)?;
        let name = match table.names.get(&number) {
            Some(name) => Arc::clone(name),
            None => {
                let function = elf.functions.at(&elf.file, address)?;
                let text = String::from_utf8_lossy(function.name);
                let name: Arc<str> = demangle(&text).into();
                table.names.insert(number, Arc::clone(&name));
                name
            }
        };
        Some((name, address.saturating_sub(begin)))
    }

    fn table(&mut self, file: &MappedFile, is_here: bool) -> Option<&mut Table> {
        let key = (file.build_id?, is_here.then(|| Arc::clone(&file.path)));
        if !self.tables.contains_key(&key) {
            let found = self.files.find(file, is_here);
            let size = found.functions().map_or(0, |elf| elf.functions.len());
            self.functions = self.functions.saturating_add(size);
            if self.functions > MAX_FUNCTIONS || self.tables.len() >= MAX_OPEN {
                self.tables.clear();
                self.functions = size;
            }
            self.tables.insert(key.clone(), Table { found, ..Table::default() });
        }
        self.tables.get_mut(&key)
    }
}

impl Name {
    /// The name of a place with only an address.
    const fn unknown() -> Self {
        Self { symbol: None, into: 0, module: None, build_id: None, offset: 0 }
    }
}

fn kernel(machine: &Machine<'_>, address: u64) -> Name {
    let mut name = Name { offset: address, ..Name::unknown() };
    if let Some(symbol) = machine.kernel.function(address) {
        let text = |bytes: &[u8]| Arc::<str>::from(String::from_utf8_lossy(bytes));
        // Names of Rust functions are mangled in the kernel, too.
        let demangled = String::from_utf8_lossy(symbol.name);
        name.symbol = Some(demangle(&demangled).into());
        name.module = symbol.module.map(text);
        name.into = symbol.offset;
    }
    name
}
