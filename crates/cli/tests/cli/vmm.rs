//! `hyperscope vmm`: VMMs' handling of exits, compared with `exits` for the same recordings.

use serde_json::Value;

use crate::schemas::{check, closed};
use crate::tool::{assert_golden, hyperscope, output_of, recordings, repository};

const SMP: &str = "fixtures/x86-vmx/smp.dat";
const QEMU: &str = "fixtures/x86-svm/qemu.dat";

fn json(verb: &str, path: &str) -> Value {
    let run = hyperscope(&[verb, "--format", "json", path]);
    assert_eq!(run.code, 0, "{path}: {}", run.err);
    serde_json::from_str(&run.out).unwrap()
}

fn sum(rows: &Value, name: &str) -> u64 {
    rows.as_array().unwrap().iter().filter_map(|row| row[name].as_u64()).sum()
}

#[test]
fn every_recording_keeps_the_schema_and_adds_up_to_exits() {
    let validator = closed("vmm");
    let mut known = 0;
    for path in recordings() {
        let found = json("vmm", &path);
        check(&validator, &found, &path);
        // Without switches, running can't be distinguished from waiting.
        if found["exits"].as_array().unwrap().iter().all(|row| row["user_ns"].is_u64()) {
            let exits = json("exits", &path)["rows"].take();
            let user_ns = sum(&exits, "user_ns") + sum(&exits, "user_and_return_ns");
            assert_eq!(sum(&found["exits"], "user_ns"), user_ns, "{path}");
            known += 1;
        }
    }
    assert!(known > 8, "{known}");
}

#[test]
fn recordings_without_system_calls_say_what_it_takes() {
    let run = hyperscope(&["vmm", SMP]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("record with --profile vmm"), "{}", run.out);
    let found = json("vmm", SMP);
    assert_eq!(found["syscalls_recorded"], serde_json::json!([false]));
    for row in found["exits"].as_array().unwrap() {
        assert!(row["device_ns"].is_null() && row["user_ns"].is_u64(), "{row}");
    }
}

#[test]
fn tables_and_csv_are_as_expected() {
    assert_golden("vmm.txt", &output_of(&["vmm", SMP]));
    assert_golden("vmm-qemu.txt", &output_of(&["vmm", QEMU]));
    assert_golden("vmm.csv", &output_of(&["vmm", "--format", "csv", SMP]));
}

#[test]
fn rows_that_are_left_out_are_counted() {
    let run = hyperscope(&["vmm", "--top", "1", SMP]);
    assert!(run.out.contains("more: --top 0 shows them"), "{}", run.out);
    assert!(!hyperscope(&["vmm", "--top", "0", SMP]).out.contains("more:"));
}

/// QEMU's exits, with a number known from the guest's program: 360 of each of its two kinds. Every part equals a count
/// in the text of trace-cmd, to the nanosecond.
#[test]
fn parts_are_those_counted_in_printed_text() {
    let truth = std::fs::read(repository().join("fixtures/x86-svm/qemu.truth.json")).unwrap();
    let truth: Value = serde_json::from_slice(&truth).unwrap();
    let truth = truth["vmm"].as_object().unwrap();
    let found = json("vmm", QEMU);
    let rows = found["exits"].as_array().unwrap();
    assert_eq!(rows.len(), truth.len());
    for row in rows {
        let key = format!("{} {} {}", row["code"], row["about"].as_str().unwrap(), row["address"]);
        let counted = |name: &str| truth[&key][name].as_u64().unwrap_or(0);
        for name in
            ["exits", "return_ns", "signals_ns", "device_ns", "lock_ns", "calls_ns", "back_ns"]
        {
            assert_eq!(row[name], counted(name), "{key}: {name}");
        }
        assert_eq!(
            (&row["waited_ns"], &row["not_split_ns"]),
            (&counted("off_ns").into(), &0.into())
        );
        let is_made = row["address"] == 0x4859 || row["address"] == 0xd000_0000_u64;
        assert_eq!(row["exits"] == 360, is_made, "{key}");
    }
}

/// A page has each exit's parts as bars, with the times of tables; without system calls there is one part.
#[test]
fn pages_draw_what_tables_say() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("vmm.html");
    let run = hyperscope(&["vmm", "--from", "0", SMP, "-o", page.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.err);
    let page = std::fs::read_to_string(page).unwrap();
    let found = json("vmm", SMP);
    let rows = found["exits"].as_array().unwrap();
    assert!(rows.len() > 2, "{found}");
    for row in rows.iter().take(20) {
        let begins =
            format!("<title>{} {}", row["vm"].as_str().unwrap(), row["reason"].as_str().unwrap());
        assert!(page.contains(&begins), "{begins}");
    }
    assert!(page.contains(": not split ") && !page.contains("<script"), "{page}");
    assert!(page.contains("Covers a part of the recordings: from 0 s."));
}

/// Unreadable samples are reported, and leave everything else unchanged.
#[test]
fn damaged_samples_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("host.dat");
    std::fs::copy(repository().join(QEMU), &host).unwrap();
    std::fs::write(folder.path().join("host.data"), "no samples").unwrap();
    let run = hyperscope(&["vmm", "--format", "json", host.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("samples are omitted: "), "{}", run.err);
    let found: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(found["exits"], json("vmm", QEMU)["exits"]);
    assert_eq!(found["samples_recorded"], serde_json::json!([false]));
}

/// A guest's own recording has no exits; the message asks for its host's.
#[test]
fn a_guests_own_recording_is_known_and_its_hosts_is_asked_for() {
    const GUEST: &str = "fixtures/x86-svm/host-guest.guest.dat";
    let run = hyperscope(&["vmm", GUEST]);
    assert!(run.out.contains("give the recording of the VMMs' host"), "{}", run.out);
    let folder = tempfile::tempdir().unwrap();
    let of_session = folder.path().join("guest-web.dat");
    std::fs::copy(repository().join(GUEST), &of_session).unwrap();
    let run = hyperscope(&["vmm", of_session.to_str().unwrap()]);
    assert!(
        run.out.contains("give the recording of its host, host.dat in the same folder"),
        "{}",
        run.out
    );
}

/// Addresses have the device names that the guest's agent reported; those of another VM's guest have none.
#[test]
fn addresses_have_the_names_of_the_guests_devices() {
    let named = |pid: u32| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(repository().join(QEMU), folder.path().join("host.dat")).unwrap();
        let vcpu = serde_json::json!({ "vcpu": 0, "tid": 133 });
        let devices = serde_json::json!([
            { "name": "virtio3", "called": "vda", "memory": [[0xd000_0000_u32, 0xd000_01ff_u32]], "ports": [] },
            { "name": "virtio4", "called": null, "memory": [], "ports": [[0x4840, 0x485f]] },
        ]);
        let document = serde_json::json!({ "recorded": {
            "vms": [{ "pid": 98, "vcpus": [vcpu] }],
            "guests": [{ "name": "web", "pid": pid, "devices": devices }],
        } });
        std::fs::write(folder.path().join("session.json"), document.to_string()).unwrap();
        let host = folder.path().join("host.dat");
        let host = host.to_str().unwrap();
        (json("vmm", host), output_of(&["vmm", host]))
    };
    let (found, table) = named(98);
    let rows = found["exits"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| (&row["address"], &row["of_device"])).collect();
    let (disk, other) = ("vda".into(), "virtio4".into());
    assert!(names.contains(&(&0xd000_0000_u32.into(), &disk)), "{names:?}");
    assert!(names.contains(&(&0x4859.into(), &other)), "{names:?}");
    assert_eq!(names.iter().filter(|(_, name)| !name.is_null()).count(), 2, "{names:?}");
    assert!(
        table.contains("0xd0000000 (vda)") && table.contains("npf 0xd0000000 (vda)"),
        "{table}"
    );
    let (found, table) = named(99);
    assert!(found["exits"].as_array().unwrap().iter().all(|row| row["of_device"].is_null()));
    assert!(!table.contains("vda"), "{table}");
}
