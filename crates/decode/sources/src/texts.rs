//! The texts that interpret a recording, as a trace.dat stores them: for files derived from it.

use std::fs;
use std::path::Path;

use tracedat::{EventFormat, Formats};

use crate::Recording;
use crate::raw_pages::{MAX_TEXT_BYTES, read_text, sorted_entries};
use crate::text::HEADER_EVENT;

/// The texts that interpret a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// Formats of pages and events.
    pub formats: Formats,
    /// `/proc/kallsyms`.
    pub kallsyms: Vec<u8>,
    /// `printk_formats`.
    pub printk: Vec<u8>,
    /// `saved_cmdlines`.
    pub cmdlines: Vec<u8>,
}

impl Recording {
    /// The recording's texts; a missing or unreadable text is empty.
    #[must_use]
    pub fn texts(&self) -> Texts {
        let formats = self.container.formats().cloned();
        let mut formats = formats.unwrap_or_else(|| of_folder(&self.path.join("events")));
        // Folders of pages rarely have a copy of it, but readers of a trace.dat expect it.
        if formats.header_event.is_empty() {
            HEADER_EVENT.clone_into(&mut formats.header_event);
        }
        let file = self.files.first();
        Texts {
            formats,
            kallsyms: self.names.kallsyms_text.read(file).into_owned(),
            printk: self.names.printk_text.read(file).into_owned(),
            cmdlines: self.cmdlines_text(),
        }
    }

    fn cmdlines_text(&self) -> Vec<u8> {
        let named = self.names.cmdlines().iter().filter(|(thread, _)| *thread != 0);
        let mut lines: Vec<(u32, &str)> = named.collect();
        lines.sort_unstable();
        lines.iter().flat_map(|(thread, name)| format!("{thread} {name}\n").into_bytes()).collect()
    }
}

/// The formats in an `events` folder.
fn of_folder(events: &Path) -> Formats {
    let text = |path: &Path| {
        let bytes = read_text(path, MAX_TEXT_BYTES).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let mut formats = Formats {
        header_page: text(&events.join("header_page")),
        header_event: text(&events.join("header_event")),
        ..Formats::default()
    };
    for system in sorted_entries(events) {
        let name = system.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for event in sorted_entries(&system) {
            let path = event.join("format");
            if !fs::exists(&path).unwrap_or(false) {
                continue;
            }
            let text = text(&path);
            if name == "ftrace" {
                formats.ftrace.push(text);
            } else {
                formats.events.push(EventFormat { system: name.as_str().into(), text });
            }
        }
    }
    formats
}
