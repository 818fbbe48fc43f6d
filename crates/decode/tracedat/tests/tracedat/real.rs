//! Recordings of real kernels, read whole.

use crate::support::{fixture, recordings};
use tracedat::{ChunkReader, Cmdlines, TraceDat};

#[test]
fn every_recording_is_read_whole_and_without_damage() {
    for path in recordings() {
        let file = std::fs::read(&path).unwrap();
        let recording = TraceDat::parse(&file).unwrap();
        assert_eq!(recording.damage, [], "{}", path.display());
        assert!(recording.metadata.unknown.is_empty());
        // Those of a boot and of hypertrace have few symbols, or none: fixtures/README.md.
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let has_few = ["boot.", "hypertrace.", "late-hypercalls."];
        if !has_few.iter().any(|prefix| name.starts_with(prefix)) {
            let symbols = recording.kallsyms.as_ref().unwrap().read(&file).unwrap();
            assert!(symbols.starts_with(b"0") || symbols.starts_with(b"ffff"));
            assert!(symbols.len() > 100_000 && symbols.ends_with(b"\n"));
        }
        let names = recording.cmdlines.as_ref().unwrap().read(&file).unwrap();
        assert_eq!(Cmdlines::parse(&names).len(), names.split(|&byte| byte == b'\n').count() - 1);
        let mut reader = ChunkReader::new();
        for cpu in recording.buffers.iter().flat_map(|buffer| &buffer.cpus) {
            let chunks = cpu.chunks(&file);
            assert_eq!(chunks.damage, [], "{}", path.display());
            for chunk in &chunks.list {
                let pages = reader.read(&file, chunk).unwrap();
                assert!(!pages.is_empty() && pages.len().is_multiple_of(4096));
            }
        }
    }
}

/// Values from `trace-cmd dump --options`.
#[test]
fn options_say_what_trace_cmd_dump_shows() {
    let file = fixture("x86-svm/host-guest.guest.dat");
    let guest = TraceDat::parse(&file).unwrap();
    let metadata = &guest.metadata;
    assert_eq!(metadata.trace_id, Some(0xB55B_ECEF_7351_9BD2));
    assert_eq!(metadata.cpu_count, Some(1));
    assert_eq!(guest.clock(), Some("global"));
    assert_eq!(metadata.recorder_version.as_deref(), Some("3.1.6 not-a-git-repo"));
    let [shift] = &metadata.time_shifts[..] else { panic!("one TIME_SHIFT") };
    assert_eq!((shift.peer, shift.flags), (0x59E6_C347_89E7_8E2F, 1));
    let samples = shift.cpus[0].iter().map(|s| (s.time, s.offset, s.scaling, s.fraction));
    let expected = [(46_196_101_294, 13_202_474_444, 1, 0), (56_845_832_115, 13_202_287_840, 1, 0)];
    assert_eq!(samples.collect::<Vec<_>>(), expected);

    let file = fixture("x86-svm/host-guest.dat");
    let host = TraceDat::parse(&file).unwrap();
    assert_eq!(host.metadata.trace_id, Some(shift.peer));
    assert_eq!(host.metadata.guests[0].trace_id, metadata.trace_id.unwrap());
    assert_eq!(host.metadata.cpu_stats.len(), 2);
    assert_eq!(host.metadata.cpu_stats[0].read_events, Some(50_311));
    assert_eq!(host.metadata.cpu_stats[0].lost(), Some(0));
}
