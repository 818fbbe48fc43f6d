//! Real files, compared with perf's own output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use perfdata::{Body, CpuMode, PerfData};

/// A recording of those that are next to the repository.
fn shared(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/traces/arm64");
    folder.join(name)
}

#[test]
fn tracepoints_of_an_arm64_host_are_counted_as_perf_counts_them() {
    let Ok(file) = std::fs::read(shared("D-perf.data")) else {
        return testkit::skip!("../shared/traces/arm64/D-perf.data is not here");
    };
    let perf = PerfData::parse(&file).unwrap();
    assert_eq!(perf.damage, []);
    assert_eq!(perf.features.hostname.as_deref(), Some("l1"));
    assert_eq!(perf.features.cpus_available, Some(2));
    let mut modes: BTreeMap<&str, u64> = BTreeMap::new();
    let mut exits = 0;
    for record in perf.records(&file) {
        let record = record.unwrap();
        let Body::Sample(sample) = perf.events.body(&record).unwrap() else { continue };
        let event = &perf.events.list()[perf.events.index_of(&record).unwrap()];
        exits += u64::from(event.name() == "kvm:kvm_exit");
        assert!(event.attr.is_tracepoint() && sample.raw.is_some());
        let guest = if sample.cpu_mode.is_guest() { "guest" } else { "host" };
        *modes.entry(guest).or_default() += 1;
        assert_ne!(sample.cpu_mode, CpuMode::Unknown);
    }
    // Host tracepoints, most of which arm64 says are of the guest.
    assert_eq!(modes, [("guest", 14_984), ("host", 1_223)].into());
    assert!(exits > 0);
}

/// Records by type, as `perf report -D` lists them.
const LISTED: [(&str, u32); 9] = [
    ("PERF_RECORD_MMAP ", 1),
    ("PERF_RECORD_COMM", 3),
    ("PERF_RECORD_EXIT", 4),
    ("PERF_RECORD_FORK", 7),
    ("PERF_RECORD_SAMPLE", 9),
    ("PERF_RECORD_MMAP2", 10),
    ("PERF_RECORD_FINISHED_ROUND", 68),
    ("PERF_RECORD_ID_INDEX", 69),
    ("PERF_RECORD_TIME_CONV", 79),
];

#[test]
fn records_are_as_many_of_each_type_as_perf_lists() {
    for name in ["D-perf.data", "D-kvmstat.data"] {
        let path = shared(name);
        let Ok(file) = std::fs::read(&path) else {
            return testkit::skip!("../shared/traces/arm64/{name} is not here");
        };
        let perf = Command::new("perf").args(["report", "-D", "-i"]).arg(&path).output();
        let Ok(listed) = perf else {
            return testkit::skip!("perf is not installed (apt install linux-perf)");
        };
        let listed = String::from_utf8_lossy(&listed.stdout).replace('\n', " \n");
        let perf = PerfData::parse(&file).unwrap();
        for (text, kind) in LISTED {
            let records = perf.records(&file).map(Result::unwrap);
            let found = records.filter(|record| record.kind == kind).count();
            assert_eq!(found, listed.matches(text).count(), "{text} of {name}");
        }
    }
}
