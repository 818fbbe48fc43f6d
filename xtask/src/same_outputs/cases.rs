//! The command lines to compare: each verb, format and export, for each bundled recording and pair,
//! complete and in parts.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A command line without the program's name.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) words: Vec<String>,
}

/// Verbs that print a report, with options that extend it.
const REPORTS: &[&str] = &[
    "exits",
    "exits --by vm,vcpu,reason",
    "exits --by symbol",
    "nested",
    "advice",
    "info",
    "cpu",
    "cpu --by vcpu,taken,thread,cpu,task --idle",
    "irqs",
    "irqs --by thread",
    "virtio",
    "vmm",
    "boot",
    "path",
    "critical",
    "calls --tree",
    "profile",
    "profile --by stack",
    "align",
];

/// Verbs that write a file, or whose text has its own formats.
const WRITERS: &[&str] = &[
    "events",
    "events --format jsonl",
    "events --raw",
    "hypertrace",
    "hypertrace --format jsonl",
    "export --format perfetto -o out.pftrace",
    "export --format chrome -o out.json",
    "export --format firefox -o out.json",
    "export --format csv -o out.csv",
    "export --format jsonl",
    "export --format tracedat -o out.dat",
    "export --format parquet -o out",
    "report -o out.html",
    "report --full-paths --title T -o out.html",
    "vmm -o out.html",
    "profile --flame out.svg --folded out.folded --pprof out.pprof --speedscope out.json",
    "calls --flame out.svg --folded out.folded",
    "boot --svg out.svg",
    "lake add out",
];

const FORMATS: [&str; 3] = ["table", "json", "csv"];

/// Options that select a part of a recording. The time after its end and the nonexistent VM select
/// nothing.
const PARTS: [&str; 5] =
    ["--from +0.01", "--from +5ms --to +60ms", "--to +1h", "--vcpu 0", "--vm nobody"];

/// Reports of `diff` between recordings of one machine.
const DIFFS: [&str; 6] = ["exits", "cpu", "path", "nested", "profile", "boot"];

impl Case {
    /// The words of a template, followed by the files.
    fn new(template: &str, files: &[PathBuf]) -> Self {
        let words = template.split_whitespace().map(str::to_owned);
        let files = files.iter().map(|file| file.display().to_string());
        Self { words: words.chain(files).collect() }
    }

    pub(crate) fn line(&self) -> String {
        self.words.join(" ")
    }

    pub(crate) fn verb(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }
}

/// All command lines for the recordings in a folder.
pub(crate) fn cases(fixtures: &Path) -> Result<Vec<Case>> {
    let alone = recordings(fixtures)?;
    let pairs: Vec<[PathBuf; 2]> = alone.iter().filter_map(|host| pair(host)).collect();
    let sets = alone.iter().map(|recording| vec![recording.clone()]);
    let sets: Vec<Vec<PathBuf>> = sets.chain(pairs.iter().map(|pair| pair.to_vec())).collect();
    let mut cases = Vec::new();
    for set in &sets {
        add_set(&mut cases, set);
    }
    for pair in &pairs {
        for method in ["windows", "time_shift", "tsc_offset"] {
            for verb in
                ["path --format json", "align --format json", "report -o out.html", "events"]
            {
                cases.push(Case::new(&format!("{verb} --method {method}"), pair));
            }
        }
        cases.push(Case::new("report --critical 1 -o out.html", pair));
        cases.push(Case::new("export --format chrome --critical 1 -o out.json", pair));
    }
    for (at, a) in sets.iter().enumerate() {
        let next = sets.get(at + 1).and_then(|set| set.first());
        for b in a.first().into_iter().chain(next) {
            add_comparison(&mut cases, a, b);
        }
    }
    Ok(cases)
}

/// Adds the command lines for a recording, or for a host with its guest.
fn add_set(cases: &mut Vec<Case>, set: &[PathBuf]) {
    for verb in REPORTS {
        for format in FORMATS {
            cases.push(Case::new(&format!("{verb} --format {format}"), set));
        }
        for part in PARTS {
            cases.push(Case::new(&format!("{verb} --format json {part}"), set));
        }
    }
    for verb in WRITERS {
        cases.push(Case::new(verb, set));
        if !verb.starts_with("lake") {
            cases.extend(PARTS.map(|part| Case::new(&format!("{verb} {part}"), set)));
        }
    }
}

/// Adds `diff` of two recordings, and a page that compares them.
fn add_comparison(cases: &mut Vec<Case>, a: &[PathBuf], b: &Path) {
    let Some(first) = a.first() else { return };
    let both = [first.clone(), b.to_owned()];
    for question in DIFFS {
        cases.push(Case::new(&format!("diff {question} --format json"), &both));
        cases.push(Case::new(&format!("diff {question} --from +5ms"), &both));
    }
    let baseline = format!("report -o out.html --baseline {}", b.display());
    cases.push(Case::new(&baseline, a));
}

/// The recordings below a folder: files, sessions and LTTng traces.
fn recordings(fixtures: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in entries(fixtures)?.into_iter().filter(|path| path.is_dir()) {
        let is_recording = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            path.is_dir()
                || name.ends_with(".dat")
                || name.ends_with(".perf.data")
                || name.ends_with(".frames")
        };
        found.extend(entries(&folder)?.into_iter().filter(is_recording));
    }
    Ok(found)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// The recordings of a host and its guest, if both exist.
fn pair(host: &Path) -> Option<[PathBuf; 2]> {
    let name = host.file_name()?.to_str()?;
    let guest = host.with_file_name(format!("{}.guest.dat", name.strip_suffix(".dat")?));
    guest.is_file().then(|| [host.to_owned(), guest])
}
