//! `hyperscope diff`: compares two recordings, for users and for continuous integration.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::schemas::{check, closed};
use crate::tool::{Run, assert_golden, command, hyperscope, output_of, repository};

const OFF: &str = "fixtures/arm64/B-vhost-off.dat";
const ON: &str = "fixtures/arm64/B-vhost-on.dat";
const VMM: &str = "fixtures/x86-vmx/vmm.dat";
const SMP: &str = "fixtures/x86-vmx/smp.dat";
const SVM: &str = "fixtures/x86-svm/tsc.dat";
const VMX_NESTED: &str = "fixtures/x86-vmx/nested.dat";
const SVM_NESTED: &str = "fixtures/x86-svm/nested.dat";

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&output_of(&[&["diff", "--format", "json"], args].concat())).unwrap()
}

fn rows(report: &Value) -> &[Value] {
    report["rows"].as_array().unwrap()
}

fn row<'r>(report: &'r Value, reason: &str, metric: &str) -> &'r Value {
    let reason = if reason == "all" { Value::Null } else { reason.into() };
    let is_match = |row: &&Value| row["reason"] == reason && row["metric"] == metric;
    rows(report).iter().find(is_match).unwrap()
}

#[test]
fn comparisons_look_as_expected() {
    assert_golden("diff.txt", &output_of(&["diff", OFF, ON]));
    assert_golden("diff-all.txt", &output_of(&["diff", "exits", "--all", OFF, ON]));
    assert_golden("diff.csv", &output_of(&["diff", "--format", "csv", OFF, ON]));
    assert_golden("diff-nested.txt", &output_of(&["diff", "nested", VMX_NESTED, SVM_NESTED]));
    assert_golden("diff-path.txt", &output_of(&["diff", "path", OFF, ON]));
    assert_golden("diff-cpu.txt", &output_of(&["diff", "cpu", OFF, ON]));
    assert_golden(
        "diff-runs.txt",
        &output_of(&["diff", SMP, VMM, "--", SVM, SVM_NESTED, VMX_NESTED]),
    );
}

#[test]
fn comparisons_keep_their_schema() {
    let validator = closed("diff");
    let several = [SVM, VMX_NESTED, "--", VMM, SMP];
    for args in [&[OFF, ON][..], &["nested", VMX_NESTED, SVM_NESTED], &[VMM, SVM], &several] {
        let report = json(args);
        check(&validator, &report, &format!("{args:?}"));
        assert!(!rows(&report).is_empty());
    }
}

/// The finding of this pair of recordings: with vhost there are fewer waits, and each access to the
/// device takes longer.
#[test]
fn what_vhost_changes_is_found() {
    let report = json(&[OFF, ON]);
    let waits = row(&report, "WFx", "count_per_s");
    assert!(waits["significant"] == true && waits["ratio"].as_f64().unwrap() < 0.3, "{waits}");
    let access = row(&report, "DABT_LOW", "mean_ns");
    assert!(access["significant"] == true && access["ratio"].as_f64().unwrap() > 3.0, "{access}");
    let interval = (access["ci_low"].as_f64().unwrap(), access["ci_high"].as_f64().unwrap());
    assert!(interval.0 > 1.0 && interval.1 > 3.3, "{access}");
    // Two hypercalls against none: too few to be significant, and there is no ratio.
    let rare = row(&report, "HVC64", "count_per_s");
    assert_eq!((&rare["ratio"], &rare["significant"]), (&Value::Null, &false.into()), "{rare}");
    assert_eq!(rare["interval_of"], "difference");
    assert_eq!(row(&report, "HVC64", "mean_ns")["b"], Value::Null);
}

/// Values equal those of `exits` for each recording.
#[test]
fn values_are_those_of_the_report_compared() {
    let report = json(&[OFF, ON]);
    for (side, path) in [("a", OFF), ("b", ON)] {
        let exits: Value =
            serde_json::from_str(&output_of(&["exits", "--format", "json", path])).unwrap();
        let seconds = exits["span_ns"].as_f64().unwrap() / 1e9;
        for exit in exits["rows"].as_array().unwrap() {
            let value = |metric: &str| {
                row(&report, exit["reason"].as_str().unwrap(), metric)[side].as_f64()
            };
            let close = |metric: &str, known: f64| {
                let found = value(metric).unwrap();
                assert!((found - known).abs() <= known * 1e-9 + 0.5, "{metric} {found} {known}");
            };
            close("count_per_s", exit["count"].as_f64().unwrap() / seconds);
            close("time_ns_per_s", exit["time_ns"].as_f64().unwrap() / seconds);
            close("mean_ns", exit["mean_ns"].as_f64().unwrap());
            for quantile in ["p50_ns", "p90_ns", "p99_ns"] {
                assert_eq!(value(quantile), exit[quantile].as_f64(), "{quantile}");
            }
            close("user_ns_per_s", exit["user_ns"].as_f64().unwrap() / seconds);
            close("off_cpu_ns_per_s", exit["off_cpu_ns"].as_f64().unwrap() / seconds);
        }
    }
}

/// A part that one side can't separate is not separated on the other side either.
#[test]
fn parts_add_up_to_the_time_on_both_sides() {
    let report = json(&[OFF, ON]);
    let parts = ["kernel_ns_per_s", "user_ns_per_s", "off_cpu_ns_per_s", "halt_poll_ns_per_s"];
    for reason in ["WFx", "DABT_LOW", "IRQ"] {
        for side in ["a", "b"] {
            let is_part = |row: &Value| {
                row["reason"] == reason && parts.iter().any(|part| row["metric"] == *part)
            };
            let sum: f64 = rows(&report)
                .iter()
                .filter(|row| is_part(row))
                .map(|row| row[side].as_f64().unwrap())
                .sum();
            let time = row(&report, reason, "time_ns_per_s")[side].as_f64().unwrap();
            assert!((sum - time).abs() <= 4.0, "{reason} {side}: {sum} of {time}");
        }
    }
}

/// A copy of the recording: naming the same file twice is refused.
fn copy_of(path: &str, folder: &Path) -> String {
    let copy = folder.join("copy.dat");
    std::fs::copy(repository().join(path), &copy).unwrap();
    copy.to_str().unwrap().to_owned()
}

#[test]
fn a_recording_does_not_differ_from_itself() {
    let folder = tempfile::tempdir().unwrap();
    for path in ["fixtures/arm64/A.dat", "fixtures/arm64/D.dat", SVM, SMP, VMX_NESTED] {
        for report in ["exits", "nested"] {
            let report = json(&[report, path, &copy_of(path, folder.path())]);
            for row in rows(&report) {
                assert_eq!(row["significant"], false, "{path}: {row}");
                assert!(row["ratio"].is_null() || row["ratio"] == 1.0, "{path}: {row}");
                assert!(row["p_value"].is_null() || row["p_value"] == 1.0, "{path}: {row}");
            }
        }
    }
}

#[test]
fn nested_exits_are_compared_with_what_they_bring_about() {
    let folder = tempfile::tempdir().unwrap();
    let report = json(&["nested", SVM_NESTED, &copy_of(SVM_NESTED, folder.path())]);
    assert!(rows(&report).iter().all(|row| row["significant"] == false));
    let factor = row(&report, "io", "factor");
    assert!((factor["a"].as_f64().unwrap() - 10.11).abs() < 0.01, "{factor}");
    let row_of = |ancillary: &str| {
        let is_match = |row: &&Value| row["reason"] == "io" && row["ancillary"] == ancillary;
        rows(&report).iter().find(is_match).unwrap().clone()
    };
    // The numbers in README.md: VMRUN once per exit, VMLOAD and VMSAVE twice.
    for (ancillary, per_exit) in [("vmrun", 1.0), ("vmload", 2.0), ("vmsave", 2.01)] {
        let found = row_of(ancillary);
        assert_eq!(found["metric"], "per_exit");
        assert!((found["a"].as_f64().unwrap() - per_exit).abs() < 0.005, "{found}");
    }
}

#[test]
fn results_do_not_depend_on_threads_and_come_again_from_their_seed() {
    let with_threads = |threads: &str, seed: &str| {
        let mut command = command();
        command.args(["diff", "--format", "json", "--seed", seed, OFF, ON]);
        let output = command.env("RAYON_NUM_THREADS", threads).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["rows"].clone()
    };
    let expected = with_threads("1", "1");
    assert_eq!(expected, with_threads("4", "1"));
    assert_ne!(expected, with_threads("1", "2"));
}

/// Nanoseconds per second by state, from the stacks of side `side`.
fn states_of_stacks(folded: &str, side: usize) -> BTreeMap<String, f64> {
    let mut states = BTreeMap::new();
    for line in folded.lines() {
        let mut parts = line.rsplitn(3, ' ');
        let rates = [parts.next(), parts.next()].map(|rate| rate.unwrap().parse::<f64>().unwrap());
        let state = parts.next().unwrap().split(';').nth(1).unwrap();
        *states.entry(state.to_owned()).or_default() += rates[1 - side];
    }
    states
}

#[test]
fn stacks_of_both_sides_are_in_one_picture() {
    let folder = tempfile::tempdir().unwrap();
    let [svg, stacks] = ["out.svg", "out.folded"].map(|name| folder.path().join(name));
    let files = ["--flame", svg.to_str().unwrap(), "--folded", stacks.to_str().unwrap()];
    let report = json(&[&["profile"], &files[..], &[OFF, ON]].concat());
    let folded = fs::read_to_string(&stacks).unwrap();
    for (side, (path, seconds)) in [(OFF, "a_seconds"), (ON, "b_seconds")].iter().enumerate() {
        let profile = hyperscope(&["profile", "--format", "json", path]);
        let profile: Value = serde_json::from_str(&profile.out).unwrap();
        let seconds = report[seconds][0].as_f64().unwrap();
        let mut expected: BTreeMap<String, f64> = BTreeMap::new();
        for row in rows(&profile) {
            let state = row["state"].as_str().unwrap().to_owned();
            *expected.entry(state).or_default() += row["time_ns"].as_f64().unwrap() / seconds;
        }
        let found = states_of_stacks(&folded, side);
        for (state, rate) in &expected {
            // Shares of samples are truncated to nanoseconds, and rates to nanoseconds per second.
            let error = (found.get(state).copied().unwrap_or(0.0) - rate).abs();
            assert!(error < 1000.0 + rate * 1e-5, "{path} {state}: {rate}, off by {error}");
        }
    }
    let picture = fs::read_to_string(&svg).unwrap();
    assert!(picture.contains("blue: less in B"), "{picture}");
    // With vhost, the guest has no time to halt; unchanged frames are grey.
    let class = |name: &str| {
        let at = picture.find(&format!("data-n=\"{name}\"")).unwrap();
        let class = &picture[picture[..at].rfind("class=\"f ").unwrap() + 9..at];
        class.chars().next().unwrap()
    };
    assert_eq!((class("halted"), class("VM vm-556")), ('d', 'n'));
}

#[track_caller]
fn ends(args: &[&str], code: i32, words: &[&str]) {
    let Run { code: found, err, .. } = hyperscope(&[&["diff"], args].concat());
    assert_eq!(found, code, "{args:?}: {err}");
    for word in words {
        assert!(err.contains(word), "{args:?}: no {word:?} in {err}");
    }
}

#[test]
fn conditions_end_with_code_3_when_they_hold() {
    let sides = [OFF, ON];
    let judged = |conditions: &[&str], code, words: &[&str]| {
        ends(&[conditions, &sides[..]].concat(), code, words);
    };
    judged(&["--fail-if", "exits.p90 > +10%"], 3, &["DABT_LOW p90_ns went from 586 us to 3.74 ms"]);
    judged(&["--fail-if", "WFx:count<-50%"], 3, &["WFx count_per_s", "0.19x"]);
    judged(&["--fail-if", "mean > 4x"], 0, &[]);
    // One condition that holds is enough.
    judged(&["--fail-if", "mean > 4x", "--fail-if", "all:mean > 1.5x"], 3, &["all mean_ns"]);
    // Beyond the limit, but not significant.
    judged(&["--fail-if", "IRQ:count > +10%"], 0, &["not significantly"]);
    judged(&["--fail-if", "IRQ:count > +10%", "--fail-on-estimate"], 3, &["1.20x"]);
    // A condition on B's value needs no A.
    judged(&["--fail-if", "all:time > 400ms"], 3, &["43.1%"]);
    judged(&["--fail-if", "all:time > 500ms"], 0, &[]);
    // A misspelt name must not look like success.
    judged(&["--fail-if", "DABT_HIGH:p99 > +1%"], 1, &["DABT_HIGH", "no row"]);
}

#[test]
fn wrong_usage_says_what_to_do() {
    ends(&[], 2, &["Usage: hyperscope diff", "A B"]);
    ends(&[VMM], 2, &["nothing to be compared with", "diff A B"]);
    ends(&["exits"], 2, &["nothing to compare"]);
    ends(&["nested", VMM], 2, &["nothing to be compared with"]);
    ends(&[VMM, SMP, OFF], 2, &["3 runs", "put --"]);
    ends(&[VMM, VMM, "--", SMP], 2, &["twice among the runs of A"]);
    ends(&["--alpha", "1", VMM, SMP], 2, &["between 0 and 1"]);
    ends(&["--min-effect", "some", VMM, SMP], 2, &["percent"]);
    ends(&["--fail-if", "p98 > 1%", VMM, SMP], 2, &["no metric \"p98\"", "\n  p98 > 1%\n  ^"]);
    ends(&["--fail-if", "p99 > +1q", VMM, SMP], 2, &["unknown unit", "\n  p99 > +1q\n          ^"]);
    ends(
        &["--fail-if", "nested.p99 > 1%", VMM, SMP],
        2,
        &["only metrics of this report can be checked here: exits"],
    );
    ends(&["--fail-if", "factor > 1", VMM, SMP], 2, &["exits has no such metric"]);
    ends(&["--fail-on-estimate", VMM, SMP], 2, &["--fail-if"]);
    ends(&["--flame", "out.svg", VMM, SMP], 2, &["exits has no stacks", "diff profile"]);
    ends(&[VMM, "missing.dat"], 1, &["missing.dat", "No such file"]);
    ends(&["-o", VMM, VMM, SMP], 1, &["is an input recording"]);
}

#[test]
fn small_changes_are_left_out_when_asked() {
    let all = output_of(&["diff", OFF, ON]);
    let some = output_of(&["diff", "--min-effect", "200", OFF, ON]);
    assert!(some.lines().count() < all.lines().count());
    assert!(some.contains("too small to show") && some.contains("6.37x"), "{some}");
    assert!(!some.contains("2.02x"), "{some}");
}

#[test]
fn tables_fit_the_columns_asked_for() {
    for columns in [80, 100, 140] {
        let mut command = command();
        command.args(["diff", "--all", OFF, ON]).env("COLUMNS", columns.to_string());
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        for line in text.lines().filter(|line| line.contains("_ns")) {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
    }
}

/// The hop that differs between packets sent by the VMM and by vhost is described in words, and the
/// counts of requests equal the report's.
#[test]
fn hops_that_someone_else_does_are_named() {
    let report = json(&["path", OFF, ON]);
    check(&closed("diff"), &report, "path");
    let notes = report["notes"].as_array().unwrap();
    let moved = "kp_tun_get_user is on iothread in A";
    assert!(notes.iter().any(|note| note.as_str().unwrap().contains(moved)), "{notes:?}");
    let kick = "mmio write 0x8000003004";
    let row = rows(&report).iter().find(|row| {
        row["start"] == kick && row["step"].is_null() && row["metric"] == "count_per_s"
    });
    for (side, file, seconds) in [("a", OFF, "a_seconds"), ("b", ON, "b_seconds")] {
        let paths: Value =
            serde_json::from_str(&output_of(&["path", "--format", "json", file])).unwrap();
        let of_kick =
            paths["paths"].as_array().unwrap().iter().filter(|path| path["start"] == kick);
        let count: u64 = of_kick.map(|path| path["count"].as_u64().unwrap()).sum();
        let counted = row.unwrap()[side].as_f64().unwrap() * report[seconds][0].as_f64().unwrap();
        assert_eq!(counted.round() as u64, count, "{file}");
    }
}

/// States and parts equal those of the report.
#[test]
fn the_use_of_cpus_is_compared() {
    let report = json(&["cpu", OFF, ON]);
    check(&closed("diff"), &report, "cpu");
    for (side, file, seconds) in [("a", OFF, "a_seconds"), ("b", ON, "b_seconds")] {
        let cpu: Value =
            serde_json::from_str(&output_of(&["cpu", "--by", "vm", "--format", "json", file]))
                .unwrap();
        let states = &cpu["vms"][0]["states"];
        for state in ["guest", "exit_kernel", "exit_user", "halted"] {
            let is_match = |row: &&Value| row["state"] == state && row["metric"] == "time_ns_per_s";
            let row = rows(&report).iter().find(is_match).unwrap();
            let found = row[side].as_f64().unwrap() * report[seconds][0].as_f64().unwrap();
            let expected = states[format!("{state}_ns")].as_f64().unwrap();
            assert!(
                (found - expected).abs() <= expected * 1e-6 + 10.0,
                "{state} {found} {expected}"
            );
        }
    }
}
