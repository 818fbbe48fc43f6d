//! `hyperscope irqs`: handlers of interrupts, compared with a count of the printed events of the same recordings.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::pages::Page;
use crate::schemas::{check, closed};
use crate::tool::{assert_golden, hyperscope, output_of, recordings};

/// Hosts and guests whose recordings both have events of interrupts.
const PAIRS: [[&str; 2]; 4] = [
    ["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"],
    ["fixtures/x86-svm/tsc.dat", "fixtures/x86-svm/tsc.guest.dat"],
    ["fixtures/x86-svm/hypertrace.dat", "fixtures/x86-svm/hypertrace.guest.dat"],
    ["fixtures/arm64/A.dat", "fixtures/arm64/A.guest.dat"],
];

fn json(args: &[&str]) -> Value {
    let run = hyperscope(&[&["irqs", "--format", "json"], args].concat());
    assert_eq!(run.code, 0, "{args:?}: {}", run.err);
    serde_json::from_str(&run.out).unwrap()
}

fn handlers(report: &Value) -> &Vec<Value> {
    report["handlers"].as_array().unwrap()
}

fn sum(report: &Value, name: &str) -> u64 {
    handlers(report).iter().filter_map(|row| row[name].as_u64()).sum()
}

/// The recounted numbers of a row.
#[derive(Clone, Debug, Default, PartialEq)]
struct Counted {
    count: u64,
    own_ns: u64,
    total_ns: u64,
    longest_ns: u64,
    delays_ns: Vec<u64>,
}

/// Recounts handlers of a recording by kind and number from its printed events: each begin is paired with the next end
/// of the same handler on its CPU, and every nanosecond belongs to the handler that began last.
fn recounted(path: &str) -> BTreeMap<(String, u64), Counted> {
    let events = output_of(&["events", "--format", "jsonl", path]);
    let mut counted: BTreeMap<(String, u64), Counted> = BTreeMap::new();
    let mut open: BTreeMap<u64, Vec<(String, u64, u64, u64)>> = BTreeMap::new();
    let mut due: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let (ns, cpu) = (event["ts_ns"].as_u64().unwrap(), event["cpu"].as_u64().unwrap());
        let name = event["event"].as_str().unwrap();
        let number = |field: &str| event["fields"][field].as_u64().unwrap();
        let open = open.entry(cpu).or_default();
        let (kind, number) = match name {
            "irq:irq_handler_entry" | "irq:irq_handler_exit" => ("irq", number("irq")),
            "irq:softirq_raise" => {
                due.entry((cpu, number("vec"))).or_insert(ns);
                continue;
            }
            "irq:softirq_entry" | "irq:softirq_exit" => ("softirq", number("vec")),
            _ => continue,
        };
        let row = counted.entry((kind.to_owned(), number)).or_default();
        if name.ends_with("_entry") {
            row.count += 1;
            if kind == "softirq" {
                row.delays_ns.extend(due.remove(&(cpu, number)).map(|since| ns - since));
            }
            open.push((kind.to_owned(), number, ns, 0));
        } else {
            let (was, was_number, from_ns, within_ns) = open.pop().unwrap();
            assert_eq!((was.as_str(), was_number), (kind, number), "handlers that overlap");
            row.total_ns += ns - from_ns;
            row.own_ns += ns - from_ns - within_ns;
            row.longest_ns = row.longest_ns.max(ns - from_ns);
            if let Some((.., within)) = open.last_mut() {
                *within += ns - from_ns;
            }
        }
    }
    counted
}

#[test]
fn handlers_are_as_recounted_from_printed_events() {
    let mut of_each_kind = BTreeMap::<String, u64>::new();
    for [_, guest] in PAIRS {
        let report = json(&[guest]);
        let expected = recounted(guest);
        assert_eq!(handlers(&report).len(), expected.len(), "{guest}");
        for row in handlers(&report) {
            let kind = row["kind"].as_str().unwrap().to_owned();
            *of_each_kind.entry(kind.clone()).or_default() += 1;
            let mut counted = expected[&(kind, row["number"].as_u64().unwrap())].clone();
            counted.delays_ns.sort_unstable();
            assert_eq!(row["count"], counted.count, "{guest}: {row}");
            assert_eq!(row["own_ns"], counted.own_ns, "{guest}: {row}");
            assert_eq!(row["total_ns"], counted.total_ns, "{guest}: {row}");
            assert_eq!(row["duration_max_ns"], counted.longest_ns, "{guest}: {row}");
            assert_eq!(row["delayed"], counted.delays_ns.len(), "{guest}: {row}");
            assert_eq!(row["delay_max_ns"].as_u64(), counted.delays_ns.last().copied(), "{row}");
        }
    }
    assert!(of_each_kind["irq"] > 5 && of_each_kind["softirq"] > 5, "{of_each_kind:?}");
}

/// The guest's part of handlers' time equals the vCPUs' time in them in `cpu`.
#[test]
fn the_guests_part_is_what_cpu_says() {
    for pair in PAIRS {
        let report = json(&pair);
        let cpu = output_of(&["cpu", "--format", "json", pair[0], pair[1]]);
        let cpu: Value = serde_json::from_str(&cpu).unwrap();
        let in_guest = |vcpu: &Value| vcpu["states"]["guest_irq_ns"].as_u64().unwrap_or(0);
        let expected: u64 = cpu["vcpus"].as_array().unwrap().iter().map(in_guest).sum();
        assert_eq!(sum(&report, "placed"), sum(&report, "timed"), "{pair:?}");
        assert_eq!(sum(&report, "own_ns") - sum(&report, "own_away_ns"), expected, "{pair:?}");
        assert!(expected > 0, "{pair:?}");
    }
}

#[test]
fn rows_by_cpu_and_thread_add_up_to_those_by_handler() {
    for pair in PAIRS {
        let by_handler = json(&pair);
        for by in ["cpu", "thread"] {
            let parts = json(&[&["--by", by], pair.as_slice()].concat());
            assert!(
                handlers(&parts).len() > handlers(&by_handler).len() || by == "cpu",
                "{pair:?}"
            );
            for name in ["count", "timed", "own_ns", "total_ns", "placed", "own_away_ns", "delayed"]
            {
                assert_eq!(sum(&parts, name), sum(&by_handler, name), "{name} by {by} of {pair:?}");
            }
        }
    }
}

#[test]
fn histograms_have_all_runs() {
    let report = json(&PAIRS[1]);
    let histograms = report["histograms"].as_array().unwrap();
    assert_eq!(histograms.len(), handlers(&report).len());
    for (row, histogram) in handlers(&report).iter().zip(histograms) {
        let below = histogram["below"].as_array().unwrap();
        let count: u64 = below.iter().map(|bucket| bucket["count"].as_u64().unwrap()).sum();
        assert_eq!(row["timed"], count, "{row}");
        let (max, last) = (row["duration_max_ns"].as_u64().unwrap(), &below[below.len() - 1]);
        let last_ns = last["ns"].as_u64().unwrap();
        assert!(max < last_ns && max >= last_ns / 2, "{row}");
    }
}

#[test]
fn parts_of_a_recording_have_the_runs_that_begin_in_them() {
    let pair = PAIRS[1];
    let report = json(&pair);
    let span_ns = report["machines"][1]["span_ns"].as_u64().unwrap();
    let middle = format!("+{:.9}", span_ns as f64 / 2e9);
    let part = |args: &[&str]| json(&[args, pair.as_slice()].concat());
    let (first, second) = (part(&["--to", &middle]), part(&["--from", &middle]));
    let counts = sum(&first, "count") + sum(&second, "count");
    assert_eq!(counts, sum(&report, "count"));
    assert!(sum(&first, "count") > 0 && sum(&second, "count") > 0);
    assert!(sum(&first, "own_ns") + sum(&second, "own_ns") <= sum(&report, "own_ns"));
}

/// This recording has only the begins of its vectors.
#[test]
fn runs_without_an_end_are_counted() {
    let report = json(&["fixtures/x86-vmx/smp.dat"]);
    let timer = handlers(&report).iter().find(|row| row["name"] == "local_timer").unwrap();
    let summary = (&timer["kind"], &timer["count"], &timer["timed"]);
    assert_eq!(summary, (&"vector".into(), &454.into(), &0.into()));
    assert_eq!((&timer["own_ns"], &timer["number"]), (&Value::Null, &Value::Null));
    let run = hyperscope(&["irqs", "fixtures/x86-vmx/smp.dat"]);
    assert!(run.out.contains("without a recorded end"), "{}", run.out);
}

#[test]
fn every_recording_keeps_the_schema() {
    let validator = closed("irqs");
    for path in recordings() {
        check(&validator, &json(&[&path]), &path);
    }
    for pair in PAIRS {
        check(&validator, &json(&[&["--by", "thread"], pair.as_slice()].concat()), pair[0]);
    }
}

/// A page finds them in its pass for the timeline as well.
#[test]
fn a_page_has_the_same_rows() {
    let alone = ["fixtures/x86-vmx/smp.dat"];
    for files in PAIRS.iter().map(|pair| pair.as_slice()).chain([&alone[..]]) {
        let page = Page::run(&[&["--full-paths"], files].concat());
        assert!(!handlers(&page.report["irqs"]).is_empty(), "{files:?}");
        assert_eq!(page.report["irqs"], json(files), "{files:?}");
    }
}

#[test]
fn tables_and_csv_are_as_expected() {
    let [host, guest] = PAIRS[3];
    assert_golden("irqs.txt", &output_of(&["irqs", host, guest]));
    assert_golden("irqs.csv", &output_of(&["irqs", "--format", "csv", host, guest]));
    let by_thread = output_of(&["irqs", "--by", "thread", "--top", "3", "--histogram", guest]);
    assert_golden("irqs-by-thread.txt", &by_thread);
}

#[test]
fn recordings_without_its_events_say_what_it_takes() {
    let run = hyperscope(&["irqs", "fixtures/x86-svm/nested.dat"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("-e irq"), "{}", run.out);
}
