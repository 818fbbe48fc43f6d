//! The profile in pages of `hyperscope report` equals that of `hyperscope profile` to the nanosecond, and at any
//! time that of its vCPUs.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::pages::Page;
use crate::profile::{amount, inputs, json};

const EVIDENCE: [&str; 4] = ["none", "exits", "host", "agent"];

/// A row of a page's profile.
pub(crate) struct Row {
    pub(crate) owner: Value,
    /// State, level, reason, thread, evidence and stack, as one text.
    what: String,
    pub(crate) time_ns: u64,
    pub(crate) samples: u64,
    low_ns: u64,
    high_ns: u64,
    /// Numbers of slices, and the time in them.
    pub(crate) slices: Vec<(u64, u64)>,
}

fn count(object: &Value, name: &str) -> usize {
    usize::try_from(object[name].as_u64().unwrap()).unwrap()
}

/// All rows, decoded by the description of columns in docs/formats/report.md.
pub(crate) fn rows_of(page: &Page) -> Vec<Row> {
    let profile = &page.report["profile"];
    let mut columns = page.columns(&profile["columns_in"]);
    let name = |_| {
        let length = columns.number();
        String::from_utf8((0..length).map(|_| columns.byte()).collect()).unwrap()
    };
    let names: Vec<String> = (0..count(profile, "names")).map(name).collect();
    let frames = count(profile, "frames");
    let back = columns.numbers(frames);
    let frame_names = columns.numbers(frames);
    (0..frames).for_each(|_| assert!(columns.byte() <= 1));
    let all = count(profile, "rows");
    let numbers: [Vec<u64>; 11] = std::array::from_fn(|_| columns.numbers(all));
    let place = |number: u64| usize::try_from(number).unwrap();
    let stack = |frame: u64| {
        let (mut at, mut stack) = (place(frame), Vec::new());
        while at > 0 {
            stack.insert(0, names[place(frame_names[at - 1])].as_str());
            at -= place(back[at - 1]);
        }
        stack.join(";")
    };
    let named = |number: u64| match number {
        0 => "-",
        number => names[place(number) - 1].as_str(),
    };
    let mut row = |at: usize| {
        let [owner, state, level, reason, comm, flags, frame, time_ns, samples, below, above] =
            numbers.each_ref().map(|column| column[at]);
        let mut slice = 0;
        let slices = (0..columns.number()).map(|_| {
            slice += columns.number();
            (slice, columns.number())
        });
        let slices = slices.collect();
        assert!(flags < 8, "a stack is cut short");
        let state = profile["states"][place(state)]["key"].as_str().unwrap();
        let evidence = EVIDENCE[place(flags & 3)];
        let (reason, comm, stack) = (named(reason), named(comm), stack(frame));
        Row {
            owner: profile["owners"][place(owner)].clone(),
            what: format!("{state} {level} {reason} {comm} {evidence} {stack}"),
            time_ns,
            samples,
            low_ns: time_ns - below,
            high_ns: time_ns + above,
            slices,
        }
    };
    let rows = (0..all).map(&mut row).collect();
    assert!(columns.is_at_end());
    rows
}

/// The text of a frame in `profile`.
fn frame(frame: &Value) -> String {
    let [symbol, module] = ["symbol", "module"].map(|name| frame[name].as_str());
    let offset = frame["offset"].as_u64();
    match (symbol, module, offset) {
        (Some(symbol), Some(module), _) => format!("{symbol} [{module}]"),
        (Some(symbol), None, _) => symbol.to_owned(),
        (None, Some(module), Some(offset)) => format!("{module}+{offset:#x}"),
        (None, Some(module), None) => module.to_owned(),
        (None, None, offset) => format!("{:#x}", offset.unwrap()),
    }
}

/// Times and samples by vCPU and state: several threads may have one name.
fn by_key(rows: impl Iterator<Item = (String, [u64; 2])>) -> BTreeMap<String, [u64; 2]> {
    let mut all: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (key, amounts) in rows {
        let sums = all.entry(key).or_default();
        sums.iter_mut().zip(amounts).for_each(|(sum, amount)| *sum += amount);
    }
    all
}

#[test]
fn rows_are_those_of_profile_and_add_up_to_cpu() {
    let mut with_vcpus = 0;
    for files in testkit::sampled(inputs(), 2) {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let page = Page::run(&files);
        let (profile, cpu) = (json("profile", &files), json("cpu", &files));
        let vcpus = cpu["vcpus"].as_array().unwrap();
        assert_eq!(page.report["profile"].is_null(), vcpus.is_empty(), "{files:?}");
        if vcpus.is_empty() {
            continue;
        }
        with_vcpus += 1;
        let rows = rows_of(&page);
        for vcpu in vcpus {
            let is_its =
                |row: &&Row| row.owner["vm"] == vcpu["vm"] && row.owner["vcpu"] == vcpu["vcpu"];
            let sum: u64 = rows.iter().filter(is_its).map(|row| row.time_ns).sum();
            assert_eq!(sum, amount(vcpu, "time"), "{files:?}: {vcpu}");
        }
        let shown = rows.iter().filter(|row| row.owner["part"].is_null()).map(|row| {
            let key = format!("{} {} {}", row.owner["vm"], row.owner["vcpu"], row.what);
            assert!(row.low_ns <= row.time_ns && row.time_ns <= row.high_ns, "{}", row.what);
            (key, [row.time_ns, row.samples])
        });
        let expected = profile["rows"].as_array().unwrap().iter().map(|row| {
            let text = |name: &str| row[name].as_str().unwrap_or("-");
            let stack: Vec<String> = row["stack"].as_array().unwrap().iter().map(frame).collect();
            let (state, evidence, level) = (text("state"), text("evidence"), &row["level"]);
            let (reason, stack) = (text("reason"), stack.join(";"));
            // In host states, the thread is the vCPU's own.
            let is_guest = state.starts_with("guest");
            let comm = if is_guest { text("comm") } else { "-" };
            let what = format!("{state} {level} {reason} {comm} {evidence} {stack}");
            let key = format!("{} {} {what}", row["vm"], row["vcpu"]);
            (key, [amount(row, "time"), row["samples"].as_u64().unwrap()])
        });
        let (shown, expected) = (by_key(shown), by_key(expected));
        let different = expected.iter().find(|(key, sums)| shown.get(*key) != Some(*sums));
        let (key, sums) = different.unzip();
        assert_eq!(key.and_then(|key| shown.get(key)), sums, "{files:?}: {key:?}");
        assert_eq!(shown.len(), expected.len(), "{files:?}");
    }
    assert!(with_vcpus > 3, "{with_vcpus}");
}

#[test]
fn rows_add_up_to_the_vcpus_time_in_any_slice() {
    for files in testkit::sampled(inputs(), 2) {
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let page = Page::run(&files);
        if page.report["profile"].is_null() {
            continue;
        }
        let slices = &page.report["profile"]["slices"];
        let [slice_ns, count] = ["slice_ns", "count"].map(|name| slices[name].as_u64().unwrap());
        assert!(count <= 128, "{files:?}: {slices}");
        let mut by_owner: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
        for row in rows_of(&page) {
            let sum: u64 = row.slices.iter().map(|(_, ns)| ns).sum();
            assert_eq!(sum, row.time_ns, "{files:?}: {}", row.what);
            let sums = by_owner.entry(row.owner.to_string()).or_default();
            row.slices.iter().for_each(|(slice, ns)| *sums.entry(*slice).or_default() += ns);
        }
        for (owner, sums) in by_owner {
            let first = *sums.keys().next().unwrap();
            let last = *sums.keys().last().unwrap();
            assert!(last < count, "{files:?}: {owner}");
            for slice in first + 1..last {
                let sum = sums.get(&slice).copied();
                assert_eq!(sum, Some(slice_ns), "{files:?}: {owner}, slice {slice}");
            }
        }
    }
}
