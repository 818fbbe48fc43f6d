//! Everything that readers need to decode pages: event formats, symbols, names.

use std::fs;
use std::path::{Path, PathBuf};

use os::folder::Folder;

use crate::error::{Result, TracefsError};
use crate::instance::Instance;
use crate::mounted::{folders, read};

/// The `format` text of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventText {
    /// Its system: `kvm`.
    pub system: String,
    pub text: String,
}

/// All texts that decode a machine's pages, unchanged from its kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// `events/header_page`.
    pub header_page: String,
    /// `events/header_event`.
    pub header_event: String,
    /// Formats of ftrace's own events.
    pub ftrace: Vec<String>,
    /// Formats of the recorded events.
    pub events: Vec<EventText>,
    /// `/proc/kallsyms`.
    pub kallsyms: Vec<u8>,
    /// `printk_formats`.
    pub printk: Vec<u8>,
}

impl Texts {
    /// Reads the formats of these events (`SYSTEM:NAME`) and of ftrace's own.
    ///
    /// # Errors
    /// When one of the events does not exist.
    pub fn read(tracefs: &Path, instance: &Instance, events: &[String]) -> Result<Self> {
        let folder = instance.file("events");
        let ftrace_folder = tracefs.join("events/ftrace");
        let format = |path: PathBuf| read(&path.join("format"));
        let ftrace =
            folders(&ftrace_folder)?.into_iter().map(|event| format(ftrace_folder.join(event)));
        let event = |event: &String| {
            let (system, name) = event.split_once(':').unwrap_or(("", event));
            let text = format(folder.join(system).join(name))?;
            Ok(EventText { system: system.to_owned(), text })
        };
        // Symbols are optional: nothing depends on them.
        let optional = |path: PathBuf| fs::read(path).unwrap_or_default();
        Ok(Self {
            header_page: read(&tracefs.join("events/header_page"))?,
            header_event: read(&tracefs.join("events/header_event"))?,
            ftrace: ftrace.collect::<Result<_>>()?,
            events: events.iter().map(event).collect::<Result<_>>()?,
            kallsyms: optional("/proc/kallsyms".into()),
            printk: optional(tracefs.join("printk_formats")),
        })
    }

    /// Writes the texts and the list of clocks into a folder, laid out like tracefs: they make a folder of pages
    /// readable.
    ///
    /// # Errors
    /// When a file can't be written.
    pub fn write(&self, to: &Folder, clock_line: &str) -> Result<()> {
        let events = subfolder(to, "events")?;
        write(&events, "header_page", self.header_page.as_bytes())?;
        write(&events, "header_event", self.header_event.as_bytes())?;
        let of_ftrace = self.ftrace.iter().map(|text| ("ftrace", text));
        let others = self.events.iter().map(|event| (event.system.as_str(), &event.text));
        for (system, text) in of_ftrace.chain(others) {
            let event = subfolder(&subfolder(&events, system)?, event_name(text))?;
            write(&event, "format", text.as_bytes())?;
        }
        write(to, "kallsyms", &self.kallsyms)?;
        write(to, "printk_formats", &self.printk)?;
        write(to, "trace_clock", clock_line.as_bytes())
    }

    /// Size of a page.
    #[must_use]
    pub fn page_size(&self) -> u32 {
        page_size(&self.header_page)
    }
}

/// The name in the first line of a `format` text. The text may come from a guest, and the name becomes a folder's name.
fn event_name(format: &str) -> &str {
    let name = format.lines().next().and_then(|line| line.strip_prefix("name: ")).unwrap_or("");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) { name } else { "unknown" }
}

fn subfolder(folder: &Folder, name: &str) -> Result<Folder> {
    folder.subfolder(name).map_err(TracefsError::io("make", &folder.path().join(name)))
}

fn write(folder: &Folder, name: &str, bytes: &[u8]) -> Result<()> {
    folder.overwrite(name, bytes).map_err(TracefsError::io("write", &folder.path().join(name)))
}

/// The size of a ring buffer page: offset plus size of its data.
#[must_use]
pub fn page_size(header_page: &str) -> u32 {
    let line = header_page.lines().find(|line| line.contains(" data;")).unwrap_or("");
    let number = |key: &str| {
        let text = line.split(';').find_map(|part| part.trim().strip_prefix(key))?;
        text.parse::<u32>().ok()
    };
    let size = number("offset:").zip(number("size:")).and_then(|(at, size)| at.checked_add(size));
    size.filter(|size| size.is_power_of_two()).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_out_of_no_folder() {
        assert_eq!(event_name("name: kvm_exit\nID: 1"), "kvm_exit");
        for wrong in ["name: ../../x\n", "name: \n", "", "x"] {
            assert_eq!(event_name(wrong), "unknown");
        }
    }

    #[test]
    fn a_page_is_its_head_and_its_data() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                    \tfield: char data;\toffset:16;\tsize:16368;\tsigned:1;\n";
        assert_eq!(page_size(text), 16384);
        assert_eq!(page_size("nothing"), 4096);
    }
}
