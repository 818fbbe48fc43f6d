//! The report of `hyperscope info`: the properties and contents of a recording.

mod covered;
mod document;

use analyses::contents::Contents;
use printable::line;
use serde::Serialize;
use sources::{CpuMode, Recording};
use timeline::Vm;

pub use self::covered::Covered;
pub(crate) use self::document::Document;
use self::document::{byte_order, long_bytes};
use crate::Report;
use crate::sentences;
use crate::table::Table;
use crate::units::{count, plural, share, time};

/// Recordings and their contents.
#[derive(Debug)]
pub struct InfoReport {
    /// One per file.
    pub files: Vec<FileInfo>,
}

/// The text about one recording.
#[derive(Debug)]
pub struct FileInfo {
    pub recording: Recording,
    pub contents: Contents,
    /// VMs seen in it.
    pub vms: Vec<Vm>,
    /// Faults that its recorder reported; a full disk leaves no trace in the recording itself.
    pub faults: Vec<String>,
    /// How long guests were recorded while their host was: in a host's recording, all its guests; in a guest's,
    /// only that guest.
    pub covered: Vec<Covered>,
}

impl Report for InfoReport {
    fn headline(&self) -> String {
        match self.files.as_slice() {
            [file] => of_file(file),
            files => {
                let events = files.iter().map(|file| file.contents.total());
                let events = plural(events.fold(0, u64::saturating_add), "event");
                format!("{} with {events}.", plural(files.len() as u64, "recording"))
            }
        }
    }

    fn tables(&self, width: Option<usize>) -> String {
        let is_alone = self.files.len() == 1;
        let text = |file: &FileInfo| {
            let result = if is_alone { String::new() } else { format!("\n{}\n", of_file(file)) };
            result + &file_text(file, width)
        };
        self.files.iter().map(text).collect()
    }

    fn document(&self) -> impl Serialize {
        Document::new(self)
    }

    fn csv(&self) -> Table {
        let mut table = Table::default();
        let (mut paths, mut names, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for file in &self.files {
            for (name, number) in &file.contents.events {
                paths.push(file.recording.path().display().to_string());
                names.push(name.clone());
                counts.push(number.to_string());
            }
        }
        table.names("path", 0, paths);
        table.names("event", 0, names);
        table.names("count", 0, counts);
        table
    }
}

/// How much one recording holds, in a sentence.
fn of_file(file: &FileInfo) -> String {
    let contents = &file.contents;
    let mut out = format!(
        "{}: {}",
        line(&file.recording.path().display().to_string()),
        plural(contents.total(), "event")
    );
    if let (Some(first), Some(last)) = (contents.first_ns(), contents.last_ns()) {
        let span = time(last.saturating_sub(first), file.recording.is_nanoseconds());
        out += &format!(" in {span}");
    }
    let with_events = contents.cpus.iter().filter(|cpu| cpu.events > 0).count() as u64;
    if with_events > 0 {
        out += &format!(" on {}", plural(with_events, "CPU"));
    }
    let vcpus: usize = file.vms.iter().map(|vm| vm.vcpus.len()).sum();
    if vcpus > 0 {
        let vms = plural(file.vms.len() as u64, "VM");
        out += &format!(", {vms} with {}", plural(vcpus as u64, "vCPU"));
    }
    format!("{out}; lost: {}.", line(&lost(file)))
}

fn file_text(file: &FileInfo, width: Option<usize>) -> String {
    let mut out = String::new();
    for (name, value) in facts(file) {
        out += &sentences::after_label(&format!("  {name:<12}"), &line(&value), width);
    }
    for note in file.recording.info().notes.iter().cloned().chain(warnings(file)) {
        out += &sentences::after_label("  ! ", &line(&note), width);
    }
    let (text, _) = events_table(&file.contents).draw(width);
    out + "\n" + &text
}

fn facts(file: &FileInfo) -> Vec<(&'static str, String)> {
    let (recording, contents) = (&file.recording, &file.contents);
    let ns = recording.is_nanoseconds();
    let compression = recording.info().compression.as_deref();
    let mut facts = vec![(
        "format",
        format!(
            "{}{}{}{}",
            recording.info().format,
            compression.map_or_else(String::new, |name| format!(" ({name})")),
            byte_order(recording).map_or_else(String::new, |order| format!(", {order} endian")),
            long_bytes(recording)
                .map_or_else(String::new, |bytes| format!(", {}-bit kernel", bytes * 8))
        ),
    )];
    facts.extend(recording.info().uname.clone().map(|uname| ("machine", uname)));
    let clock = recording.info().clock.clone().unwrap_or_else(|| "unknown".to_owned());
    let unit = if ns { "" } else { ", raw ticks" };
    let resolution_ns = recording.info().resolution_ns;
    let rounded = resolution_ns
        .map(|ns| format!(", times have a resolution of {}, as in the text", time(ns, true)));
    facts.push(("clock", format!("{clock}{unit}{}", rounded.unwrap_or_default())));
    let with_events = contents.cpus.iter().filter(|cpu| cpu.events > 0).count();
    facts.push(("CPUs", format!("{}, {with_events} with events", recording.cpus())));
    facts.push(("events", count(contents.total())));
    if let (Some(first), Some(last)) = (contents.first_ns(), contents.last_ns()) {
        facts.push(("span", time(last.saturating_sub(first), ns)));
    }
    facts.extend(recording.info().samples.iter().map(samples_fact));
    facts.extend(file.covered.iter().map(Covered::fact));
    facts.push(("lost", lost(file)));
    facts.extend(file.faults.iter().map(|fault| ("fault", fault.clone())));
    facts.extend(recording.peer().map(|id| ("aligned to", format!("trace {id:#x}"))));
    facts.extend(file.vms.iter().map(|vm| ("VM", vm_line(vm))));
    facts.extend(recording.info().guests.iter().map(|guest| {
        let name = if guest.name.is_empty() { "(unnamed)" } else { &guest.name };
        (
            "guest",
            format!(
                "{name}, trace {:#x}, {}",
                guest.trace_id,
                plural(guest.vcpus.len() as u64, "vCPU")
            ),
        )
    }));
    facts
}

/// Number of samples of an event, by mode.
fn samples_fact((name, counts): (&String, &[u64; CpuMode::ALL.len()])) -> (&'static str, String) {
    let modes = CpuMode::ALL.iter().zip(counts).filter(|(_, number)| **number > 0);
    let modes: Vec<String> = modes
        .map(|(mode, &number)| format!("{} {}", count(number), mode.name().replace('_', " ")))
        .collect();
    ("samples", format!("{name}: {}", modes.join(", ")))
}

/// The text about losses: "nothing" only if that is certain.
fn lost(file: &FileInfo) -> String {
    let contents = &file.contents;
    let mut counted = Vec::new();
    if contents.events_lost() > 0 {
        counted.push(plural(contents.events_lost(), "event"));
    }
    match contents.unexplained_losses() {
        0 => {}
        places => counted.push(format!("an unknown number at {}", plural(places, "place"))),
    }
    if contents.events_missing() > 0 {
        let missing = count(contents.events_missing());
        counted.push(format!("{missing} that the kernel counted but the file does not contain"));
    }
    let counted = counted.join(", and ");
    match (counted.as_str(), unknown_because(file)) {
        ("", None) => "nothing".to_owned(),
        ("", Some(why)) => format!("unknown: {why}"),
        (_, None) => counted,
        (_, Some(why)) => format!("{counted}; the number of further events is unknown: {why}"),
    }
}

/// Why losses may exceed the counts; `None` if they can't.
fn unknown_because(file: &FileInfo) -> Option<String> {
    let doubt = file.recording.ending().doubt.as_ref();
    doubt.map(ToString::to_string).or_else(|| {
        let why = match file.contents.unexplained_losses() {
            0 if file.contents.has_more_than_counted => {
                "the file contains more events than the kernel counted: the count restarted from 0, for example because a \
                 program cleared the buffer"
            }
            0 => "parts of the file could not be read",
            _ => "marked pages show that events are missing, without a count",
        };
        (!file.contents.losses_known).then(|| why.to_owned())
    })
}

fn vm_line(vm: &Vm) -> String {
    let threads: Vec<String> = vm
        .vcpus
        .iter()
        .map(|vcpu| format!("vCPU {} is thread {}", vcpu.vcpu, vcpu.thread))
        .collect();
    let comm = vm.comm.as_deref().unwrap_or("comm not recorded");
    format!("{} ({comm}): {}", vm.name, threads.join(", "))
}

/// Max damages that are listed.
const MAX_LISTED: usize = 10;

fn warnings(file: &FileInfo) -> Vec<String> {
    let damage: Vec<String> = file
        .recording
        .damage()
        .iter()
        .chain(file.contents.damage.as_slice())
        .map(ToString::to_string)
        .collect();
    let more = damage.len().saturating_sub(MAX_LISTED) as u64 + file.contents.damage.more();
    let mut warnings: Vec<String> = damage.into_iter().take(MAX_LISTED).collect();
    if more > 0 {
        warnings.push(format!("{} could not be read", plural(more, "more place")));
    }
    warnings.extend(file.contents.unmet.iter().map(|(cpu, claimed, found)| {
        format!(
            "CPU {cpu}: its statistics count {}, but the file contains {}",
            plural(*claimed, "event"),
            count(*found)
        )
    }));
    let unknown = &file.recording.info().unknown_options;
    if !unknown.is_empty() {
        warnings.push(format!("ignored options of unknown kind: {unknown:?}"));
    }
    warnings
}

fn events_table(contents: &Contents) -> Table {
    let mut rows: Vec<(&String, u64)> =
        contents.events.iter().map(|(name, number)| (name, *number)).collect();
    rows.sort_by_key(|(name, number)| (std::cmp::Reverse(*number), (*name).clone()));
    let total = contents.total();
    let mut table = Table::default();
    table.names("event", 0, rows.iter().map(|(name, _)| (*name).clone()).collect());
    table.numbers("count", 0, rows.iter().map(|(_, number)| count(*number)).collect());
    table.numbers("share", 1, rows.iter().map(|(_, number)| share(*number, total)).collect());
    table
}
