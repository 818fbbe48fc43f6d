//! Pages of `hyperscope report`: their contents equal the other reports, decoded byte by byte as
//! `docs/formats/report.md` defines them.

use std::collections::HashMap;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::schemas::{check, closed};
use crate::tool::{assert_golden, hyperscope, output_of, recordings};

/// The numbers of a column.
pub(crate) struct Columns(std::vec::IntoIter<u8>);

impl Columns {
    pub(crate) fn byte(&mut self) -> u8 {
        self.0.next().unwrap()
    }

    pub(crate) fn number(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }

    pub(crate) fn numbers(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.number()).collect()
    }

    pub(crate) fn is_at_end(&mut self) -> bool {
        self.0.next().is_none()
    }
}

pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) report: Value,
}

impl Page {
    pub(crate) fn run(args: &[&str]) -> Self {
        let run = hyperscope(&[&["report"], args].concat());
        assert_eq!(run.code, 0, "{}", run.err);
        let report = element(&run.out, "hyperscope-report");
        let report = serde_json::from_str(&report).unwrap();
        Self { text: run.out, report }
    }

    pub(crate) fn columns(&self, id: &Value) -> Columns {
        let packed = STANDARD.decode(element(&self.text, id.as_str().unwrap())).unwrap();
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
        Columns(bytes.into_iter())
    }

    /// Exits of each row of the exits report, by the heat map.
    fn heat(&self) -> HashMap<String, u64> {
        let heat = &self.report["heat"];
        if heat.is_null() {
            return HashMap::new();
        }
        let mut columns = self.columns(&heat["columns_in"]);
        let most = heat["columns"].as_u64().unwrap();
        let mut sums = HashMap::new();
        for group in heat["groups"].as_array().unwrap() {
            let (mut column, mut sum) = (0, 0);
            for _ in 0..group["cells"].as_u64().unwrap() {
                column += columns.number();
                assert!(column < most, "{group}");
                columns.byte();
                sum += columns.number();
            }
            assert_eq!(sums.insert(key(group), sum), None, "{group}");
        }
        assert_eq!(columns.0.next(), None);
        sums
    }

    /// Items and time by state over all lanes of a kind.
    fn states(&self, kind: &str) -> (u64, HashMap<String, u64>) {
        let timeline = &self.report["timeline"];
        let title =
            |state: u8| timeline["states"][usize::from(state)]["key"].as_str().unwrap().to_owned();
        let mut sums: HashMap<String, u64> = HashMap::new();
        let mut spans = 0;
        for lane in timeline["lanes"].as_array().unwrap() {
            let mut columns = self.columns(&lane["columns_in"]);
            let count = usize::try_from(lane["spans"].as_u64().unwrap()).unwrap();
            let gaps = columns.numbers(count);
            let lengths = columns.numbers(count);
            let states: Vec<u8> = (0..count).map(|_| columns.byte()).collect();
            let labels = columns.numbers(count);
            let end: u64 = gaps.iter().sum::<u64>() + lengths.iter().sum::<u64>();
            assert!(end <= self.report["length_ns"].as_u64().unwrap());
            let known = timeline["labels"].as_array().unwrap().len() as u64;
            assert!(labels.iter().all(|label| *label < known));
            let of_kind = lane["kind"] == kind;
            for (length, state) in lengths.iter().zip(&states) {
                if *state != 255 {
                    if of_kind {
                        *sums.entry(title(*state)).or_default() += length;
                        spans += 1;
                    }
                    continue;
                }
                let merged = columns.number();
                spans += if of_kind { merged } else { 0 };
                let mut inside = 0;
                for _ in 0..columns.byte() {
                    let state = title(columns.byte());
                    let ns = columns.number();
                    inside += ns;
                    if of_kind {
                        *sums.entry(state).or_default() += ns;
                    }
                }
                assert!(inside <= *length);
            }
            assert_eq!(columns.0.next(), None);
        }
        (spans, sums)
    }
}

/// The text of the element with this id.
pub(crate) fn element(page: &str, id: &str) -> String {
    let (_, rest) = page.split_once(&format!("id=\"{id}\">")).unwrap();
    rest.split_once("</script>").unwrap().0.to_owned()
}

fn key(row: &Value) -> String {
    ["source", "vm", "level", "reason", "code"].map(|name| row[name].to_string()).join(" ")
}

fn document(verb: &str, path: &str) -> Value {
    serde_json::from_str(&output_of(&[verb, "--format", "json", path])).unwrap()
}

#[test]
fn pages_hold_what_the_other_reports_say() {
    let schema = closed("report");
    for path in recordings() {
        let page = Page::run(&["--full-paths", &path]);
        let mut outer = page.report.clone();
        for inner in ["exits", "nested", "align", "path"] {
            if outer[inner].is_object() && inner != "exits" {
                outer[inner] = serde_json::json!({});
            }
        }
        outer["exits"] = serde_json::json!({"schema": "hyperscope.exits/1"});
        check(&schema, &outer, &path);
        let exits = document("exits", &path);
        assert_eq!(page.report["exits"], exits, "{path}");
        if page.report["nested"].is_object() {
            assert_eq!(page.report["nested"], document("nested", &path), "{path}");
        }
        let heat = page.heat();
        for row in exits["rows"].as_array().unwrap() {
            let timed = row["paired"].as_u64().unwrap();
            assert_eq!(heat.get(&key(row)).copied().unwrap_or(0), timed, "{path}: {row}");
        }
        assert_eq!(heat.values().sum::<u64>(), sum(&exits, "paired"), "{path}");
    }
}

fn sum(exits: &Value, field: &str) -> u64 {
    let rows = exits["rows"].as_array().unwrap();
    rows.iter().filter_map(|row| row[field].as_u64()).sum()
}

#[test]
fn however_few_spans_are_kept_states_last_as_long() {
    let path = "fixtures/x86-svm/nested.dat";
    let (all, few) = (Page::run(&[path]), Page::run(&["--spans", "2000", path]));
    let (spans, states) = all.states("vcpu");
    assert_eq!(all.report["timeline"]["merged_below_ns"], 0);
    assert!(few.report["timeline"]["merged_below_ns"].as_u64().unwrap() > 0);
    assert_eq!(few.states("vcpu"), (spans, states.clone()));
    let lanes = few.report["timeline"]["lanes"].as_array().unwrap();
    assert!(lanes.iter().filter_map(|lane| lane["spans"].as_u64()).sum::<u64>() <= 2000);
    assert!(few.text.len() < all.text.len() / 4);
    let exits = document("exits", path);
    let user_ns = sum(&exits, "user_ns") + sum(&exits, "user_and_return_ns");
    assert_eq!(states["exit_user"], user_ns);
    // The guest's last run, after the last entry, precedes no exit.
    let guest_ns = states["guest"] + states["nested_guest"];
    assert!(guest_ns >= sum(&exits, "guest_ns"));
    assert!(guest_ns - sum(&exits, "guest_ns") < guest_ns / 100);
}

#[test]
fn the_timeline_adds_up_to_the_exits_with_a_guest_and_its_host() {
    let (host, guest) = ("fixtures/arm64/A.dat", "fixtures/arm64/A.guest.dat");
    let page = Page::run(&[host, guest]);
    let (_, states) = page.states("vcpu");
    let exits = document("exits", host);
    let total_ns = |names: &[&str]| names.iter().filter_map(|name| states.get(*name)).sum::<u64>();
    assert_eq!(total_ns(&["exit_user"]), sum(&exits, "user_ns"));
    assert_eq!(total_ns(&["waiting", "preempted"]), sum(&exits, "off_cpu_runnable_ns"));
    assert_eq!(total_ns(&["halted", "blocked"]), sum(&exits, "off_cpu_blocked_ns"));
    assert_eq!(total_ns(&["halt_poll"]), sum(&exits, "halt_poll_ns"));
    let lanes = page.report["timeline"]["lanes"].as_array().unwrap();
    let has = |kind: &str, machine: &str| {
        lanes.iter().any(|lane| lane["kind"] == kind && lane["machine"] == machine)
    };
    assert!(has("cpu", "host") && has("vcpu", "host") && has("thread", "host"));
    assert!(has("task", "vm-148") && !has("cpu", "vm-148"));
}

#[test]
fn another_run_is_compared_as_diff_does() {
    let (before, after) = ("fixtures/arm64/B-vhost-off.dat", "fixtures/arm64/B-vhost-on.dat");
    let page = Page::run(&[after, "--full-paths", "--baseline", before]);
    let diff = output_of(&["diff", "--format", "json", before, after]);
    assert_eq!(page.report["diff"], serde_json::from_str::<Value>(&diff).unwrap());
    assert!(Page::run(&[after]).report["diff"].is_null());
}

/// The waits of a task equal those of `hyperscope critical`, and have lanes.
#[test]
fn what_a_task_waited_for_is_as_critical_has_it() {
    let files = ["fixtures/arm64/A.dat", "fixtures/arm64/A.guest.dat"];
    let args = [&["critical", "--task", "vm-148/init", "--format", "json"][..], &files].concat();
    let expected: Value = serde_json::from_str(&output_of(&args)).unwrap();
    let page = Page::run(&[&files[..], &["--critical", "vm-148/init"]].concat());
    check(&closed("report"), &page.report, "critical");
    let critical = &page.report["critical"];
    assert_eq!(critical["waited_ns"], expected["waited_ns"]);
    let number = |value: &Value| value.as_u64().unwrap();
    let parts = critical["parts"].as_array().unwrap();
    for (part, expected) in parts.iter().zip(expected["parts"].as_array().unwrap()) {
        for same in ["machine", "thread", "state", "time_ns", "count"] {
            assert_eq!(part[same], expected[same], "{part} {expected}");
        }
    }
    let shown: u64 = parts.iter().map(|part| number(&part["time_ns"])).sum();
    assert_eq!(shown + number(&critical["others_ns"]), number(&critical["waited_ns"]));
    let waits = critical["waits"].as_array().unwrap();
    assert_eq!(waits.len(), expected["longest"].as_array().unwrap().len());
    let lanes = page.report["timeline"]["lanes"].as_array().unwrap();
    for (wait, expected) in waits.iter().zip(expected["longest"].as_array().unwrap()) {
        let steps = wait["steps"].as_array().unwrap();
        assert_eq!(steps.len(), expected["steps"].as_array().unwrap().len());
        assert!(
            lanes[number(&wait["lane"]) as usize]["name"].as_str().unwrap().starts_with("init")
        );
        for step in steps.iter().filter(|step| step["machine"] == "host") {
            let lane = &lanes[number(&step["lane"]) as usize]["name"];
            assert!(
                step["thread"].as_str().unwrap().ends_with(lane.as_str().unwrap()),
                "{step} {lane}"
            );
        }
    }
    assert!(Page::run(&files).report["critical"].is_null());
}

#[test]
fn what_stands_out_is_said_in_words() {
    for (name, files) in [
        ("nested", &["fixtures/x86-svm/nested.dat"][..]),
        ("arm64", &["fixtures/arm64/A.dat", "fixtures/arm64/A.guest.dat"]),
        ("guest-alone", &["fixtures/arm64/A.guest.dat"]),
    ] {
        let page = Page::run(files);
        let mut lines = String::new();
        for finding in page.report["findings"].as_array().unwrap() {
            lines += &format!("{}: ", finding["weight"].as_str().unwrap());
            for piece in finding["pieces"].as_array().unwrap() {
                let sign = if piece["strong"] == true { "*" } else { "" };
                lines += &format!("{sign}{}{sign}", piece["text"].as_str().unwrap());
            }
            lines += &format!(" [{}]\n", finding["link"]["section"].as_str().unwrap_or("-"));
        }
        assert_golden(&format!("page-{name}.txt"), &lines);
    }
}

/// Findings carry the complete advice of `hyperscope advice` and nothing else, each at a finding about the same VM and
/// reason.
#[test]
fn findings_carry_all_advice_once() {
    let mut compared = 0;
    let several = [["fixtures/x86-svm/tsc.dat", "fixtures/x86-svm/tsc.guest.dat"]
        .map(str::to_owned)
        .to_vec()];
    let all = recordings().into_iter().map(|path| vec![path]).chain(several);
    for files in testkit::sampled(all, 2) {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let page = Page::run(&[&["--full-paths"][..], &files].concat());
        let mut shown = Vec::new();
        for finding in page.report["findings"].as_array().unwrap() {
            for advice in finding["advice"].as_array().unwrap() {
                assert_eq!(finding["link"]["vm"], advice["vm"], "{finding}");
                let reason = &finding["link"]["reason"];
                assert!(advice["about"] != "exits" || *reason == advice["reason"], "{finding}");
                shown.push(advice.to_string());
            }
        }
        let run = hyperscope(&[&["advice", "--format", "json"][..], &files].concat());
        let advice: Value = serde_json::from_str(&run.out).unwrap();
        let rows = advice["rows"].as_array().unwrap().iter();
        let mut expected: Vec<String> = rows.map(Value::to_string).collect();
        compared += expected.len();
        shown.sort();
        expected.sort();
        assert_eq!(shown, expected, "{files:?}");
    }
    assert!(compared > 3, "{compared}");
}

#[test]
fn no_string_ends_its_element() {
    let evil = "</script><script>alert(1)</script><!--";
    let page = Page::run(&["--title", evil, "fixtures/arm64/D.dat"]);
    assert_eq!(page.report["title"], evil);
    assert!(!page.text.contains("alert(1)</script>"));
    assert!(!element(&page.text, "hyperscope-report").contains(['<', '>', '&']));
}

#[test]
fn a_page_goes_to_the_file_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    let run = hyperscope(&["report", "fixtures/arm64/D.dat", "-o", path.to_str().unwrap()]);
    assert_eq!((run.code, run.out.as_str()), (0, ""));
    assert!(run.err.contains("in a browser"), "{}", run.err);
    let written = std::fs::read_to_string(path).unwrap();
    assert_eq!(written, Page::run(&["fixtures/arm64/D.dat"]).text);
}

/// By exit in the lists of a page: its row, its VM's vCPU, and its duration.
fn listed(page: &Page) -> HashMap<String, (u64, u64, u64)> {
    let mut rows: HashMap<String, (u64, u64, u64)> = HashMap::new();
    for list in page.report["each_exit"].as_array().unwrap() {
        let mut columns = page.columns(&list["columns_in"]);
        let groups = list["groups"].as_array().unwrap();
        let counts: Vec<usize> = groups
            .iter()
            .map(|group| usize::try_from(group["exits"].as_u64().unwrap()).unwrap())
            .collect();
        let all: usize = counts.iter().sum();
        columns.numbers(all);
        let flags: Vec<u8> = (0..all).map(|_| columns.byte()).collect();
        let lengths = columns.numbers(all);
        let [user, runnable, blocked, poll, _, pc, about] = [(); 7].map(|()| columns.numbers(all));
        assert_eq!(columns.0.next(), None);
        let values = list["values"].as_array().unwrap().len() as u64;
        assert!(pc.iter().chain(&about).all(|place| *place <= values));
        let places = groups.iter().zip(&counts).flat_map(|(group, &count)| {
            let mut group = group.clone();
            group["source"] = list["source"].clone();
            std::iter::repeat_n(key(&group), count)
        });
        for (at, row) in places.enumerate() {
            let sums = rows.entry(row).or_default();
            sums.0 += 1;
            sums.1 += u64::from(flags[at] & 3 == 0);
            sums.2 += lengths[at];
            assert!(user[at] + runnable[at] + blocked[at] + poll[at] <= lengths[at]);
        }
    }
    rows
}

#[test]
fn exits_one_by_one_add_up_to_the_rows() {
    for path in recordings() {
        let page = Page::run(&["--full-paths", &path]);
        let listed = listed(&page);
        let rows = page.report["exits"]["rows"].as_array().unwrap();
        assert_eq!(listed.len(), rows.len(), "{path}");
        for row in rows.iter().filter(|row| row["time_ns"].is_u64()) {
            let number = |name: &str| row[name].as_u64().unwrap();
            let expected = (number("count"), number("paired"), number("time_ns"));
            assert_eq!(listed[&key(row)], expected, "{path}: {row}");
        }
    }
}

/// A page of 700,000 spans needs little more than the minimal memory limit, and merges none of them: 8 MB of recording
/// in 17 MiB. Only the list of exits does not fit.
#[test]
fn a_page_fits_into_its_memory() {
    let file = "fixtures/x86-svm/nested.dat";
    let (unlimited, small) = (Page::run(&[file]), Page::run(&[file, "--max-memory", "17M"]));
    assert!(small.report["timeline"]["spans"].as_u64().unwrap() > 600_000);
    assert_eq!(small.report["timeline"]["merged_below_ns"], 0);
    assert_eq!(small.report["each_exit"], serde_json::json!([]));
    for part in ["exits", "heat", "timeline", "cpu", "profile", "nested"] {
        assert!(small.report[part] == unlimited.report[part], "{part} differs");
    }
    assert_eq!(small.states("vcpu"), unlimited.states("vcpu"));
}
