//! The texts that decode an agent's pages: the agent sends a trace.dat without pages.

use std::io;

use channel::TraceCmd;
use channel::wire::trace_cmd::{Message, ReadError};
use channel::wire::{GuestHello, Started};
use os::waits::Wait;
use raw_bytes::{ByteOrder, LongSize};
use tracedat::{Section, TraceDat};
use tracefs::{EventText, Texts, page_size};

use crate::guest::{GuestTexts, PAGE_BYTES};

/// Max size of the file; symbols of big kernels have 20 MiB.
const MAX_BYTES: usize = 48 << 20;
/// Max number of formats; big kernels have 3000 events.
const MAX_FORMATS: usize = 20_000;
const TOO_MUCH: &str = "it sends more metadata than any machine can have";
/// Max bytes of a name or a line.
const MAX_LINE: usize = 4096;

/// An agent's description of its machine, bounded and checked.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) texts: GuestTexts,
    pub(crate) clock: String,
    pub(crate) clock_line: String,
    pub(crate) page_bytes: u32,
    pub(crate) long_bytes: u8,
    pub(crate) big_endian: bool,
    uname: String,
    agent: String,
}

impl Metadata {
    /// Receives and parses the file.
    ///
    /// # Errors
    /// When it does not arrive, is too long, or is not a valid trace.dat.
    pub(crate) fn receive(agent: &mut TraceCmd, wait: Wait<'_>) -> io::Result<Self> {
        let file = file(agent, wait)?;
        Self::read(&file).map_err(|text| io::Error::new(io::ErrorKind::InvalidData, text))
    }

    fn read(file: &[u8]) -> Result<Self, String> {
        let what = "it sends invalid metadata";
        let dat = TraceDat::parse(file).map_err(|error| format!("{what}: {error}"))?;
        if dat.formats.ftrace.len().saturating_add(dat.formats.events.len()) > MAX_FORMATS {
            return Err(TOO_MUCH.into());
        }
        let mut remaining = MAX_BYTES;
        let mut section = |section: &Option<Section>| {
            let read = section.as_ref().and_then(|section| section.read(file).ok());
            let text = read.map(std::borrow::Cow::into_owned).unwrap_or_default();
            // A compressed text may have any size: all texts together are bounded.
            remaining = remaining.checked_sub(text.len()).ok_or(TOO_MUCH)?;
            Ok::<_, String>(text)
        };
        let header_page = dat.formats.header_page.clone();
        let page_bytes = page_size(&header_page);
        if header_page.is_empty() || !PAGE_BYTES.contains(&page_bytes) {
            return Err(format!("{what}: no format describes its pages of {page_bytes} bytes"));
        }
        let events = dat.formats.events.iter().filter(|event| is_name(&event.system));
        let event = |event: &tracedat::EventFormat| EventText {
            system: event.system.to_string(),
            text: event.text.clone(),
        };
        let texts = Texts {
            header_page,
            header_event: dat.formats.header_event.clone(),
            ftrace: dat.formats.ftrace.clone(),
            events: events.map(event).collect(),
            kallsyms: section(&dat.kallsyms)?,
            printk: section(&dat.printk)?,
        };
        let line = |text: Option<&str>| {
            let text = text.unwrap_or("").trim();
            text.chars().filter(|c| !c.is_control()).take(MAX_LINE).collect::<String>()
        };
        Ok(Self {
            texts: GuestTexts::complete(texts, section(&dat.cmdlines)?),
            clock: line(dat.metadata.selected_clock().or(Some("local"))),
            clock_line: line(dat.metadata.trace_clock.as_deref()),
            page_bytes,
            long_bytes: if dat.abi().long == LongSize::Four { 4 } else { 8 },
            big_endian: dat.header.order == ByteOrder::Big,
            uname: line(dat.metadata.uname.as_deref()),
            agent: line(dat.metadata.recorder_version.as_deref()),
        })
    }

    /// Events that were requested by full name and are not recorded.
    pub(crate) fn missing(&self, patterns: &[String]) -> Vec<String> {
        let is_literal = |name: &&String| !name.contains(['*', '?', '^', '$', '[']);
        let is_there = |name: &str| {
            let (system, event) =
                name.split_once([':', '/']).map_or((None, name), |(s, e)| (Some(s), e));
            self.texts.texts.events.iter().any(|text| {
                let named = text.text.lines().next().and_then(|line| line.strip_prefix("name: "));
                let is_event = named == Some(event) || (system.is_none() && text.system == event);
                is_event && system.is_none_or(|system| text.system == system)
            })
        };
        let missing =
            patterns.iter().filter(is_literal).filter(|name| *name != "all" && !is_there(name));
        missing.map(|name| format!("it does not have {name} and so does not record it")).collect()
    }

    /// The metadata as hyperscope-agent's hello.
    pub(crate) fn hello(&self, cpus: usize) -> GuestHello {
        GuestHello {
            uname: self.uname.clone(),
            agent: self.agent.clone(),
            big_endian: self.big_endian,
            long_bytes: self.long_bytes,
            page_bytes: self.page_bytes,
            cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
            ..GuestHello::default()
        }
    }

    /// The parameters of the recording, as a message of hyperscope-agent.
    pub(crate) fn started(&self, cpus: usize) -> Started {
        Started {
            events: u32::try_from(self.texts.texts.events.len()).unwrap_or(u32::MAX),
            clock: self.clock.clone(),
            clock_line: self.clock_line.clone(),
            conversion: None,
            cpus: (0..u32::try_from(cpus).unwrap_or(u32::MAX)).collect(),
            ..Started::default()
        }
    }
}

/// A system becomes the name of a folder.
fn is_name(system: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    !system.is_empty() && system.chars().all(is_plain)
}

/// Receives the bytes of the file, from as many messages as needed.
fn file(agent: &mut TraceCmd, wait: Wait<'_>) -> io::Result<Vec<u8>> {
    let mut file = Vec::new();
    let wrong = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidData, text.to_owned()));
    loop {
        match agent.receive(wait) {
            Ok(Some(Message::Data(bytes))) => file.extend_from_slice(&bytes),
            Ok(Some(Message::EndOfData)) => return Ok(file),
            // A peer that sends endlessly has the same deadline as a silent one.
            Ok(Some(_)) if wait.is_over() => {
                return wrong("it did not send the formats of its pages in time");
            }
            Ok(Some(Message::NotSupported)) => {}
            Ok(Some(_)) => agent.send_within(&Message::NotSupported, wait)?,
            Ok(None) => return wrong("it did not send the formats of its pages"),
            Err(ReadError::Closed) => {
                return wrong(
                    "it closed the connection before it started: see the agent's own output",
                );
            }
            Err(error) => return Err(io::Error::other(error)),
        }
        if file.len() > MAX_BYTES {
            return wrong(TOO_MUCH);
        }
    }
}

#[cfg(test)]
mod tests {
    use tracedat::Version;

    use super::super::hostile::metadata_of;
    use super::*;

    fn event(system: &str, name: &str) -> EventText {
        EventText { system: system.into(), text: format!("name: {name}\nID: 1\n") }
    }

    fn metadata(events: Vec<EventText>) -> Metadata {
        Metadata {
            texts: GuestTexts::complete(Texts { events, ..Texts::default() }, Vec::new()),
            clock: "local".into(),
            clock_line: "[local]".into(),
            page_bytes: 4096,
            long_bytes: 8,
            big_endian: false,
            uname: String::new(),
            agent: String::new(),
        }
    }

    #[test]
    fn events_that_are_not_recorded_are_reported() {
        let metadata =
            metadata(vec![event("sched", "sched_switch"), event("irq", "softirq_entry")]);
        let missing = |pattern: &str| !metadata.missing(&[pattern.to_owned()]).is_empty();
        for there in ["sched", "sched:sched_switch", "softirq_entry", "irq:*", "all"] {
            assert!(!missing(there), "{there}");
        }
        for not in ["kvm", "kvm:kvm_exit", "irq:sched_switch", "nothing"] {
            assert!(missing(not), "{not}");
        }
    }

    /// Agents before 3.0 send version 6.
    #[test]
    fn files_of_both_versions_are_read() {
        for version in [Version::V6, Version::V7] {
            let metadata = Metadata::read(&metadata_of(version, 3)).unwrap();
            assert_eq!(metadata.started(2).events, 3);
            assert_eq!((metadata.page_bytes, metadata.long_bytes), (4096, 8));
            assert_eq!(metadata.texts.cmdlines, b"1 init\n");
            assert_eq!((metadata.clock.as_str(), metadata.hello(2).cpus), ("local", 2));
        }
        let many = Metadata::read(&metadata_of(Version::V7, MAX_FORMATS + 1)).unwrap_err();
        assert_eq!(many, TOO_MUCH);
    }

    #[test]
    fn what_is_no_file_is_refused() {
        for bytes in [&b""[..], b"\x17\x08\x44tracing7\0", &[0xff; 5000]] {
            assert!(Metadata::read(bytes).unwrap_err().contains("invalid metadata"));
        }
    }
}
