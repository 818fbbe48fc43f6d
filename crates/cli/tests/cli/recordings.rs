//! Tests the statements of docs/recordings.md about each kind of recording, with recordings that have
//! only events of that kind.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::tool::{hyperscope, repository};

const HOST: &str = "fixtures/x86-svm/host-guest.dat";
const GUEST: &str = "fixtures/x86-svm/host-guest.guest.dat";
/// A host's recording with events of interrupts.
const WITH_IRQ: &str = "fixtures/x86-vmx/smp.dat";

/// The document of a verb; messages about missing events are ignored.
fn json(args: &[&str]) -> Value {
    let run = hyperscope(&[args, &["--format", "json"]].concat());
    assert_eq!(run.code, 0, "{args:?}: {}", run.err);
    serde_json::from_str(&run.out).unwrap()
}

/// Cells of the page's table with this first heading, headings first.
fn table(page: &str, first: &str) -> Vec<Vec<String>> {
    let rows = page.lines().skip_while(|line| !line.starts_with(&format!("| {first} |")));
    let rows = rows.take_while(|line| line.starts_with('|')).filter(|line| !line.contains("---"));
    let cells = |line: &str| {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    rows.map(cells).collect()
}

/// A recording with those events of a real one that the command names.
fn part_of(recording: &str, command: &str, folder: &Path) -> PathBuf {
    let info = json(&["info", recording]);
    let all: Vec<String> =
        info["files"][0]["events"].as_object().unwrap().keys().cloned().collect();
    let named = command.split("-e ").skip(1).map(|rest| {
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
    });
    let has = |name: &&str| {
        all.iter().any(|event| event.split_once(':').is_some_and(|(a, b)| a == *name || b == *name))
    };
    let events: Vec<&str> = named.filter(has).flat_map(|name| ["-e", name]).collect();
    assert!(events.len() >= 4, "{command}: {events:?}");
    let path = folder.join("part.dat");
    let to = path.to_str().unwrap();
    let export = ["export", "--to", "tracedat", "-o", to];
    let run = hyperscope(&[&export, &events[..], &[recording]].concat());
    assert_eq!(run.code, 0, "{command}: {}", run.err);
    path
}

/// The verbs' answers about recordings.
struct Answers {
    exits: Vec<Value>,
    cpu: Value,
    paths: Vec<Value>,
    irqs: Vec<Value>,
}

impl Answers {
    fn read(paths: &[&str]) -> Self {
        let report = |verb| json(&[&[verb], paths].concat());
        let rows = |document: &Value, name: &str| document[name].as_array().unwrap().clone();
        let mut exits = rows(&report("exits"), "rows");
        exits.retain(|row| row["paired"] != 0);
        let (paths, irqs) = (rows(&report("path"), "paths"), rows(&report("irqs"), "handlers"));
        Self { exits, cpu: report("cpu"), paths, irqs }
    }

    fn exits_have(&self, field: &str) -> bool {
        !self.exits.is_empty() && self.exits.iter().all(|row| !row[field].is_null())
    }

    fn cpu_has(&self, field: &str) -> bool {
        !self.cpu["vcpus"][0]["states"][field].is_null()
    }

    fn has(&self, field: &str) -> bool {
        let filled = |rows: &Value| rows.as_array().is_some_and(|rows| !rows.is_empty());
        match field {
            "cpu: guest_ns, halted_ns" => self.cpu_has("guest_ns") && self.cpu_has("halted_ns"),
            "cpu: threads" => filled(&self.cpu["threads"]),
            "cpu: tasks" => filled(&self.cpu["tasks"]),
            "path: hops" => self.paths.iter().any(|path| filled(&path["hops"])),
            "path: start" => self.paths.iter().any(|path| {
                path["start"].as_str().is_some_and(|start| start.starts_with("mmio write 0x"))
            }),
            _ => match field.split_once(": ") {
                Some(("exits", field)) => self.exits_have(field),
                Some(("cpu", field)) => self.cpu_has(field),
                Some(("irqs", field)) => self.irqs.iter().any(|row| !row[field].is_null()),
                _ => panic!("{field}: unknown"),
            },
        }
    }

    fn cell(&self, field: &str) -> &'static str {
        if self.has(field) {
            "yes"
        } else if field == "exits: user_ns" && self.exits_have("user_and_return_ns") {
            "part"
        } else {
            "no"
        }
    }
}

#[test]
fn each_kind_of_recording_says_what_the_page_says() {
    let page = std::fs::read_to_string(repository().join("docs/recordings.md")).unwrap();
    let commands: HashMap<String, String> = table(&page, "Kind")
        .into_iter()
        .skip(1)
        .map(|mut row| (row.remove(0), row.remove(0)))
        .collect();
    let claims = table(&page, "It says");
    assert!(claims.len() > 10 && commands.len() > 5, "{claims:?} {commands:?}");
    for (at, kind) in claims[0].iter().enumerate().skip(2) {
        let folder = tempfile::tempdir().unwrap();
        let from = if kind == "+ irq" { WITH_IRQ } else { HOST };
        let part = |command| part_of(from, command, folder.path()).to_str().unwrap().to_owned();
        let answers = match (kind.as_str(), &commands[kind]) {
            ("+ guest", _) => Answers::read(&[HOST, GUEST]),
            (_, command) => Answers::read(&[&part(command)]),
        };
        for claim in &claims[1..] {
            let field = claim[1].replace('`', "");
            assert_eq!(claim[at], answers.cell(&field), "{kind}: {field}");
        }
    }
}
