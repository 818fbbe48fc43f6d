//! Dependencies of an ELF file: its loader and its libraries, read from the file itself.

use std::path::Path;

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, StringTable};

use crate::error::{LabError, Result};

/// Dependencies of a program or library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The loader's path; libraries have none.
    pub(crate) loader: Option<String>,
    /// Names of libraries.
    pub(crate) libraries: Vec<String>,
    /// Folders to look in first; `$ORIGIN` is the file's own.
    pub(crate) folders: Vec<String>,
}

/// Reads the dependencies of the file at `path`, which contains `bytes`.
///
/// # Errors
/// When it is not a valid 64-bit ELF file.
pub(crate) fn needs(path: &Path, bytes: &[u8]) -> Result<Needs> {
    read(bytes).map_err(|error| {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidData, error);
        LabError::io("cannot read the ELF file", path)(source)
    })
}

fn read(bytes: &[u8]) -> object::Result<Needs> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let mut needs = Needs::default();
    for segment in header.program_headers(endian, bytes)? {
        if let Some(loader) = segment.interpreter(endian, bytes)? {
            needs.loader = Some(String::from_utf8_lossy(loader).into_owned());
        }
    }
    let sections = header.sections(endian, bytes)?;
    if let Some((entries, link)) = sections.dynamic(endian, bytes)? {
        let strings = sections.strings(endian, bytes, link)?;
        for entry in entries {
            let value = || text(strings, entry.d_val(endian));
            match entry.d_tag(endian) {
                tag if tag == DT_NEEDED => needs.libraries.extend(value()),
                tag if tag == DT_RUNPATH || tag == DT_RPATH => {
                    needs
                        .folders
                        .extend(value().iter().flat_map(|list| list.split(':')).map(str::to_owned));
                }
                _ => {}
            }
        }
    }
    Ok(needs)
}

fn text(strings: StringTable<'_>, offset: u64) -> Option<String> {
    let bytes = strings.get(u32::try_from(offset).ok()?).ok()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}
