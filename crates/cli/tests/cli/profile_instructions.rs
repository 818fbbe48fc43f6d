//! Instructions within functions, on real recordings: they add up to their functions.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::profile::{amount, inputs, json};
use crate::schemas::{check, closed};
use crate::tool::hyperscope;

/// The key of a row's innermost function: VM, vCPU, state, exit, module, name.
type Function = [String; 6];

/// Time by function. An address replaces an unknown function.
fn by_function(report: &Value) -> BTreeMap<Function, u64> {
    let mut sums = BTreeMap::new();
    for row in report["rows"].as_array().unwrap() {
        let leaf = row["stack"].as_array().unwrap().last();
        let of_leaf = |name: &str| leaf.map_or(Value::Null, |leaf| leaf[name].clone()).to_string();
        let key = [&row["vm"], &row["vcpu"], &row["state"], &row["reason"]].map(Value::to_string);
        let [vm, vcpu, state, reason] = key;
        let function = [vm, vcpu, state, reason, of_leaf("module"), of_leaf("symbol")];
        *sums.entry(function).or_default() += amount(row, "time");
    }
    sums
}

#[test]
fn instructions_add_up_to_their_functions_and_lie_in_them() {
    let validator = closed("profile");
    for files in inputs() {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let by_instruction = json("profile", &[&["--by", "instruction"], &files[..]].concat());
        check(&validator, &by_instruction, &files.join(" "));
        let functions = json("profile", &files);
        // The time of a state is distributed over places of code in whole nanoseconds, so each may be off by
        // one.
        let rows = by_instruction["rows"].as_array().unwrap();
        let (found, expected) = (by_function(&by_instruction), by_function(&functions));
        assert_eq!(found.values().sum::<u64>(), expected.values().sum::<u64>(), "{files:?}");
        assert!(found.keys().eq(expected.keys()), "{files:?}");
        for (function, ns) in &found {
            let is_near = ns.abs_diff(expected[function]) <= rows.len() as u64;
            assert!(is_near, "{files:?} {function:?}: {ns}, not {}", expected[function]);
        }
        let rows = rows.iter();
        for leaf in rows.filter_map(|row| row["stack"].as_array()?.last()) {
            // The longest function of a kernel has about 100 KiB.
            let is_named = leaf["symbol"].is_string() && leaf["module"] != "[user]";
            assert!(!is_named || leaf["offset"].as_u64().unwrap() < 1 << 20, "{leaf}");
        }
    }
}

#[test]
fn one_function_is_shown_in_the_order_of_its_code() {
    let files = ["fixtures/x86-svm/tsc.dat", "fixtures/x86-svm/tsc.guest.dat"];
    let arguments = ["profile", "--by", "instruction", "--symbol", "*idle*", "--format", "csv"];
    let run = hyperscope(&[&arguments[..], &["--idle"], &files].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    let mut rows = csv::Reader::from_reader(run.out.as_bytes());
    let headers = rows.headers().unwrap().clone();
    let place = |name: &str| headers.iter().position(|header| header == name).unwrap();
    let (function, offset) = (place("function"), place("offset"));
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| row[function].contains("idle")));
    assert!(rows.iter().all(|row| row[offset].parse::<u64>().is_ok()));
    let table = hyperscope(&[&arguments[..5], &["--idle"], &files].concat());
    assert!(table.out.contains(" in *idle*\n"), "{}", table.out);
    assert!(table.out.contains("have no instruction: record --sample saves"), "{}", table.out);
    let unknown = hyperscope(&[&arguments[..4], &["no_such_function"], &files].concat());
    assert_eq!((unknown.code, unknown.out.as_str()), (1, ""));
    assert!(unknown.err.contains("no sample hit the function no_such_function"), "{}", unknown.err);
}

/// A loop of a dozen instructions, with a function name of its own.
const LOOP: &str = "#include <time.h>
__attribute__((noipa)) unsigned spun(unsigned rounds) {
    unsigned sum = 1;
    for (unsigned at = 0; at < rounds; at++) sum = (sum * 1664525u + at) ^ (sum >> 7) ^ (sum << 3);
    return sum;
}
int main(void) {
    unsigned sum = 0;
    time_t end = time(0) + 2;
    while (time(0) < end) sum += spun(100000);
    return sum == 42;
}
";
/// Instructions shown before each sampled one.
const CONTEXT: usize = 3;

fn succeeds(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Offsets of a function's instructions, from objdump.
fn offsets(program: &str) -> Option<Vec<u64>> {
    let listing = succeeds("objdump", &["-d", "--disassemble=spun", program])?;
    let address = |line: &str| u64::from_str_radix(line.split_once(':')?.0.trim(), 16).ok();
    let all: Vec<u64> =
        listing.lines().filter(|line| line.contains(":\t")).filter_map(address).collect();
    Some(all.iter().map(|at| at - all[0]).collect())
}

/// Samples by offset, from a table's lines.
fn listed(table: &str) -> BTreeMap<u64, u64> {
    let place = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let offset = words.iter().find_map(|word| word.strip_prefix("+0x"))?;
        Some((u64::from_str_radix(offset, 16).ok()?, words.last()?.parse().ok()?))
    };
    table.lines().filter_map(place).collect()
}

#[test]
fn those_before_an_instruction_that_was_sampled_are_shown_where_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [source, program, samples] = [path("spin.c"), path("spin"), path("perf.data")];
    std::fs::write(&source, LOOP).unwrap();
    let made = succeeds("gcc", &["-O1", "-o", &program, &source]);
    let perf = ["record", "-q", "-e", "cpu-clock", "-F", "997", "-o", &samples, "--", &program];
    let Some(expected) = made.and_then(|_| succeeds("perf", &perf)).and_then(|_| offsets(&program))
    else {
        return testkit::skip!("gcc, objdump or perf are missing, or perf can't record here");
    };
    let table = |more: &[&str]| {
        let args = ["profile", "--by", "instruction", "--symbol", "spun", "--top", "0"];
        let run = hyperscope(&[&args[..], more, &[&samples]].concat());
        assert_eq!(run.code, 0, "{}", run.err);
        listed(&run.out)
    };
    let sampled = table(&[]);
    assert!(!sampled.is_empty() && sampled.values().all(|samples| *samples > 0), "{sampled:?}");
    let mut wanted: BTreeMap<u64, u64> = BTreeMap::new();
    for (offset, samples) in &sampled {
        let at = expected.iter().position(|candidate| candidate == offset).unwrap();
        for before in &expected[at.saturating_sub(CONTEXT)..at] {
            wanted.entry(*before).or_insert(0);
        }
        wanted.insert(*offset, *samples);
    }
    assert_eq!(table(&["--context", &CONTEXT.to_string()]), wanted, "{expected:?}");
    assert!(wanted.len() > sampled.len(), "{sampled:?} of {expected:?}");
}

#[test]
fn only_instructions_have_others_before_them() {
    let run = hyperscope(&["profile", "--context", "3", "fixtures/x86-svm/tsc.dat"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("--by instruction"), "{}", run.err);
}
