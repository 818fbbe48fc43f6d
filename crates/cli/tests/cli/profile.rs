//! The code that vCPUs ran, on real recordings: sums equal those of `cpu`, samples equal those of `exits`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::schemas::{check, closed};
use crate::tool::{assert_golden, hyperscope, output_of, recordings};

const PAIRS: [[&str; 2]; 3] = [
    ["fixtures/arm64/A.dat", "fixtures/arm64/A.guest.dat"],
    ["fixtures/x86-svm/boot.dat", "fixtures/x86-svm/boot.guest.dat"],
    ["fixtures/x86-svm/tsc.dat", "fixtures/x86-svm/tsc.guest.dat"],
];

pub(crate) fn json(verb: &str, files: &[&str]) -> Value {
    let run = hyperscope(&[&[verb, "--format", "json"], files].concat());
    assert_eq!(run.code, 0, "{files:?}: {}", run.err);
    serde_json::from_str(&run.out).unwrap()
}

pub(crate) fn rows(report: &Value) -> &Vec<Value> {
    report["rows"].as_array().unwrap()
}

/// All bundled recordings, alone and with their guests.
pub(crate) fn inputs() -> Vec<Vec<String>> {
    let pairs = PAIRS.iter().map(|pair| pair.map(str::to_owned).to_vec());
    recordings().into_iter().map(|path| vec![path]).chain(pairs).collect()
}

/// The name of a time field: nanoseconds or ticks.
pub(crate) fn amount(row: &Value, name: &str) -> u64 {
    let in_ns = row[format!("{name}_ns")].as_u64();
    in_ns.or_else(|| row[format!("{name}_cycles")].as_u64()).unwrap()
}

/// Times by VM and vCPU.
fn by_vcpu<'v>(rows: impl IntoIterator<Item = &'v Value>) -> BTreeMap<(String, u64), u64> {
    let mut sums = BTreeMap::new();
    for row in rows {
        let key = (row["vm"].as_str().unwrap().to_owned(), row["vcpu"].as_u64().unwrap());
        *sums.entry(key).or_default() += amount(row, "time");
    }
    sums
}

#[test]
fn rows_add_up_to_what_cpu_says_of_each_vcpu_and_keep_their_schema() {
    let validator = closed("profile");
    for files in inputs() {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let profile = json("profile", &files);
        check(&validator, &profile, &files.join(" "));
        let cpu = json("cpu", &files);
        let vcpus = cpu["vcpus"].as_array().unwrap();
        assert_eq!(by_vcpu(rows(&profile)), by_vcpu(vcpus), "{files:?}");
        // The states as well; addresses divide the time that cpu calls guest if the guest was not recorded.
        let mut states: BTreeMap<String, u64> = BTreeMap::new();
        for row in rows(&profile) {
            let state = row["state"].as_str().unwrap();
            let name = if state.starts_with("guest") { "guest" } else { state };
            *states.entry(name.to_owned()).or_default() += amount(row, "time");
            let (low, high) = (amount(row, "ci_low"), amount(row, "ci_high"));
            assert!(low <= amount(row, "time") && amount(row, "time") <= high, "{row}");
            assert_eq!(
                row["evidence"] == "none",
                row["stack"] == Value::Array(Vec::new()),
                "{row}"
            );
        }
        for (state, ns) in states.iter().filter(|(state, _)| *state != "guest") {
            let of_cpu = |vcpu: &Value| vcpu["states"][format!("{state}_ns")].as_u64().unwrap_or(0);
            if vcpus.iter().all(|vcpu| vcpu["time_ns"].is_u64()) {
                assert_eq!(vcpus.iter().map(of_cpu).sum::<u64>(), *ns, "{files:?}: {state}");
            }
        }
    }
}

/// All exits that interrupts cause are samples, except those without an entry.
#[test]
fn samples_are_the_exits_of_interrupts() {
    for (path, reasons) in [
        ("fixtures/x86-vmx/smp.dat", &["EXTERNAL_INTERRUPT"][..]),
        ("fixtures/x86-vmx/nested.dat", &["EXTERNAL_INTERRUPT"]),
        ("fixtures/x86-svm/nested.dat", &["interrupt", "nmi"]),
        ("fixtures/x86-svm/host-guest.dat", &["interrupt", "nmi"]),
        ("fixtures/arm64/D.dat", &["IRQ"]),
    ] {
        let exits = json("exits", &[path]);
        let is_interrupt = |row: &&Value| reasons.contains(&row["reason"].as_str().unwrap());
        let interrupts: u64 = rows(&exits)
            .iter()
            .filter(is_interrupt)
            .map(|row| row["count"].as_u64().unwrap())
            .sum();
        let profile = json("profile", &[path]);
        let samples: u64 = rows(&profile).iter().map(|row| row["samples"].as_u64().unwrap()).sum();
        assert!(
            samples <= interrupts && samples * 100 >= interrupts * 97,
            "{path}: {samples} of {interrupts}"
        );
    }
}

/// If the guest recorded its user-space times, addresses agree: neither is derived from the other.
#[test]
fn addresses_fit_what_the_guest_recorded_of_itself() {
    let profile = json("profile", &PAIRS[1]);
    let (mut fit, mut all) = (0, 0);
    for row in rows(&profile).iter().filter(|row| row["evidence"] == "exits") {
        let in_user_space = row["stack"][0]["module"] == "[user]";
        let samples = row["samples"].as_u64().unwrap();
        all += samples;
        fit += if in_user_space == (row["state"] == "guest_user") { samples } else { 0 };
    }
    assert!(all > 1000 && fit * 100 >= all * 99, "{fit} of {all}");
}

#[test]
fn a_guests_own_recording_names_its_functions_and_threads() {
    let files = ["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"];
    let named = |report: &Value, what: fn(&Value) -> bool| {
        let rows = rows(report).iter().filter(|row| row["state"] == "guest_kernel");
        let rows = rows.filter(|row| row["evidence"] == "exits");
        let samples = |row: &Value| row["samples"].as_u64().unwrap();
        let all: u64 = rows.clone().map(samples).sum();
        rows.filter(|row| what(row)).map(samples).sum::<u64>() as f64 / all as f64
    };
    let has_symbol = |row: &Value| row["stack"][0]["symbol"].is_string();
    assert!(named(&json("profile", &files), has_symbol) > 0.9);
    assert!(named(&json("profile", &files[..1]), has_symbol) == 0.0);
    let comms: Vec<String> = rows(&json("profile", &files))
        .iter()
        .filter_map(|row| row["comm"].as_str().map(str::to_owned))
        .collect();
    for comm in ["dd", "sleep", "init"] {
        assert!(comms.iter().any(|name| name == comm), "{comm}");
    }
}

/// Two guests with the same kernel at different addresses: read together, each has the same names as alone.
#[test]
fn guests_of_one_kernel_keep_their_own_symbols() {
    let pairs =
        [["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"], PAIRS[2]];
    let code = |report: &Value| -> BTreeMap<(String, String), u64> {
        let mut samples = BTreeMap::new();
        for row in rows(report).iter().filter(|row| row["state"] == "guest_kernel") {
            let vm = row["vm"].as_str().unwrap().to_owned();
            let symbol = row["stack"][0]["symbol"].as_str().unwrap_or("-").to_owned();
            *samples.entry((vm, symbol)).or_default() += row["samples"].as_u64().unwrap();
        }
        samples
    };
    let mut alone = code(&json("profile", &pairs[0]));
    alone.append(&mut code(&json("profile", &pairs[1])));
    let together = code(&json("profile", &pairs.concat()));
    assert_eq!(together, alone);
    let vms: BTreeSet<&String> = together.keys().map(|(vm, _)| vm).collect();
    assert_eq!(vms.len(), 2);
}

/// The recording of a boot has only symbols of initcalls: none of them names the code after it.
#[test]
fn a_part_of_a_kernels_symbols_names_no_other_code() {
    let report = json("profile", &PAIRS[1]);
    let kernel = rows(&report).iter().filter(|row| row["state"] == "guest_kernel");
    let samples = |row: &Value| row["samples"].as_u64().unwrap();
    let named = kernel.clone().filter(|row| row["stack"][0]["symbol"].is_string());
    // At the begin of an initcall, its name is shown.
    assert!(named.map(samples).sum::<u64>() * 100 < kernel.map(samples).sum());
    let table = hyperscope(&[&["profile"], &PAIRS[1][..]].concat());
    assert!(table.out.contains("only some of its kernel's symbols"), "{}", table.out);
}

#[test]
fn stacks_add_up_and_the_picture_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let files = PAIRS[0];
    let run = hyperscope(
        &[&["profile", "--folded", &at("stacks"), "--flame", &at("flame.svg")], &files[..]]
            .concat(),
    );
    assert_eq!(run.code, 0, "{}", run.err);
    let stacks = fs::read_to_string(at("stacks")).unwrap();
    let sum: u64 =
        stacks.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    let profile = json("profile", &files);
    assert_eq!(sum, amount(&profile["vcpus"][0], "time"));
    assert!(stacks.lines().all(|line| line.starts_with("VM vm-148;vCPU 0;")), "{stacks}");
    assert!(stacks.contains(";guest_kernel;") && stacks.contains(";exit_user;DABT_LOW "));
    let picture = fs::read_to_string(at("flame.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("ptep_clear_flush"));
}

/// Files for other tools have the same sums: speedscope's weights, and pprof's own report if Go is installed.
#[test]
fn profiles_for_other_tools_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let files = PAIRS[2];
    let args = ["profile", "--pprof", &at("p.pb.gz"), "--speedscope", &at("p.json")];
    let run = hyperscope(&[&args[..], &files[..]].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    let profile = json("profile", &files);
    let vcpus = profile["vcpus"].as_array().unwrap();
    let scope: Value = serde_json::from_str(&fs::read_to_string(at("p.json")).unwrap()).unwrap();
    let frames = scope["shared"]["frames"].as_array().unwrap().len() as u64;
    let profiles = scope["profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), vcpus.len());
    for (sampled, vcpu) in profiles.iter().zip(vcpus) {
        let weights = sampled["weights"].as_array().unwrap();
        let sum: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
        assert_eq!((sum, sampled["endValue"].as_u64()), (amount(vcpu, "time"), Some(sum)));
        let samples = sampled["samples"].as_array().unwrap();
        assert_eq!(samples.len(), weights.len());
        let stacks = samples.iter().flat_map(|stack| stack.as_array().unwrap());
        assert!(stacks.map(|frame| frame.as_u64().unwrap()).all(|frame| frame < frames));
    }
    let Ok(raw) = Command::new("go").args(["tool", "pprof", "-raw", &at("p.pb.gz")]).output()
    else {
        testkit::skip!("go is not installed");
        return;
    };
    let raw = String::from_utf8_lossy(&raw.stdout).into_owned();
    // "   SAMPLES   NANOSECONDS: LOCATION …" between the headings of samples and locations.
    let samples = raw.lines().skip_while(|line| *line != "Samples:").skip(2);
    let samples = samples.take_while(|line| *line != "Locations");
    let values = samples.filter_map(|line| line.split_once(':')?.0.split_whitespace().nth(1));
    let sum: u64 = values.filter_map(|value| value.parse::<u64>().ok()).sum();
    assert_eq!(sum, vcpus.iter().map(|vcpu| amount(vcpu, "time")).sum::<u64>(), "{raw:.2000}");
    assert!(raw.contains("state:[guest_kernel]") && raw.contains("[vm-106]"), "{raw:.2000}");
}

#[test]
fn tables_and_csv_are_as_expected() {
    let files = ["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"];
    for by in ["symbol", "comm", "state", "vm"] {
        let run = hyperscope(&[&["profile", "--top", "12", "--by", by], &files[..]].concat());
        assert_golden(&format!("x86-svm-host-guest.profile-{by}.txt"), &run.out);
    }
    assert_golden(
        "x86-svm-nested.profile.txt",
        &output_of(&["profile", "--top", "12", "fixtures/x86-svm/nested.dat"]),
    );
    let csv =
        output_of(&["profile", "--format", "csv", "--by", "state", "fixtures/x86-vmx/smp.dat"]);
    let first: String = csv.split_inclusive('\n').take(6).collect();
    assert_golden("x86-vmx-smp.profile.csv", &first);
    let total_ns: u64 = csv
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(7).unwrap().parse::<u64>().unwrap())
        .sum();
    let profile = json("profile", &["fixtures/x86-vmx/smp.dat"]);
    let vcpus = profile["vcpus"].as_array().unwrap();
    assert_eq!(total_ns, vcpus.iter().map(|vcpu| amount(vcpu, "time")).sum::<u64>());
}

/// Code of guests' programs is distinguished by its addresses, from exits; tables combine places with little time.
#[test]
fn code_of_guests_programs_is_known_by_its_addresses() {
    for path in
        ["fixtures/x86-svm/host-guest.dat", "fixtures/x86-vmx/smp.dat", "fixtures/arm64/D.dat"]
    {
        let profile = json("profile", &[path]);
        let of_programs = rows(&profile).iter().filter(|row| row["state"] == "guest_user");
        let leaves = of_programs.filter(|row| row["evidence"] == "exits");
        let addresses: Vec<u64> =
            leaves.map(|row| row["stack"][0]["offset"].as_u64().unwrap()).collect();
        let places: BTreeSet<u64> = addresses.iter().copied().collect();
        assert!(places.len() > 1, "{path}: {addresses:?}");
        let table = output_of(&["profile", "--top", "0", path]);
        let scattered = table.lines().skip(1).filter(|line| line.contains(" [user] ")).count();
        let vms: BTreeSet<&str> =
            rows(&profile).iter().map(|row| row["vm"].as_str().unwrap()).collect();
        assert!(scattered <= 2 * vms.len(), "{table}");
        let by_instruction = output_of(&["profile", "--by", "instruction", "--top", "0", path]);
        for address in places {
            let name = format!("[user]+{address:#x} ");
            assert!(by_instruction.contains(&name), "{path}: {name}");
        }
    }
}

/// Functions of a guest without a recording, from a list in which each sampled address begins a function.
#[test]
fn a_list_names_the_kernel_of_a_guest_that_was_not_recorded() {
    let path = "fixtures/x86-svm/nested.dat";
    let plain = json("profile", &[path]);
    let seen = |level: u64| -> BTreeMap<u64, u64> {
        let mut times = BTreeMap::new();
        let of_level = rows(&plain).iter().filter(|row| row["level"] == level);
        for row in of_level.filter(|row| row["state"] == "guest_kernel") {
            let address =
                row["stack"].as_array().unwrap().last().and_then(|leaf| leaf["offset"].as_u64());
            if let Some(address) = address {
                *times.entry(address).or_default() += amount(row, "time");
            }
        }
        times
    };
    let (outer, inner) = (seen(1), seen(2));
    assert!(outer.len() > 20 && !inner.is_empty(), "{outer:?} {inner:?}");
    let begin = outer.keys().next().unwrap() - 1;
    let symbols = outer.keys().map(|address| format!("{address:016x} t fn_{address:x}\n"));
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("kallsyms");
    fs::write(&list, format!("{begin:016x} T _stext\n{}", symbols.collect::<String>())).unwrap();
    let list = list.to_str().unwrap();
    for given in [list.to_owned(), format!("vm-102={list}")] {
        let named = json("profile", &["--guest-kallsyms", &given, path]);
        let mut times = BTreeMap::new();
        for row in rows(&named) {
            let leaf = row["stack"].as_array().unwrap().last();
            if let Some(symbol) = leaf.and_then(|leaf| leaf["symbol"].as_str()) {
                assert_eq!(row["level"], 1, "{row}");
                *times.entry(symbol.to_owned()).or_default() += amount(row, "time");
            }
        }
        let expected: BTreeMap<String, u64> =
            outer.iter().map(|(address, ns)| (format!("fn_{address:x}"), *ns)).collect();
        assert_eq!(times, expected);
    }
    let unknown = hyperscope(&["profile", "--guest-kallsyms", &format!("web={list}"), path]);
    assert!(unknown.code == 1 && unknown.err.contains("no VM has the name web"), "{}", unknown.err);
    // A guest's own recording takes precedence.
    let with_own = output_of(&["profile", "--guest-kallsyms", list, PAIRS[0][0], PAIRS[0][1]]);
    assert_eq!(with_own, output_of(&["profile", PAIRS[0][0], PAIRS[0][1]]));
}

#[test]
fn what_has_no_vcpus_says_what_it_takes() {
    let out = output_of(&["profile", "fixtures/x86-svm/functions.dat"]);
    assert!(out.contains("record kvm_entry and kvm_exit, or use record --sample"), "{out}");
    let run = hyperscope(&["profile", "--by", "line", "fixtures/x86-vmx/smp.dat"]);
    assert!(run.code == 2 && run.err.contains("symbol"), "{}", run.err);
}
