//! Makes one recording: plants the cause, records, and reads counters before and after.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::cause::Scripts;
use super::effect::{Counters, rises};
use super::kind::RecordingKind;
use super::label::Label;
use super::machines::{CorpusMachines, FOLDER};
use super::plan::CorpusItem;
use super::window::Window;
use crate::bench::machines::Running;
use crate::bench::{BenchError, Result};

/// The most that the kernel keeps for each processor, in KiB.
const BUFFER_KIB: u32 = 8_192;
/// The least time that counters stand still before the next event: the recorder's begin and end are no part of what it records.
const SETTLE: &str = "sleep 0.1";
/// What the recorder says.
const LOG: &str = "/tmp/corpus/log";
/// How hard files are compressed (zstd).
const LEVEL: i32 = 17;
/// What perf records.
const PERF_EVENTS: &str = "kvm:*,sched:*,irq:*";

/// What was read while the cause was at work.
struct Readings {
    before: Counters,
    after: Counters,
    /// How much all counters rose.
    rises: Counters,
    disturbed_ns: u64,
}

/// A recording that was made.
pub(super) enum Made {
    /// What is known of it.
    Recording(Box<Label>),
    /// Its cause took no effect, so it is removed; why.
    NoEffect(String),
}

/// Makes a recording in the corpus' folder, and says what is known of it.
pub(super) fn record(
    machines: &mut CorpusMachines,
    item: &CorpusItem,
    corpus: &Path,
) -> Result<Made> {
    let readings = recorded(machines, item);
    // Settings go back whatever failed, for the next recording is in the same machines.
    let restored = machines
        .in_guest(&item.scripts.guest_after)
        .and_then(|_| machines.in_host(&item.scripts.host_after));
    let readings = readings?;
    restored?;
    let path = bring_out(machines, item, corpus)?;
    let label = labelled(item, readings, corpus, &path)?;
    let Some(missing) = label.effects.iter().find(|effect| !effect.holds) else {
        return Ok(Made::Recording(Box::new(label)));
    };
    let why = format!("{missing} in {} ms", label.window.length_ns() / 1_000_000);
    let folder = corpus.join("recordings").join(&item.name);
    fs::remove_dir_all(&folder).map_err(BenchError::io("cannot remove", &folder))?;
    Ok(Made::NoEffect(why))
}

fn recorded(machines: &mut CorpusMachines, item: &CorpusItem) -> Result<Readings> {
    let scripts = &item.scripts;
    machines.in_host(&scripts.host_before)?;
    // It boots with these settings of the host.
    if item.fresh_guest {
        machines.renew_guest()?;
    }
    machines.in_guest(&scripts.guest_before)?;
    machines.in_host(&format!("rm -rf {FOLDER}; mkdir {FOLDER}"))?;
    let recorder = begin(machines, item)?;
    let readings = planted(machines, item);
    machines.end(recorder, "INT")?;
    readings
}

/// Starts the recorder, and waits until it records.
fn begin(machines: &mut CorpusMachines, item: &CorpusItem) -> Result<Running> {
    let has_begun = if item.kind == RecordingKind::Perf {
        // perf says nothing, and maps its buffers after it has made its file.
        format!("[ -s {FOLDER}/perf.data ] && sleep 0.5")
    } else {
        format!("grep -q 'hyperscope: recording' {LOG}")
    };
    let recorder = machines.start_until(&command(item), LOG, &has_begun)?;
    machines.in_host(SETTLE)?;
    Ok(recorder)
}

fn command(item: &CorpusItem) -> String {
    let (options, with) = (&item.scripts.record, &item.scripts.record_with);
    let session = format!(
        "exec {with} hyperscope record --buffer {BUFFER_KIB} {options} -o {FOLDER}/session"
    );
    match item.kind {
        RecordingKind::Host => session,
        RecordingKind::HostGuest => format!("{session} --guest l2=vsock:3 --guest-wait 60s"),
        RecordingKind::Perf => format!(
            "exec {with} perf record -a -k CLOCK_MONOTONIC -m 1024 -e '{PERF_EVENTS}' -o {FOLDER}/perf.data"
        ),
    }
}

/// Runs the workload, with whatever slows it down.
fn planted(machines: &mut CorpusMachines, item: &CorpusItem) -> Result<Readings> {
    let guest_before = machines.guest_counters()?;
    let beside = &item.scripts.host_beside;
    let beside = (!beside.is_empty()).then(|| machines.start(beside, "/tmp/beside.log"));
    let beside = beside.transpose()?;
    let disturbed_ns = machines.disturbed_ns();
    let before = machines.host_counters();
    let worked = work_in(machines, &item.scripts);
    let after = machines.host_counters();
    let disturbed_ns = machines.disturbed_ns().saturating_sub(disturbed_ns);
    if let Some(beside) = beside {
        machines.end(beside, "KILL")?;
    }
    let guest_after = machines.guest_counters()?;
    machines.in_host(SETTLE)?;
    let (before, after) = (before?, after?);
    let mut all = rises(&before, &after);
    let guest = rises(&guest_before, &guest_after);
    all.extend(guest.into_iter().map(|(name, value)| (format!("guest.{name}"), value)));
    all.extend(work(&worked?));
    Ok(Readings { before, after, rises: all, disturbed_ns })
}

/// Runs the workload, where it is to run; what it prints.
fn work_in(machines: &mut CorpusMachines, scripts: &Scripts) -> Result<String> {
    match (&*scripts.host, &*scripts.nested) {
        ("", "") => machines.in_guest(&scripts.guest),
        ("", nested) => machines.in_nested_guest(nested),
        (host, _) => machines.in_host(host),
    }
}

/// What a workload says of itself: numbers in lines of JSON, added up.
fn work(output: &str) -> Counters {
    let mut sums = Counters::new();
    for line in output.lines() {
        let Ok(Value::Object(numbers)) = serde_json::from_str(line) else { continue };
        for (word, value) in numbers {
            if let Some(value) = value.as_u64() {
                let sum = sums.entry(format!("work.{word}")).or_insert(0);
                *sum = sum.saturating_add(value);
            }
        }
    }
    sums
}

/// Copies the files out, compressed; the recording's place below the corpus' folder.
fn bring_out(machines: &mut CorpusMachines, item: &CorpusItem, corpus: &Path) -> Result<PathBuf> {
    let place = PathBuf::from("recordings").join(&item.name);
    let folder = corpus.join(&place);
    // One that an interrupted run left.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(BenchError::io("cannot make", &folder))?;
    for file in item.kind.files() {
        let name = file.rsplit('/').next().unwrap_or(file);
        let to = folder.join(name);
        machines.get(&format!("{FOLDER}/{file}"), &to)?;
        if !name.ends_with(".json") {
            compress(&to)?;
        }
    }
    Ok(if item.kind == RecordingKind::Perf { place.join("perf.data") } else { place })
}

/// Compresses a file, which keeps its name: readers look at its first bytes.
fn compress(path: &Path) -> Result<()> {
    let packed = path.with_extension("zst");
    let pack = || -> io::Result<()> {
        let mut encoder = zstd::Encoder::new(File::create(&packed)?, LEVEL)?;
        io::copy(&mut File::open(path)?, &mut encoder)?;
        encoder.finish()?.sync_all()?;
        fs::rename(&packed, path)
    };
    pack().map_err(BenchError::io("cannot compress", path))
}

fn labelled(item: &CorpusItem, readings: Readings, corpus: &Path, path: &Path) -> Result<Label> {
    let folder = corpus.join("recordings").join(&item.name);
    let window = Window::between(&readings.before, &readings.after, item.kind)?;
    let window_ns = window.length_ns();
    let mut counters = readings.rises;
    counters.extend(of_recorder(&folder));
    let effects: Vec<_> =
        item.effects.iter().map(|effect| effect.measured(&counters, window_ns)).collect();
    counters.retain(|_, value| *value > 0);
    Ok(Label {
        name: item.name.clone(),
        path: path.display().to_string(),
        kind: item.kind,
        source: item.source.clone(),
        variant: item.variant.clone(),
        draw: item.draw,
        causes: item.causes.clone(),
        without_cause_of: item.without_cause_of.clone(),
        parameters: item.parameters.clone(),
        scripts: item.scripts.named(),
        window,
        effects,
        measured: counters,
        disturbed_ns: readings.disturbed_ns,
        bytes: size(&folder),
    })
}

/// What the recorder says of itself.
fn of_recorder(folder: &Path) -> Counters {
    let text = fs::read_to_string(folder.join("session.json")).unwrap_or_default();
    let session: Value = serde_json::from_str(&text).unwrap_or_default();
    let recorded = session.get("recorded");
    let number = |word: &str| recorded.and_then(|recorded| recorded.get(word)?.as_u64());
    ["recorder_cpu_ns", "duration_ns"]
        .into_iter()
        .filter_map(|word| Some((format!("session.{word}"), number(word)?)))
        .collect()
}

fn size(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_say_what_they_did() {
        let sums = work("{\"count\":3,\"longest\":1.5}\nready\n{\"count\":4,\"took_ns\":9}\n");
        assert_eq!(sums, [("work.count".to_owned(), 7), ("work.took_ns".to_owned(), 9)].into());
    }

    #[test]
    fn compressed_files_keep_their_name_and_unpack_to_what_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.dat");
        fs::write(&path, vec![7; 100_000]).unwrap();
        compress(&path).unwrap();
        assert!(size(folder.path()) < 1_000);
        assert_eq!(zstd::decode_all(File::open(&path).unwrap()).unwrap(), vec![7; 100_000]);
    }
}
