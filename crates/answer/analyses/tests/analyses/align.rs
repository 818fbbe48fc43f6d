//! Tests alignment with known relations of clocks: each method is either right, or rejected.

use std::collections::BTreeMap;

use analyses::align::{GuestAlignment, Method, MethodResult, align};
use sources::Recording;
use testkit::Random;
use tracedat::{Guest, GuestCpu, ShiftSample, TimeShift, Tsc2Nsec, id, option};

use crate::machinery::Machinery;
use raw_bytes::ByteOrder::Little;

/// A guest with two CPUs; CPU 0 is vCPU 1 and vice versa.
#[derive(Clone, Debug)]
struct Story {
    host_clock: &'static str,
    guest_clock: &'static str,
    /// By guest CPU: guest's clock minus host's clock, before and after the jump.
    offsets: [(u64, u64); 2],
    /// Error in the offset that `kvm_write_tsc_offset` reports.
    lie: u64,
    /// Conversion of ticks to nanoseconds on both clocks.
    rate: Option<Tsc2Nsec>,
    shift: Option<TimeShift>,
    named: bool,
    /// The host loses events now and then.
    lossy: bool,
    /// KVM sets the TSC back and forward again in every third exit, with an increasing distance.
    rewritten: bool,
}

const GHZ_2: Tsc2Nsec = Tsc2Nsec { mult: 1 << 9, shift: 10, offset: 0 };
const GUEST_ID: u64 = 0xfeed;
const HOST_ID: u64 = 0xbeef;
/// Host's clock at the start, at the jump, and at the end.
const TIMES: [u64; 3] = [10_000_000_000, 12_000_000_000, 14_000_000_000];

impl Default for Story {
    fn default() -> Self {
        Self {
            host_clock: "x86-tsc",
            guest_clock: "x86-tsc",
            offsets: [(1 << 40, (1 << 40) + 40_000_000), (1 << 40, (1 << 40) + 40_000_000)],
            lie: 0,
            rate: Some(GHZ_2),
            shift: None,
            named: false,
            lossy: false,
            rewritten: false,
        }
    }
}

/// Recordings of host and guest, and the host's time of each guest event by guest CPU and timestamp.
type Recorded = (Vec<Recording>, BTreeMap<(u32, u64), u64>);

impl Story {
    fn record(&self) -> Recorded {
        let (mut host, mut guest) =
            (Machinery::new(self.host_clock), Machinery::new(self.guest_clock));
        let mut truth = BTreeMap::new();
        for cpu in 0..2_u32 {
            self.run(cpu, &mut host, &mut guest, &mut truth);
        }
        let rate = self.rate.map(|rate| (id::TSC2NSEC, option::tsc2nsec(Little, &rate)));
        host.options.extend(rate.clone());
        guest.options.extend(rate);
        host.options.push((id::TRACEID, option::trace_id(Little, HOST_ID)));
        guest.options.push((id::TRACEID, option::trace_id(Little, GUEST_ID)));
        if self.named {
            let vcpus = vec![GuestCpu { cpu: 0, pid: 101 }, GuestCpu { cpu: 1, pid: 100 }];
            let guest = Guest { name: "web".to_owned(), trace_id: GUEST_ID, vcpus };
            host.options.push((id::GUEST, option::guest(Little, &guest)));
        }
        if let Some(shift) = &self.shift {
            guest.options.push((id::TIME_SHIFT, option::time_shift(Little, shift)));
        }
        (vec![host.recording(), guest.recording()], truth)
    }

    /// Simulates one CPU of the guest: its vCPU has the other number, and does not migrate.
    fn run(
        &self,
        cpu: u32,
        host: &mut Machinery,
        guest: &mut Machinery,
        truth: &mut BTreeMap<(u32, u64), u64>,
    ) {
        let (vcpu, thread) = (u64::from(1 - cpu), 101 - cpu as i32);
        let mut random = Random(77 + u64::from(cpu));
        let (before, after) = self.offsets[cpu as usize];
        let [begin, jump, end] = TIMES;
        let (mut now, mut offset) = (begin, before);
        while now < end {
            host.event(cpu, now, thread, "kvm_entry", &[("vcpu_id", vcpu)]);
            let events = random.below(6);
            for _ in 0..events {
                now += 20_000 + random.below(200_000);
                guest.event(cpu, now.wrapping_add(offset), 1, "sched_wakeup", &[("pid", 1)]);
                truth.insert((cpu, now.wrapping_add(offset)), now);
            }
            now += 1000 + random.below(60_000);
            host.event(cpu, now, thread, "kvm_exit", &[("exit_reason", 0x78), ("isa", 2)]);
            if now >= jump && !self.rewritten && offset != after {
                let with_lie = |offset: u64| offset.wrapping_add(self.lie);
                let fields = [
                    ("vcpu_id", vcpu),
                    ("previous_tsc_offset", with_lie(offset)),
                    ("next_tsc_offset", with_lie(after)),
                ];
                now += 500;
                host.event(cpu, now, thread, "kvm_write_tsc_offset", &fields);
                offset = after;
            }
            if self.rewritten && random.below(3) == 0 {
                let back = offset.wrapping_sub(5_000_000);
                let ahead = offset + random.below(100);
                for (previous, next) in [(offset, back), (back, ahead)] {
                    let fields = [
                        ("vcpu_id", vcpu),
                        ("previous_tsc_offset", previous),
                        ("next_tsc_offset", next),
                    ];
                    now += 300;
                    host.event(cpu, now, thread, "kvm_write_tsc_offset", &fields);
                }
                offset = ahead;
            }
            let idle = random.below(8) == 0;
            now += 3000 + random.below(if idle { 6_000_000 } else { 150_000 });
            if self.lossy && random.below(12) == 0 {
                host.lose(cpu);
                // The guest continues meanwhile.
                for _ in 0..5 {
                    now += 20_000 + random.below(90_000);
                    guest.event(cpu, now.wrapping_add(offset), 1, "sched_wakeup", &[("pid", 1)]);
                    truth.insert((cpu, now.wrapping_add(offset)), now);
                }
                now += 5000;
            }
        }
    }
}

fn only(recordings: &[Recording], method: Option<Method>) -> GuestAlignment {
    let mut guests = align(recordings, method, &|_| ());
    assert_eq!(guests.len(), 1);
    guests.remove(0)
}

fn method(guest: &GuestAlignment, method: Method) -> &MethodResult {
    guest.methods.iter().find(|result| result.method == method).unwrap()
}

/// Applies the alignment, and returns the max error of guest events in nanoseconds.
fn farthest_off((recordings, truth): &mut Recorded, guest: &GuestAlignment, per_tick: u64) -> u64 {
    guest.apply(&mut recordings[1]);
    let recording = &recordings[1];
    let off = |(&(cpu, stamp), &host): (&(u32, u64), &u64)| {
        let stream = recording.streams().iter().find(|stream| stream.cpu() == cpu).unwrap();
        recording.correction(stream).ns(stamp, cpu).abs_diff(host / per_tick)
    };
    truth.iter().map(off).max().unwrap()
}

#[test]
fn recorded_tsc_offsets_are_exact_with_their_jumps() {
    for named in [false, true] {
        let mut recorded = Story { named, ..Story::default() }.record();
        let guest = only(&recorded.0, None);
        assert_eq!(guest.chosen, Some(Method::TscOffset), "{guest:?}");
        let tsc = method(&guest, Method::TscOffset);
        assert_eq!((tsc.violations(), tsc.rows.len()), (0, 4), "{tsc:?}");
        // CPU 0 is KVM's vCPU 1; a host that names its guest's CPUs uses the guest's numbers.
        let vcpu = |cpu: u32| if named { cpu } else { 1 - cpu };
        assert!(tsc.rows.iter().all(|row| row.vcpu == vcpu(row.guest_cpu)));
        assert_eq!(guest.vm, if named { "web" } else { "vm-100" });
        assert!(farthest_off(&mut recorded, &guest, 2) <= 2);
    }
}

#[test]
fn windows_agree_with_recorded_tsc_offsets_within_their_bound() {
    let mut recorded = Story::default().record();
    let guest = only(&recorded.0, Some(Method::Windows));
    let windows = method(&guest, Method::Windows);
    assert_eq!((windows.violations(), windows.rows.len()), (0, 4), "{windows:?}");
    assert!(windows.rows.iter().all(|row| row.vcpu == 1 - row.guest_cpu));
    let (off, agrees) = method(&guest, Method::TscOffset).from_windows.unwrap();
    assert!(agrees && off < 10_000, "{off}");
    let bound = windows.rows.iter().filter_map(|row| row.bound_ns).max().unwrap();
    assert!(bound < 10_000, "{bound}");
    assert!(farthest_off(&mut recorded, &guest, 2) <= bound);
}

#[test]
fn tsc_offsets_that_are_wrong_are_found_out() {
    let mut recorded = Story { lie: 1_000_000, ..Story::default() }.record();
    let guest = only(&recorded.0, None);
    let tsc = method(&guest, Method::TscOffset);
    assert!(tsc.violations() > 100, "{tsc:?}");
    assert!(!tsc.from_windows.unwrap().1);
    assert_eq!(guest.chosen, Some(Method::Windows));
    assert!(farthest_off(&mut recorded, &guest, 2) < 10_000);
}

#[test]
fn ticks_of_unknown_length_are_aligned_as_ticks() {
    let mut recorded = Story { rate: None, ..Story::default() }.record();
    let guest = only(&recorded.0, None);
    assert!(!guest.nanoseconds);
    assert_eq!(guest.chosen, Some(Method::TscOffset));
    assert_eq!(method(&guest, Method::Windows).violations(), 0);
    assert!(farthest_off(&mut recorded, &guest, 1) <= 2);
}

#[test]
fn each_cpu_may_have_a_clock_of_its_own() {
    let offsets = [(7_000_000_000, 7_000_000_000), (9_000_000_000, 9_000_000_000)];
    let story =
        Story { host_clock: "local", guest_clock: "local", rate: None, offsets, ..<_>::default() };
    let mut recorded = story.record();
    let guest = only(&recorded.0, None);
    assert_eq!(guest.chosen, Some(Method::Windows), "{guest:?}");
    let windows = method(&guest, Method::Windows);
    assert_eq!((windows.violations(), windows.rows.len()), (0, 2), "{windows:?}");
    assert!(farthest_off(&mut recorded, &guest, 1) < 20_000);
}

#[test]
fn a_time_shift_without_violations_is_taken() {
    let sample = |time: u64, off: i64| ShiftSample {
        time,
        offset: -5_000_000 + off,
        scaling: 1,
        fraction: 0,
    };
    let shift = |off: i64| TimeShift {
        peer: HOST_ID,
        flags: 1,
        cpus: vec![vec![sample(9_000_000_000, off), sample(15_000_000_000, off)]; 2],
    };
    let offsets = [(5_000_000, 5_000_000); 2];
    let story =
        Story { host_clock: "local", guest_clock: "local", rate: None, offsets, ..<_>::default() };
    let mut sound = Story { shift: Some(shift(0)), ..story.clone() }.record();
    let guest = only(&sound.0, None);
    assert_eq!(guest.chosen, Some(Method::TimeShift), "{guest:?}");
    assert!(method(&guest, Method::TimeShift).from_windows.unwrap().1);
    assert_eq!(farthest_off(&mut sound, &guest, 1), 0);
    // Wrong by a tenth of a millisecond.
    let wrong = Story { shift: Some(shift(100_000)), ..story }.record();
    let guest = only(&wrong.0, None);
    assert_eq!(guest.chosen, Some(Method::Windows));
    assert!(method(&guest, Method::TimeShift).violations() > 100);
}

#[test]
fn nothing_is_judged_where_events_of_the_host_were_lost() {
    for seed in [false, true] {
        let mut recorded = Story { lossy: true, named: seed, ..Story::default() }.record();
        let guest = only(&recorded.0, None);
        for method in [Method::TscOffset, Method::Windows] {
            let result = self::method(&guest, method);
            assert_eq!(result.violations(), 0, "{result:?}");
            assert!(result.events() > 5000, "{}", result.events());
        }
        assert!(farthest_off(&mut recorded, &guest, 2) <= 2);
    }
}

#[test]
fn offsets_that_are_rewritten_all_the_time_are_followed() {
    let mut recorded = Story { rewritten: true, ..Story::default() }.record();
    let guest = only(&recorded.0, None);
    assert_eq!(guest.chosen, Some(Method::TscOffset));
    let tsc = method(&guest, Method::TscOffset);
    assert!(tsc.rows.len() > 2000, "{}", tsc.rows.len());
    assert_eq!(tsc.violations(), 0);
    let off = farthest_off(&mut recorded, &guest, 2);
    assert!(off <= 2, "{off}");
}
