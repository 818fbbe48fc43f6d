//! Times of whole files: options that shift, scale and add.

use crate::support::{fixture, header, small, write};
use raw_bytes::ByteOrder;
use tracedat::{
    Align, Compression, Correction, Guest, GuestCpu, ShiftSample, TimeShift, TimeUnit, TraceDat,
    Tsc2Nsec, Version, id, option,
};

const ORDER: ByteOrder = ByteOrder::Big;

fn recording(options: Vec<(u16, Vec<u8>)>) -> TraceDat {
    let mut contents = small(header(Version::V7, ORDER, Compression::None));
    contents.options = options;
    contents.buffers[0].clock = "x86-tsc".into();
    TraceDat::parse(&write(&contents)).unwrap()
}

fn correction(recording: &TraceDat, align: Align) -> Correction {
    Correction::new(recording, &recording.buffers[0], align)
}

fn sample(time: u64, offset: i64) -> ShiftSample {
    ShiftSample { time, offset, scaling: 1, fraction: 0 }
}

#[test]
fn ticks_without_a_ratio_stay_ticks() {
    let recording = recording(vec![]);
    let top = correction(&recording, Align::Own);
    assert!(top.is_identity());
    assert_eq!(top.unit(), TimeUnit::Ticks);
    let second = Correction::new(&recording, &recording.buffers[1], Align::Own);
    assert_eq!(second.unit(), TimeUnit::Nanoseconds, "mono counts nanoseconds");
}

#[test]
fn corrections_come_in_trace_cmds_order() {
    let shift = TimeShift { peer: 9, flags: 0, cpus: vec![vec![sample(0, 1000)]] };
    let tsc = Tsc2Nsec { mult: 3, shift: 1, offset: 77 };
    let recording = recording(vec![
        (id::TIME_SHIFT, option::time_shift(ORDER, &shift)),
        (id::TSC2NSEC, option::tsc2nsec(ORDER, &tsc)),
        (id::OFFSET, b"-5\0".to_vec()),
        (id::DATE, b"0x2\0".to_vec()),
    ]);
    assert_eq!(recording.damage, []);
    assert_eq!(recording.metadata.tsc2nsec, Some(tsc));
    let to_peer = correction(&recording, Align::ToPeer(9));
    assert_eq!(to_peer.ns(1000, 0), (1000 + 1000) * 3 / 2 - 5 + 2000);
    assert_eq!((to_peer.peer(), to_peer.unit()), (Some(9), TimeUnit::Nanoseconds));
    assert_eq!(correction(&recording, Align::ToAnyPeer), to_peer);
    for align in [Align::Own, Align::ToPeer(10)] {
        assert_eq!(correction(&recording, align).ns(1000, 0), 1500 - 5 + 2000);
    }
    let instance = Correction::new(&recording, &recording.buffers[1], Align::ToPeer(9));
    assert_eq!(instance.ns(1000, 0), 1000 - 5 + 2000, "another clock was not measured");
}

#[test]
fn samples_per_cpu_come_back() {
    let cpus = vec![vec![sample(1, -1), sample(2, -2)], vec![], vec![sample(3, i64::MIN)]];
    let shift = TimeShift { peer: u64::MAX, flags: 1, cpus };
    let recording = recording(vec![(id::TIME_SHIFT, option::time_shift(ORDER, &shift))]);
    assert_eq!(recording.damage, []);
    assert_eq!(recording.metadata.time_shifts, [shift]);
}

/// What trace-cmd's writer makes of CPUs with different counts: see `TimeShift::parse`.
fn with_writer_fault(shift: &TimeShift) -> Vec<u8> {
    let count = shift.cpus.last().unwrap().len();
    let mut data = [shift.peer.to_be_bytes().to_vec(), shift.flags.to_be_bytes().to_vec()].concat();
    data.extend((shift.cpus.len() as u32).to_be_bytes());
    for samples in &shift.cpus {
        data.extend((count as u32).to_be_bytes());
        data.extend(samples.iter().flat_map(|s| s.time.to_be_bytes()));
        data.extend(samples.iter().flat_map(|s| s.offset.to_be_bytes()));
        data.extend(samples.iter().flat_map(|s| s.scaling.to_be_bytes()));
    }
    for samples in &shift.cpus {
        let fractions = samples.iter().map(|s| s.fraction).chain(std::iter::repeat(0xDEAD));
        data.extend(fractions.take(count).flat_map(u64::to_be_bytes));
    }
    data
}

#[test]
fn counts_of_the_last_cpu_are_seen_through() {
    for counts in [vec![3, 2], vec![1, 4, 2], vec![2, 2, 5], vec![5, 1, 1, 3], vec![4, 4]] {
        let cpu = |(cpu, &count): (u64, &u64)| {
            let time = |index| 1_000_000 * (cpu + 1) + 1000 * index;
            (0..count).map(|i| ShiftSample { fraction: 48, ..sample(time(i), -5) }).collect()
        };
        let cpus = (0..).zip(&counts).map(cpu).collect();
        let shift = TimeShift { peer: 1, flags: 1, cpus };
        let recording = recording(vec![(id::TIME_SHIFT, with_writer_fault(&shift))]);
        assert_eq!(recording.metadata.time_shifts, [shift], "{counts:?}");
        let same = counts.iter().all(|count| count == counts.last().unwrap());
        assert_eq!(recording.damage.is_empty(), same);
    }
}

#[test]
fn a_shift_that_fits_in_no_way_is_left_out() {
    let cpus = vec![vec![sample(1, -1), sample(2, -2)], vec![sample(3, -3)]];
    let data = option::time_shift(ORDER, &TimeShift { peer: 1, flags: 1, cpus });
    for len in 0..data.len() {
        let recording = recording(vec![(id::TIME_SHIFT, data[..len].to_vec())]);
        let shifts = &recording.metadata.time_shifts;
        // Without the fractions it is the option of trace-cmd 2.9, which had none.
        assert_eq!(shifts.is_empty(), len != data.len() - 3 * 8, "cut to {len}");
        assert_eq!(recording.damage.is_empty(), !shifts.is_empty());
    }
}

#[test]
fn guests_come_back() {
    let vcpus = vec![GuestCpu { cpu: 0, pid: 119 }, GuestCpu { cpu: 1, pid: 0 }];
    let guest = Guest { name: "vm 1".into(), trace_id: 3, vcpus };
    let options = vec![
        (id::GUEST, option::guest(ORDER, &guest)),
        (id::TRACEID, option::trace_id(ORDER, 4)),
        (id::CPUCOUNT, option::cpu_count(ORDER, 300)),
    ];
    let recording = recording(options);
    assert_eq!(recording.metadata.guests, [guest]);
    assert_eq!((recording.metadata.trace_id, recording.metadata.cpu_count), (Some(4), Some(300)));
}

/// The guest's first event in `trace-cmd report -t` is at its raw time plus the offset.
#[test]
fn a_real_guest_is_brought_to_its_host() {
    let host = TraceDat::parse(&fixture("x86-svm/host-guest.dat")).unwrap();
    let guest = TraceDat::parse(&fixture("x86-svm/host-guest.guest.dat")).unwrap();
    let peer = host.metadata.trace_id.unwrap();
    let correction = correction(&guest, Align::ToPeer(peer));
    assert_eq!(correction.ns(46_196_101_294, 0), 46_196_101_294 + 13_202_474_444);
    assert!(!correction.is_identity());
    assert_eq!(correction.unit(), TimeUnit::Nanoseconds);
}
