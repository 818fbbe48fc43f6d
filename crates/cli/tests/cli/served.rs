//! `report --serve`: the page over HTTP, and the events and lanes of any interval; only the exact address gives
//! access.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::pages::{Page, element};
use crate::tool::{command, hyperscope};

const FILES: [&str; 2] =
    ["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"];

/// A server; dropping this ends it.
struct Served {
    child: Child,
    host: String,
    path: String,
}

impl Served {
    fn start(args: &[&str]) -> Self {
        let mut child = command()
            .args(["report", "--serve"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let rest = address.trim().strip_prefix("http://").unwrap();
        let (host, path) = rest.split_once('/').unwrap();
        Self { host: host.to_owned(), path: format!("/{path}"), child }
    }

    fn get(&self, name: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        write!(stream, "GET {}{name} HTTP/1.1\r\nHost: {}\r\n\r\n", self.path, self.host).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head[9..12].to_owned(), body.to_owned())
    }

    fn page(&self) -> Page {
        let (status, text) = self.get("");
        assert_eq!(status, "200");
        let report = serde_json::from_str(&element(&text, "hyperscope-report")).unwrap();
        Page { text, report }
    }

    fn events(&self, query: &str) -> Value {
        let (status, body) = self.get(&format!("events?{query}"));
        assert_eq!(status, "200", "{body}");
        serde_json::from_str(&body).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// The events of an interval from `hyperscope events`, as JSON.
fn printed(from_ns: u64, to_ns: u64) -> Vec<Value> {
    let range = ["--from", &seconds(from_ns), "--to", &seconds(to_ns)];
    let run = hyperscope(&[&["events", "--format", "jsonl"][..], &range, &FILES].concat());
    run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_served_page_is_the_page_and_answers_with_the_events_that_are_printed() {
    let served = Served::start(&FILES);
    let (page, written) = (served.page(), Page::run(&FILES));
    assert_eq!((&page.report["served"], &written.report["served"]), (&true.into(), &false.into()));
    for part in ["exits", "timeline", "findings", "origin", "path"] {
        assert!(page.report[part] == written.report[part], "{part} differs");
    }
    assert!(page.text.contains("connect-src 'self'") && !written.text.contains("connect-src"));

    let origin = page.report["origin_ns"].as_u64().unwrap();
    let (from, to) = (6_000_000_000, 6_050_000_000);
    let expected = printed(origin + from, origin + to);
    let answer = served.events(&format!("from={from}&to={to}"));
    let events = answer["events"].as_array().unwrap();
    assert_eq!(
        (&answer["all"], answer["matching"].as_u64()),
        (&true.into(), Some(expected.len() as u64))
    );
    assert!(expected.len() > 100, "{}", expected.len());
    for (event, expected) in events.iter().zip(&expected) {
        for name in ["ts_ns", "machine", "cpu", "pid", "comm", "event"] {
            assert_eq!(event[name], expected[name], "{event}");
        }
        assert_eq!(event["at"].as_u64().unwrap() + origin, expected["ts_ns"].as_u64().unwrap());
    }
    // Texts equal those of lines that contain the requested words.
    let range = ["--from", &seconds(origin + from), "--to", &seconds(origin + to)];
    let lines = hyperscope(&[&["events", "--numeric"][..], &range, &FILES].concat()).out;
    let lines: Vec<&str> = lines.lines().filter(|line| !line.contains("cpus=")).collect();
    assert_eq!(lines.len(), events.len());
    for (event, line) in events.iter().zip(&lines) {
        assert!(line.ends_with(event["text"].as_str().unwrap()), "{event} {line}");
    }
    let exits = served.events(&format!("from={from}&to={to}&words=KVM_EXIT+reason&limit=3"));
    let has = |line: &&&str| line.to_lowercase().contains("kvm_exit") && line.contains("reason");
    let of_exits = lines.iter().filter(has).count() as u64;
    assert!(of_exits > 20, "{of_exits}");
    assert_eq!(exits["matching"].as_u64(), Some(of_exits));
    assert_eq!(exits["events"].as_array().unwrap().len() as u64, of_exits.min(3));
}

/// The spans of a lane: from, to, state, label.
fn spans(page: &Page, timeline: &Value, lane: &Value) -> Vec<(u64, u64, u8, String)> {
    let mut columns = page.columns(&lane["columns_in"]);
    let count = lane["spans"].as_u64().unwrap() as usize;
    let gaps = columns.numbers(count);
    let lengths = columns.numbers(count);
    let states: Vec<u8> = (0..count).map(|_| columns.byte()).collect();
    let labels = columns.numbers(count);
    let mut end = 0;
    let span = |at: usize| {
        let from = end + gaps[at];
        end = from + lengths[at];
        let label = timeline["labels"][labels[at] as usize].as_str().unwrap().to_owned();
        (from, end, states[at], label)
    };
    (0..count).map(span).collect()
}

#[test]
fn lanes_of_a_interval_are_those_of_a_page_that_keeps_all() {
    let files = ["fixtures/x86-svm/host-guest.dat"];
    let served = Served::start(&[&["--spans", "2000"], &files[..]].concat());
    let full_page = Page::run(&files);
    assert!(served.page().report["timeline"]["merged_below_ns"].as_u64().unwrap() > 0);
    assert_eq!(full_page.report["timeline"]["merged_below_ns"], 0);
    let (from, to) = (3_000_000_000u64, 4_000_000_000u64);
    let (status, text) = served.get(&format!("lanes?from={from}&to={to}"));
    assert_eq!(status, "200", "{text}");
    let report = serde_json::from_str(&element(&text, "hyperscope-lanes")).unwrap();
    let part = Page { text, report };
    let timeline = &part.report["timeline"];
    assert_eq!(timeline["merged_below_ns"], 0);
    let mut compared = 0;
    for lane in full_page.report["timeline"]["lanes"].as_array().unwrap() {
        let is_same = |other: &&Value| {
            ["machine", "kind", "name", "vm", "depth"].iter().all(|name| other[name] == lane[name])
        };
        let within = |all: Vec<(u64, u64, u8, String)>| {
            let inside = |span: &(u64, u64, u8, String)| from <= span.0 && span.1 <= to;
            all.into_iter().filter(inside).collect::<Vec<_>>()
        };
        let expected = within(spans(&full_page, &full_page.report["timeline"], lane));
        let found = timeline["lanes"].as_array().unwrap().iter().find(is_same);
        let found = found.map_or_else(Vec::new, |lane| within(spans(&part, timeline, lane)));
        assert_eq!(found, expected, "{}", lane["name"]);
        compared += expected.len();
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn only_the_page_is_answered() {
    let served = Served::start(&["fixtures/arm64/D.dat"]);
    for (name, status) in [
        ("events?from=5", "400"),
        ("events?from=9&to=5", "400"),
        ("lanes?from=a&to=b", "400"),
        ("etc", "404"),
        ("../", "404"),
    ] {
        assert_eq!(served.get(name).0, status, "{name}");
    }
    let wide = served.events("from=0&to=18446744073709551615&limit=99999999&words=no+such+words");
    assert_eq!(wide["matching"], 0);
    for args in [&["--serve", "-o", "x.html"][..], &["--serve", "--vm", "x"], &["--port", "1"]] {
        let run = hyperscope(&[&["report"], args, &["fixtures/arm64/D.dat"]].concat());
        assert_eq!(run.code, 2, "{args:?}");
    }
}
