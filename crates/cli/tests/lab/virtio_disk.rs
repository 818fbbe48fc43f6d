//! Bytes that a guest reads from its disk and writes to it: those in its requests and, if its kernel is new enough,
//! those that the device wrote (`make test-lab-newer`).

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::recorded::{hyperscope, json};
use crate::tool::{TestLab, can_run_all, other_kernel};

/// The work of one `dd`, without a cache between it and the disk.
struct Moved {
    blocks: u64,
    block_bytes: u64,
}

impl Moved {
    fn bytes(&self) -> u64 {
        self.blocks * self.block_bytes
    }

    fn step(&self, way: &str) -> String {
        let Self { blocks, block_bytes } = self;
        let words = format!("dd {way} bs={block_bytes} count={blocks}");
        let words: Vec<&str> = words.split(' ').collect();
        format!("[[step]]\ndo = 'run'\nlevel = 2\nargv = {words:?}\n")
    }
}

const READ: &str = "if=/dev/vda of=/dev/null iflag=direct";
const WRITE: &str = "if=/dev/zero of=/dev/vda oflag=direct";
/// Into pages scattered over memory, and from such pages.
const WRITE_LATER: &str = "if=/dev/zero of=/dev/vda conv=fsync";

/// The session of a guest with such reads and writes.
fn recorded(lab: &TestLab, folder: &Path, moved: &[(&str, &Moved)]) -> String {
    recorded_with(lab, folder, "guest_probes = ['@virtio']", moved)
}

/// The same, with settings of the guest's recording.
fn recorded_with(lab: &TestLab, folder: &Path, settings: &str, moved: &[(&str, &Moved)]) -> String {
    let [scenario, session] = ["scenario.toml", "session"].map(|name| folder.join(name));
    let text = "summary = 'a guest reads from its disk'\nlevels = 2\n[guest]\ndisk_mib = 64\n\
                [record]\nevents = ['kvm']\n"
        .to_owned();
    let steps: String = moved.iter().map(|(way, transfer)| transfer.step(way)).collect();
    fs::write(&scenario, format!("{text}{settings}\n{steps}")).unwrap();
    lab.run(&["run", scenario.to_str().unwrap(), "-o", session.to_str().unwrap()]).done();
    session.to_str().unwrap().to_owned()
}

fn queue_of_disk(report: &Value) -> &Value {
    let queues = report["queues"].as_array().unwrap();
    queues.iter().find(|queue| queue["queue"] == "req.0").unwrap_or_else(|| panic!("{report}"))
}

/// A request's data in scattered pieces exceeds the part that a probe sees: the block layer has the bytes.
#[test]
fn bytes_of_requests_of_many_pieces_are_those_that_were_moved() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("pieces");
    lab.run(&["up", "--levels", "2", "--guest-disk", "64"]).done();
    let read = Moved { blocks: 40, block_bytes: 256 << 10 };
    let written = Moved { blocks: 30, block_bytes: 512 << 10 };
    let later = Moved { blocks: 60, block_bytes: 64 << 10 };
    let folder = tempfile::tempdir().unwrap();
    let moved = [(READ, &read), (WRITE, &written), (WRITE_LATER, &later)];
    let session = recorded(&lab, folder.path(), &moved);
    let pieces = ["events", "-e", "virtqueue_add_sgs", "--where", "mb1 & 1"];
    let guest = folder.path().join("session/guest-l2.dat");
    let chained = hyperscope(&[&pieces[..], &[guest.to_str().unwrap()]].concat()).stdout;
    assert!(chained.lines().count() as u64 >= written.blocks, "{chained}");
    let report = json(&["virtio", "--format", "json", &session]);
    let disk = queue_of_disk(&report);
    let requests = disk["buffers"].as_u64().unwrap();
    assert!(requests >= read.blocks + written.blocks && disk["cut_buffers"] == 0, "{disk}");
    // A header of 16 bytes, and a status byte.
    assert_eq!(disk["in_bytes"], read.bytes() + requests, "{disk}");
    let written = written.bytes() + later.bytes();
    assert_eq!(disk["out_bytes"], written + 16 * requests, "{disk}");
}

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
    let (read, written) =
        (Moved { blocks: 300, block_bytes: 16 << 10 }, Moved { blocks: 50, block_bytes: 4 << 10 });
    let folder = tempfile::tempdir().unwrap();
    let session = recorded(&lab, folder.path(), &[(READ, &read), (WRITE, &written)]);
    let report = json(&["virtio", "--format", "json", &session]);
    let disk = queue_of_disk(&report);
    let number = |name: &str| disk[name].as_u64().unwrap();
    // An interrupt during a probe suppresses the hit in it, and the kernel counts that as lost.
    let requests = read.blocks + written.blocks;
    let missing = requests - number("taken");
    let lost = report["losses"]["events_lost"].as_u64().unwrap();
    assert!(missing * 2 <= lost, "{missing} of {lost}: {disk}");
    // Each has a status byte.
    let missing_bytes = read.bytes() + requests - number("written_bytes");
    let bounds = missing..=missing * (read.block_bytes + 1);
    assert!(bounds.contains(&missing_bytes), "{missing_bytes} of {missing}: {disk}");
    eprintln!(
        "{missing} of {requests} requests missing, and {missing_bytes} bytes; {lost} events lost"
    );
    // For input, the device has more space than it writes: there is no keyboard input, and messages are short.
    let queues = report["queues"].as_array().unwrap();
    let control =
        queues.iter().filter(|queue| queue["device"] == "virtio0" && queue["in_buffers"] != 0);
    for queue in control.filter(|queue| queue["taken"] != 0) {
        assert!(queue["written_bytes"].as_u64() < queue["in_bytes"].as_u64(), "{queue}");
    }
}

/// Exits at a disk's addresses have its name from its guest's kernel.
#[test]
fn exits_at_a_disks_addresses_have_its_name() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("named");
    lab.run(&["up", "--levels", "2", "--guest-disk", "64"]).done();
    let folder = tempfile::tempdir().unwrap();
    let read = Moved { blocks: 40, block_bytes: 4 << 10 };
    let settings = "guest_events = ['sched:sched_switch']";
    let session = recorded_with(&lab, folder.path(), settings, &[(READ, &read)]);
    let rows = json(&["vmm", "--format", "json", &session])["exits"].take();
    let of_disk = rows.as_array().unwrap().iter().filter(|row| row["of_device"] == "vda");
    let exits: u64 = of_disk.map(|row| row["exits"].as_u64().unwrap()).sum();
    let table = hyperscope(&["vmm", &session]).stdout;
    eprintln!("{table}");
    // Each request ends with an interrupt, after which the guest reads the device.
    assert!(exits >= read.blocks, "{exits} {rows}");
    assert!(table.contains(" (vda)"), "{table}");
}
