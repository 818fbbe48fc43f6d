//! The cost of exits: all verbs and the page report the same for one recording, to the nanosecond.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::pages::Page;
use crate::tool::{hyperscope, output_of, recordings};

fn document(args: &[&str]) -> Value {
    serde_json::from_str(&output_of(args)).unwrap()
}

fn exits_of(path: &str) -> Vec<Value> {
    document(&["exits", "--format", "json", path])["rows"].as_array().unwrap().clone()
}

fn ns(row: &Value, field: &str) -> u64 {
    row[format!("{field}_ns")].as_u64().unwrap_or(0)
}

fn is_known(row: &Value, field: &str) -> bool {
    row[format!("{field}_ns")].is_u64()
}

#[test]
fn cost_is_what_ran_and_shares_are_of_the_cost_of_exits_that_do_not_wait() {
    let mut known = 0;
    for path in recordings() {
        let rows = exits_of(&path);
        for row in rows.iter().filter(|row| is_known(row, "cost")) {
            let ran = ["before_exit", "kernel", "user", "user_and_return", "not_split"];
            let sum: u64 = ran.iter().map(|part| ns(row, part)).sum();
            assert_eq!(ns(row, "cost"), sum, "{path}: {row:#}");
            assert!(ns(row, "cost_p50") <= ns(row, "cost_p99"), "{path}: {row:#}");
            known += 1;
        }
        let working = || rows.iter().filter(|row| row["waiting"] == false);
        let total: u64 = working().map(|row| ns(row, "cost")).sum();
        for row in working().filter(|row| is_known(row, "cost") && total > 0) {
            let share = ns(row, "cost") as f64 / total as f64;
            assert!((row["cost_share"].as_f64().unwrap() - share).abs() < 1e-9, "{path}: {row:#}");
        }
        let waiting = rows.iter().filter(|row| row["waiting"] == true);
        assert!(waiting.into_iter().all(|row| row["cost_share"].is_null()), "{path}");
    }
    assert!(known > 50, "{known}");
}

/// On this machine, interrupts are handled before `kvm_exit` is traced: by time alone they would rank
/// second.
#[test]
fn exits_are_ranked_by_what_they_cost() {
    let rows = exits_of("fixtures/arm64/D.dat");
    let reasons: Vec<&str> = rows.iter().filter_map(|row| row["reason"].as_str()).collect();
    assert_eq!(reasons, ["IRQ", "DABT_LOW", "HVC64", "WFx"]);
    assert!(ns(&rows[0], "time") < ns(&rows[1], "time"), "by time the order is another");
    let by_time =
        output_of(&["exits", "--sort", "time", "--format", "csv", "fixtures/arm64/D.dat"]);
    let first = |line: &str| line.split(',').nth(4).map(str::to_owned);
    let reasons: Vec<_> = by_time.lines().skip(1).filter_map(first).collect();
    assert_eq!(reasons, ["WFx", "DABT_LOW", "IRQ", "HVC64"]);
    // Preemption took 18% of the time in ten exits of a hundred, at little cost.
    let rows = exits_of("fixtures/x86-vmx/smp.dat");
    assert_eq!(rows[0]["reason"], "IO_INSTRUCTION");
    let working = rows.iter().filter(|row| row["waiting"] == false);
    let longest = working.max_by_key(|row| ns(row, "time")).unwrap();
    assert_eq!(longest["reason"], "EXTERNAL_INTERRUPT");
    assert!(longest["cost_share"].as_f64().unwrap() < 0.05, "{longest:#}");
}

#[test]
fn a_column_that_is_not_there_is_refused_with_those_that_are() {
    let run = hyperscope(&["exits", "--sort", "costs", "fixtures/arm64/D.dat"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("no column costs") && run.err.contains("cost_p99"), "{}", run.err);
}

#[test]
fn tables_say_what_they_are_sorted_by_and_what_shares_are_of() {
    let with_switches = output_of(&["exits", "fixtures/arm64/D.dat"]);
    assert!(with_switches.contains("Exits: how long, by cost\ncost% of 4.40 s on CPUs"));
    let without = output_of(&["exits", "fixtures/x86-svm/hypertrace.dat"]);
    assert!(without.contains("Exits: how long, by time; time% of 771 ms; "), "{without}");
    assert!(without.contains("sched:sched_switch would split it"), "{without}");
    let table = without.split_once("Waiting exits: who pays").unwrap().1;
    assert!(
        table.contains("; halted: according to the exit reason\nreason  halted    time"),
        "{table}"
    );
    assert!(!without.contains("kernel  "), "nothing is called kernel:\n{without}");
}

/// Each VM's rows are above their sum, and sums add up to all exits.
#[test]
fn several_vms_have_their_rows_together_and_a_sum_each() {
    let path = "fixtures/x86-vmx/smp.dat";
    for top in [&[][..], &["--top", "4"]] {
        let text = output_of(&[&["exits", path], top].concat());
        let table = text.split_once("by cost\n").unwrap().1.split_once("\n\n").unwrap().0;
        let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let rows: Vec<Vec<String>> = table.lines().skip(2).map(cells).collect();
        let mut vms: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        vms.dedup();
        assert_eq!(vms.len(), 4, "three VMs and all: {table}");
        let number = |text: &str| text.replace(',', "").parse::<u64>().unwrap();
        let exits = exits_of(path);
        let mut all = 0;
        for vm in &vms[..3] {
            let last = rows.iter().rfind(|row| row[0] == **vm).unwrap();
            assert_eq!(last[1], "all", "{table}");
            let of_vm = exits.iter().filter(|row| row["vm"] == **vm && row["waiting"] == false);
            let counted: u64 = of_vm.map(|row| row["count"].as_u64().unwrap()).sum();
            assert_eq!(number(&last[2]), counted, "{vm}: {table}");
            all += counted;
        }
        let last = rows.last().unwrap();
        assert_eq!((last[0].as_str(), number(&last[1])), ("all", all), "{table}");
    }
}

#[test]
fn costs_and_percentiles_stay_on_a_narrow_terminal() {
    let path = "fixtures/arm64/D.dat";
    let run = crate::tool::command().env("COLUMNS", "60").args(["exits", path]).output().unwrap();
    let text = String::from_utf8(run.stdout).unwrap();
    let heading = text.lines().find(|line| line.starts_with("reason")).unwrap();
    let titles: Vec<&str> = heading.split_whitespace().collect();
    assert!(["cost", "p50", "p99"].iter().all(|title| titles.contains(title)), "{heading}");
    assert!(["time%", "exits%", "mean"].iter().all(|title| !titles.contains(title)), "{heading}");
}

/// Parts of exits, and the states of vCPUs that equal each.
const STATES: [(&[&str], &[&str]); 3] = [
    (&["user", "user_and_return"], &["exit_user"]),
    // If polling is not known for all exits of a row, it is in the kernel part.
    (&["kernel", "halt_poll"], &["exit_kernel", "halt_poll"]),
    (&["off_cpu", "not_split"], &["waiting", "preempted", "halted", "blocked", "not_split"]),
];

/// A document of a selected part; messages about the rest are ignored.
fn part_of(args: &[&str], path: &str, range: &[&str]) -> Value {
    let run = hyperscope(&[args, range, &[path]].concat());
    assert_eq!(run.code, 0, "{args:?} {range:?} {path}: {}", run.err);
    serde_json::from_str(&run.out).unwrap()
}

/// States exceed exits by the time of exits without an entry in the recording.
#[test]
fn exits_cpu_and_page_add_up_to_the_same() {
    let mut exact = 0;
    for path in recordings() {
        exact += sums_are_the_same(&path, &[]);
    }
    assert!(exact >= 5, "{exact}");
}

#[test]
fn exits_cpu_and_page_of_a_range_add_up_to_the_same() {
    let range = ["--from", "+0.3", "--to", "+0.9"];
    let mut compared = 0;
    for path in recordings() {
        let run = hyperscope(&[&["exits"], &range[..], &[&path]].concat());
        // Some recordings are shorter than the range.
        if run.code == 2 && run.err.contains("no events in this range") {
            continue;
        }
        sums_are_the_same(&path, &range);
        compared += 1;
    }
    assert!(compared >= 12, "{compared}");
    let page = Page::run(&[&["fixtures/arm64/D.dat"][..], &range].concat());
    assert_eq!(page.report["title"], "D.dat (+0.3 to +0.9 s)");
}

/// The number of parts that equal their states; the others end after the recording.
fn sums_are_the_same(path: &str, range: &[&str]) -> usize {
    let exits = part_of(&["exits", "--format", "json"], path, range)["rows"].clone();
    let cpu = part_of(&["cpu", "--format", "json"], path, range);
    let page = Page::run(&[&["--full-paths", path], range].concat());
    assert_eq!(page.report["exits"]["rows"], exits, "{path} {range:?}");
    for table in ["vms", "vcpus", "cpus"] {
        assert_eq!(page.report["cpu"][table], cpu[table], "{path} {range:?}: {table}");
    }
    let mut states: BTreeMap<String, u64> = BTreeMap::new();
    for vcpu in cpu["vcpus"].as_array().unwrap() {
        let of_it = vcpu["states"].as_object().unwrap();
        let sum: u64 = of_it.values().filter_map(Value::as_u64).sum();
        assert_eq!(Some(sum), vcpu["time_ns"].as_u64(), "{path} {range:?}: {vcpu:#}");
        for (name, value) in of_it {
            *states.entry(name.clone()).or_default() += value.as_u64().unwrap_or(0);
        }
    }
    let exits = exits.as_array().unwrap();
    let count = |field: &str| -> u64 { exits.iter().filter_map(|row| row[field].as_u64()).sum() };
    let is_whole = count("count") == count("paired");
    let mut exact = 0;
    for (parts, names) in STATES {
        let of_exits: u64 =
            exits.iter().map(|row| parts.iter().map(|part| ns(row, part)).sum::<u64>()).sum();
        let of_states: u64 =
            names.iter().filter_map(|name| states.get(&format!("{name}_ns"))).sum();
        if is_whole {
            assert_eq!(of_exits, of_states, "{path} {range:?}: {parts:?}");
            exact += 1;
        }
        assert!(of_exits <= of_states, "{path} {range:?}: {parts:?} {of_exits} {of_states}");
    }
    exact
}

#[test]
fn conditions_know_what_exits_cost() {
    let sides = ["fixtures/arm64/B-vhost-off.dat", "fixtures/arm64/B-vhost-on.dat"];
    let rows = document(&[&["diff", "--format", "json"][..], &sides].concat());
    let is_cost = |row: &&Value| row["metric"] == "cost_ns_per_s" && row["reason"].is_null();
    let all = rows["rows"].as_array().unwrap().iter().find(is_cost).unwrap();
    for (path, side) in sides.iter().zip(["a", "b"]) {
        let exits = document(&["exits", "--format", "json", path]);
        let working =
            exits["rows"].as_array().unwrap().iter().filter(|row| row["waiting"] == false);
        let cost: u64 = working.map(|row| ns(row, "cost")).sum();
        let per_second = cost as f64 * 1e9 / exits["span_ns"].as_f64().unwrap();
        let found = all[side].as_f64().unwrap();
        assert!((found - per_second).abs() < 1e-6 * per_second, "{path}: {found} {per_second}");
    }
    let run = |limit: &str| {
        let condition = format!("exits.all:cost_per_s > {limit}");
        hyperscope(&["diff", "--fail-if", &condition, sides[0], sides[1]]).code
    };
    let b = all["b"].as_f64().unwrap();
    assert_eq!(
        (run(&format!("{}ns", (b * 0.5) as u64)), run(&format!("{}ns", (b * 2.0) as u64))),
        (3, 0)
    );
}
