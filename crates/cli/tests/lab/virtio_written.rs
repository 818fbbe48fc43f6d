//! Bytes that devices wrote into buffers, in a guest whose kernel is new enough to say so: `make test-lab-newer`.

use std::fs;

use crate::recorded::json;
use crate::tool::{TestLab, can_run_all, other_kernel};

/// Blocks that the guest reads and writes, with no cache between it and its disk.
const READ: u64 = 300;
const READ_BYTES: u64 = 16 << 10;
const WRITTEN: u64 = 50;

#[test]
fn what_a_disk_wrote_into_buffers_is_what_was_read_from_it() {
    if !can_run_all() {
        return;
    }
    let Some((kernel, modules)) = other_kernel() else {
        testkit::skip!("make test-lab-newer has a kernel for it");
        return;
    };
    let lab = TestLab::new("written");
    let shape = ["up", "--levels", "2", "--guest-disk", "64"];
    lab.run(&[&shape[..], &["--guest-kernel", &kernel, "--guest-modules", &modules]].concat())
        .done();
    let folder = tempfile::tempdir().unwrap();
    let [scenario, session] = ["scenario.toml", "session"].map(|name| folder.path().join(name));
    let dd = |arguments: &str| {
        let words: Vec<&str> = arguments.split(' ').collect();
        format!("[[step]]\ndo = 'run'\nlevel = 2\nargv = {words:?}\n")
    };
    let text = "summary = 'a guest reads from its disk'\nlevels = 2\n[guest]\ndisk_mib = 64\n\
                [record]\nevents = ['kvm']\nguest_probes = ['@virtio']\n"
        .to_owned()
        + &dd(&format!("dd if=/dev/vda of=/dev/null bs={READ_BYTES} count={READ} iflag=direct"))
        + &dd(&format!("dd if=/dev/zero of=/dev/vda bs=4k count={WRITTEN} oflag=direct"));
    fs::write(&scenario, text).unwrap();
    lab.run(&["run", scenario.to_str().unwrap(), "-o", session.to_str().unwrap()]).done();
    let report = json(&["virtio", "--format", "json", session.to_str().unwrap()]);
    let queues = report["queues"].as_array().unwrap();
    let disk =
        queues.iter().find(|one| one["queue"] == "req.0").unwrap_or_else(|| panic!("{report}"));
    assert_eq!(disk["taken"], READ + WRITTEN, "{disk}");
    // A byte of status comes with each.
    assert_eq!(disk["written_bytes"], READ * (READ_BYTES + 1) + WRITTEN, "{disk}");
    // Of an input the device has more room than it writes: nobody types here, and what it is asked comes in few bytes.
    let control = queues.iter().filter(|one| one["device"] == "virtio0" && one["in_buffers"] != 0);
    for queue in control.filter(|one| one["taken"] != 0) {
        assert!(queue["written_bytes"].as_u64() < queue["in_bytes"].as_u64(), "{queue}");
    }
}
