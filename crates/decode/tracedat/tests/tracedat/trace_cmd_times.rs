//! Compares corrected times with trace-cmd's, event by event.

use crate::support::{fixture, header};
use crate::trace_cmd::{contents, trace_cmd, with_pages_of};
use raw_bytes::ByteOrder;
use std::path::Path;
use tracedat::{
    Align, Compression, Correction, ShiftSample, TimeShift, TraceDat, Tsc2Nsec, Version, id, option,
};

const ORDER: ByteOrder = ByteOrder::Little;

/// CPU and time in a line of a report, without the point between seconds and nanoseconds.
fn cpu_and_time(line: &str) -> Option<(u32, u64)> {
    let mut words = line.split_whitespace().skip_while(|word| {
        let digits = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
        digits.is_none_or(|digits| digits.parse::<u32>().is_err())
    });
    let cpu = words.next()?.trim_matches(['[', ']']).parse().ok()?;
    let time = words.next()?.strip_suffix(':')?.replace('.', "");
    Some((cpu, time.parse().ok()?))
}

fn times(arguments: &[&str], path: &Path) -> Option<Vec<(u32, u64)>> {
    Some(trace_cmd(arguments, path)?.lines().filter_map(cpu_and_time).collect())
}

/// Compares all events of a recording of one CPU.
fn compare(file: &[u8], what: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("times.dat");
    std::fs::write(&path, file).unwrap();
    let Some(raw) = times(&["report", "-N", "-R", "--raw-ts"], &path) else { return };
    let shown = times(&["report", "-N", "-R", "-t"], &path).unwrap();
    assert!(raw.len() > 1000 && raw.len() == shown.len(), "{what}");
    let recording = TraceDat::parse(file).unwrap();
    let correction = Correction::new(&recording, &recording.buffers[0], Align::ToAnyPeer);
    for ((cpu, raw), (_, shown)) in raw.into_iter().zip(shown) {
        assert_eq!(correction.ns(raw, cpu), shown, "{what}: CPU {cpu} at {raw}");
    }
}

#[test]
fn real_guests_have_the_times_trace_cmd_shows() {
    for name in ["x86-svm/host-guest.guest.dat", "arm64/A.guest.dat"] {
        compare(&fixture(name), name);
    }
}

/// Samples every half second over the guest's recording (raw 50.5 to 60 s), not on one line.
fn samples(count: u64, scaling: u64, fraction: u64) -> Vec<ShiftSample> {
    let sample = |index: u64| {
        let jitter = (index * index * 7919 % 100_000).cast_signed();
        let (time, offset) = (50_600_000_000 + index * 500_000_000, 13_202_474_444 - jitter);
        ShiftSample { time, offset, scaling, fraction }
    };
    (0..count).map(sample).collect()
}

fn shift(flags: u32, cpu: Vec<ShiftSample>) -> (u16, Vec<u8>) {
    (id::TIME_SHIFT, option::time_shift(ORDER, &TimeShift { peer: 1, flags, cpus: vec![cpu] }))
}

#[test]
fn every_kind_of_correction_is_trace_cmds() {
    let file = fixture("x86-svm/host-guest.guest.dat");
    let recording = TraceDat::parse(&file).unwrap();
    let tsc = Tsc2Nsec { mult: 1_234_567, shift: 21, offset: 999 };
    let tsc = (id::TSC2NSEC, option::tsc2nsec(ORDER, &tsc));
    let text = |id, text: &str| (id, format!("{text}\0").into_bytes());
    let cases = [
        ("one sample", vec![shift(1, samples(1, 3, 1))]),
        ("two samples", vec![shift(1, samples(2, 1, 0))]),
        ("a line", vec![shift(1, samples(12, 1, 0))]),
        ("steps", vec![shift(0, samples(12, 1, 0))]),
        ("scaling", vec![shift(1, samples(12, 60_000_000, 26))]),
        ("ticks", vec![tsc.clone()]),
        ("offset", vec![text(id::OFFSET, "-50000000000"), text(id::OFFSET, "0x1f")]),
        ("date", vec![text(id::DATE, "0x5f5e100"), text(id::OFFSET, "017")]),
        ("all", vec![shift(1, samples(5, 1, 0)), tsc, text(id::DATE, "1000")]),
    ];
    for (what, options) in cases {
        let header = header(Version::V7, ORDER, Compression::None);
        let mut contents = contents(&file, &recording, header);
        contents.options.retain(|(number, _)| *number != id::TIME_SHIFT);
        contents.options.extend(options);
        compare(&with_pages_of(&file, &recording, &contents), what);
    }
}
