//! The complete tables of every bundled recording.

use crate::tool::{assert_golden, hyperscope, output_of, recordings};

/// The name of a recording in names of expected outputs: `arm64-A`.
fn slug(path: &str) -> String {
    path.trim_start_matches("fixtures/").trim_end_matches(".dat").replace('/', "-")
}

#[test]
fn tables_of_every_recording_are_as_expected() {
    for path in recordings() {
        for verb in ["exits", "nested", "advice", "why", "info"] {
            assert_golden(&format!("{}.{verb}.txt", slug(&path)), &output_of(&[verb, &path]));
        }
    }
}

#[test]
fn the_first_events_of_every_recording_are_as_expected() {
    for path in recordings() {
        let run = hyperscope(&["events", &path]);
        assert_eq!(run.code, 0, "{path}: {}", run.err);
        let first: String = run.out.split_inclusive('\n').take(50).collect();
        assert_golden(&format!("{}.events.txt", slug(&path)), &first);
    }
}

#[test]
fn exits_group_by_each_property() {
    let groupings = [
        ("vcpu-reason", "fixtures/x86-vmx/smp.dat", "vcpu,reason"),
        ("msr", "fixtures/x86-vmx/vmm.dat", "reason,msr"),
        ("port", "fixtures/x86-vmx/vmm.dat", "reason,port"),
        ("gpa", "fixtures/x86-vmx/vmm.dat", "reason,gpa"),
        ("hypercall", "fixtures/x86-vmx/vmm.dat", "hypercall"),
        ("cpuid_leaf", "fixtures/x86-vmx/vmm.dat", "cpuid_leaf"),
        ("code", "fixtures/arm64/D.dat", "code"),
        ("task", "fixtures/arm64/D.dat", "task,level"),
    ];
    for (name, path, by) in groupings {
        assert_golden(&format!("by-{name}.txt"), &output_of(&["exits", "--by", by, path]));
    }
}

#[test]
fn rows_past_the_top_are_added_up() {
    let path = "fixtures/x86-vmx/vmm.dat";
    let table = output_of(&["exits", "--by", "reason,gpa", "--top", "3", path]);
    assert_golden("by-gpa-top.txt", &table);
    let all = |table: &str| -> Vec<String> {
        table.lines().filter(|line| line.starts_with("all ")).map(squeezed).collect()
    };
    let full_table = output_of(&["exits", "--by", "reason,gpa", path]);
    assert_eq!(all(&table), all(&full_table), "the sums are those of all rows");
    // JSON is for programs, which truncate on their own.
    let json = ["exits", "--by", "reason,gpa", "--format", "json", path];
    assert_eq!(output_of(&json), output_of(&[&json[..], &["--top", "3"]].concat()));
}

/// A line without spaces that depend on the lines above it.
fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_was_asked_for_is_shown_though_it_is_the_same_everywhere() {
    let path = "fixtures/x86-vmx/vmm.dat";
    let table = output_of(&["exits", "--by", "vm,vcpu,reason,hypercall", path]);
    assert!(table.contains("\nvm      vcpu  reason"), "{table}");
    assert_eq!(
        table,
        output_of(&["exits", "--by", "vm,vcpu,vm,reason", "--by", "hypercall", path])
    );
}

#[test]
fn guest_functions_are_named_in_whatever_order_files_come() {
    let (host, guest) =
        ("fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat");
    let exits = |files: &[&str]| {
        let text = output_of(&[&["exits", "--by", "symbol"], files].concat());
        let tables = text.lines().filter(|line| line.contains("native_write_msr"));
        tables.map(str::to_owned).collect::<Vec<_>>()
    };
    let named = exits(&[host, guest]);
    assert_eq!(named.len(), 2, "one line in each table");
    assert_eq!(exits(&[guest, host]), named);
    let alone = hyperscope(&["exits", "--by", "symbol", host]);
    assert!(alone.err.contains("no guest recording given"), "{}", alone.err);
    assert!(!alone.out.contains("native_write_msr"));
}
