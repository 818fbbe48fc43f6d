//! Event formats: the texts of `events/*/format` and of the page header, as the kernel wrote them.

use crate::Damage;
use raw_bytes::{Cursor, Damages, LongSize, Truncated};
use std::sync::Arc;

/// The `format` text of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// The system: the folder in `events`, such as `kvm`.
    pub system: Arc<str>,
    /// The kernel's text.
    pub text: String,
}

/// Texts that describe the ring buffer and its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Formats {
    /// `events/header_page`: the fields of a page of the ring buffer.
    pub header_page: String,
    /// `events/header_event`: the layout of records.
    pub header_event: String,
    /// `events/ftrace/*/format`.
    pub ftrace: Vec<String>,
    /// `events/*/*/format` of all other systems, in the order of the file.
    pub events: Vec<EventFormat>,
}

/// Reads `name` with its NUL, then a text preceded by its eight-byte size.
fn named(cursor: &mut Cursor<'_>, name: &'static str) -> Result<String, Damage> {
    let offset = cursor.offset();
    let short = |cut| Damage::short(name, cut);
    if cursor.take(name.len() as u64).map_err(short)? != name.as_bytes() {
        return Err(Damage::new(offset, format!("\"{name}\" is not where it should be")));
    }
    cursor.u8().map_err(short)?;
    sized(cursor).map_err(short)
}

fn sized(cursor: &mut Cursor<'_>) -> Result<String, Truncated> {
    let len = cursor.u64()?;
    cursor.take(len).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// Maximum number of formats: records have 16-bit event ids.
const MAX_FORMATS: usize = 1 << 16;

fn check_count(so_far: usize, offset: u64) -> Result<(), Damage> {
    if so_far < MAX_FORMATS {
        return Ok(());
    }
    Err(Damage::new(
        offset,
        format!("more than {MAX_FORMATS} event formats; the others are ignored"),
    ))
}

impl Formats {
    /// Reads the header info section; `cursor` then is at the data after it.
    pub(crate) fn read_header(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Damage> {
        self.header_page = named(cursor, "header_page")?;
        self.header_event = named(cursor, "header_event")?;
        Ok(())
    }

    /// Reads the ftrace event formats; after truncation, those before it remain.
    pub(crate) fn read_ftrace(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Damage> {
        let short = |cut| Damage::short("ftrace event formats", cut);
        let count = cursor.u32().map_err(short)?;
        self.ftrace.clear();
        for _ in 0..count {
            check_count(self.ftrace.len(), cursor.offset())?;
            self.ftrace.push(sized(cursor).map_err(short)?);
        }
        Ok(())
    }

    /// Reads the event formats of all systems; after truncation, those before it remain.
    pub(crate) fn read_events(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Damage> {
        let short = |cut| Damage::short("event formats", cut);
        let systems = cursor.u32().map_err(short)?;
        self.events.clear();
        for _ in 0..systems {
            let system: Arc<str> = String::from_utf8_lossy(cursor.c_str().map_err(short)?).into();
            let count = cursor.u32().map_err(short)?;
            for _ in 0..count {
                let offset = cursor.offset();
                let text = sized(cursor).map_err(short)?;
                check_count(self.events.len(), offset)?;
                self.events.push(EventFormat { system: Arc::clone(&system), text });
            }
        }
        Ok(())
    }

    /// Size of a kernel `long`, from the `commit` field of the page header.
    ///
    /// The size in the file header is that of user space and can differ (32-bit programs on a
    /// 64-bit kernel).
    #[must_use]
    pub fn kernel_long(&self) -> Option<LongSize> {
        let line = self.header_page.lines().find(|line| {
            let declaration = line.split(';').next().unwrap_or_default();
            declaration.trim().ends_with(" commit")
        })?;
        let size = line.split(';').find_map(|part| part.trim().strip_prefix("size:"))?;
        LongSize::from_bytes(size.trim().parse().ok()?)
    }

    pub(crate) fn check(&self, damages: &mut Damages) {
        if self.header_page.is_empty() {
            damages.note(0, "the header_page text is missing: the page layout is assumed");
        } else if self.kernel_long().is_none() {
            damages.note(
                0,
                "header_page does not give the size of commit: the page layout is assumed",
            );
        }
    }
}
