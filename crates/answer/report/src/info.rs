//! The report of `hyperscope info`: what a recording is and what it holds.

mod covered;

use analyses::contents::{Contents, CpuContents};
use printable::line;
use raw_bytes::ByteOrder;
use serde::Serialize;
use serde_json::{Map, Value, json};
use sources::{CpuMode, Guest, Recording};
use timeline::Vm;

pub use self::covered::Covered;
use crate::Report;
use crate::json::{Object, threads_json};
use crate::sentences;
use crate::table::Table;
use crate::units::{count, plural, share, time, unit};

/// One recording and its contents.
#[derive(Debug)]
pub struct InfoReport {
    /// One per file.
    pub files: Vec<FileInfo>,
}

/// What is said of one recording.
#[derive(Debug)]
pub struct FileInfo {
    /// The recording.
    pub recording: Recording,
    /// Its contents.
    pub contents: Contents,
    /// VMs seen in it.
    pub vms: Vec<Vm>,
    /// What its recorder says went wrong; a full disk leaves no mark in the recording itself.
    pub faults: Vec<String>,
    /// How long guests were recorded while their host was: those of this host, or the one whose recording it is.
    pub covered: Vec<Covered>,
}

impl Report for InfoReport {
    fn text(&self, width: Option<usize>) -> String {
        let texts: Vec<String> = self.files.iter().map(|file| file_text(file, width)).collect();
        texts.join("\n")
    }

    fn document(&self) -> impl Serialize {
        let files: Vec<Value> = self.files.iter().map(file_json).collect();
        json!({"schema": "hyperscope.info/1", "files": files})
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

/// Of the recorded kernel; none: the recording doesn't say.
fn byte_order(recording: &Recording) -> Option<&'static str> {
    recording.recorded_abi().map(|abi| match abi.order {
        ByteOrder::Little => "little",
        ByteOrder::Big => "big",
    })
}

/// Of the recorded kernel; none: it was a program that recorded.
fn long_bytes(recording: &Recording) -> Option<usize> {
    let abi = recording.recorded_abi().filter(|_| recording.info().tracer.is_of_kernel())?;
    Some(abi.long.bytes())
}

fn file_json(file: &FileInfo) -> Value {
    let (recording, contents) = (&file.recording, &file.contents);
    let ns = recording.is_nanoseconds();
    let events: Map<String, Value> =
        contents.events.iter().map(|(name, number)| (name.clone(), json!(number))).collect();
    let losses = json!({
        "events_lost": contents.events_lost(),
        "uncounted_losses": contents.uncounted_losses(),
        "pages_damaged": contents.pages_damaged() + recording.damage().len() as u64,
        "events_missing": contents.events_missing(),
        "known": contents.losses_known,
        "unknown_because": unknown_because(file),
    });
    let damage = recording.damage().iter().chain(contents.damage.kept());
    let buffers = &recording.info().buffers;
    let buffers: Vec<&str> = buffers.iter().map(|buffer| buffer.name.as_str()).collect();
    Object::default()
        .set("path", recording.path().display().to_string())
        .set("format", recording.info().format.clone())
        .set("compression", recording.info().compression.clone())
        .set("byte_order", byte_order(recording))
        .set("long_bytes", long_bytes(recording))
        .set("uname", recording.info().uname.clone())
        .set("clock", recording.info().clock.clone())
        .set("clock_unit", unit(ns))
        .set("time_resolution_ns", recording.info().resolution_ns)
        .set("trace_id", recording.trace_id().map(|id| format!("{id:#x}")))
        .set("aligned_to", recording.peer().map(|id| format!("{id:#x}")))
        .set("cpus", recording.cpus())
        .set("total_events", contents.total())
        .set("events", Value::Object(events))
        .set("samples", samples_json(recording))
        .time("first", ns, contents.first_ns())
        .time("last", ns, contents.last_ns())
        .set("losses", losses)
        .set("damage", damage.map(ToString::to_string).collect::<Vec<_>>())
        .set("buffers", buffers)
        .set("per_cpu", contents.cpus.iter().map(|cpu| cpu_json(cpu, ns)).collect::<Vec<_>>())
        .set("faults", file.faults.clone())
        .set("covered", file.covered.iter().map(Covered::json).collect::<Vec<_>>())
        .set("claims_unmet", contents.unmet.iter().map(claim_json).collect::<Vec<_>>())
        .set("guests", guests_json(recording))
        .set("notes", recording.info().notes.clone())
        .set("unknown_options", recording.info().unknown_options.clone())
        .set("vms", file.vms.iter().map(vm_json).collect::<Vec<_>>())
        .done()
}

/// By what made them, and by mode.
fn samples_json(recording: &Recording) -> Value {
    let modes = |counts: &[u64; CpuMode::ALL.len()]| {
        let modes = CpuMode::ALL.iter().zip(counts);
        modes.map(|(mode, number)| (mode.name().to_owned(), json!(number))).collect()
    };
    let samples = &recording.info().samples;
    Value::Object(
        samples.iter().map(|(name, of)| (name.clone(), Value::Object(modes(of)))).collect(),
    )
}

fn claim_json((cpu, claimed, found): &(u32, u64, u64)) -> Value {
    json!({"cpu": cpu, "claimed": claimed, "found": found})
}

fn cpu_json(cpu: &CpuContents, ns: bool) -> Value {
    Object::default()
        .set("cpu", cpu.cpu)
        .set("buffer", cpu.buffer.clone())
        .set("events", cpu.events)
        .set("pages", cpu.pages)
        .time("first", ns, cpu.first_ns)
        .time("last", ns, cpu.last_ns)
        .set("events_lost", cpu.events_lost)
        .set("uncounted_losses", cpu.uncounted_losses)
        .done()
}

fn guests_json(recording: &Recording) -> Value {
    let guest = |guest: &Guest| {
        let vcpus: Vec<Value> =
            guest.vcpus.iter().map(|vcpu| json!({"vcpu": vcpu.cpu, "tid": vcpu.pid})).collect();
        json!({
            "name": guest.name,
            "trace_id": format!("{:#x}", guest.trace_id),
            "vcpus": vcpus,
        })
    };
    recording.info().guests.iter().map(guest).collect()
}

fn vm_json(vm: &Vm) -> Value {
    json!({"vm": vm.name, "comm": vm.comm, "vcpus": vm.vcpus.len(), "threads": threads_json(vm)})
}

fn file_text(file: &FileInfo, width: Option<usize>) -> String {
    let mut out = format!("{}\n", line(&file.recording.path().display().to_string()));
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
    let rounded = resolution_ns.map(|ns| format!(", times to {}, as in the text", time(ns, true)));
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

/// How many samples there are of an event, by mode.
fn samples_fact((name, counts): (&String, &[u64; CpuMode::ALL.len()])) -> (&'static str, String) {
    let modes = CpuMode::ALL.iter().zip(counts).filter(|(_, number)| **number > 0);
    let modes: Vec<String> = modes
        .map(|(mode, &number)| format!("{} {}", count(number), mode.name().replace('_', " ")))
        .collect();
    ("samples", format!("{name}: {}", modes.join(", ")))
}

/// What is said of losses: "nothing" only where that is known.
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
        counted.push(format!("{missing} that the kernel counted and the file does not hold"));
    }
    let counted = counted.join(", and ");
    match (counted.as_str(), unknown_because(file)) {
        ("", None) => "nothing".to_owned(),
        ("", Some(why)) => format!("unknown: {why}"),
        (_, None) => counted,
        (_, Some(why)) => format!("{counted}; how much more is unknown: {why}"),
    }
}

/// Why it is not known whether more was lost than is counted; none: it is.
fn unknown_because(file: &FileInfo) -> Option<String> {
    let doubt = file.recording.ending().doubt.as_ref();
    doubt.map(ToString::to_string).or_else(|| {
        let why = match file.contents.unexplained_losses() {
            0 if file.contents.has_more_than_counted => {
                "the file holds more events than the kernel counts, which counted from 0 again, as after a \
                 program has cleared its buffer"
            }
            0 => "parts of the file could not be read",
            _ => "pages are marked where events are missing that nobody has counted",
        };
        (!file.contents.losses_known).then(|| why.to_owned())
    })
}

fn vm_line(vm: &Vm) -> String {
    let threads: Vec<String> =
        vm.vcpus.iter().map(|one| format!("vCPU {} is thread {}", one.vcpu, one.thread)).collect();
    let comm = vm.comm.as_deref().unwrap_or("comm not recorded");
    format!("{} ({comm}): {}", vm.name, threads.join(", "))
}

/// Damages listed one by one.
const MAX_LISTED: usize = 10;

fn warnings(file: &FileInfo) -> Vec<String> {
    let damage: Vec<String> = file
        .recording
        .damage()
        .iter()
        .chain(file.contents.damage.kept())
        .map(ToString::to_string)
        .collect();
    let more = damage.len().saturating_sub(MAX_LISTED) as u64 + file.contents.damage.more();
    let mut warnings: Vec<String> = damage.into_iter().take(MAX_LISTED).collect();
    if more > 0 {
        warnings.push(format!("{} could not be read", plural(more, "more place")));
    }
    warnings.extend(file.contents.unmet.iter().map(|(cpu, claimed, found)| {
        format!(
            "CPU {cpu}: its statistics count {}, the file holds {}",
            plural(*claimed, "event"),
            count(*found)
        )
    }));
    let unknown = &file.recording.info().unknown_options;
    if !unknown.is_empty() {
        warnings.push(format!("options of unknown kind, passed over: {unknown:?}"));
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
