//! Compares corrections with values calculated by hand from trace-cmd's formulas.

use super::*;

fn sample(time: u64, offset: i64) -> ShiftSample {
    ShiftSample { time, offset, scaling: 1, fraction: 0 }
}

fn shift(flags: u32, cpus: Vec<Vec<ShiftSample>>) -> Correction {
    let shift = Some(TimeShift { peer: 1, flags, cpus });
    Correction { shift, ..Correction::identity() }
}

#[test]
fn a_lone_sample_is_an_offset_without_scaling() {
    let lone = ShiftSample { scaling: 3, ..sample(1000, -100) };
    let correction = shift(1, vec![vec![lone]]);
    assert_eq!(correction.ns(500, 0), 400);
    assert_eq!(correction.ns(500, 1), 500, "a CPU without samples is left alone");
}

#[test]
fn offsets_lie_on_a_line_where_the_protocol_says_so() {
    let samples = vec![sample(1000, 100), sample(2000, 200), sample(4000, 0)];
    let line = shift(1, vec![samples.clone()]);
    let at = |time| line.ns(time, 0).wrapping_sub(time).cast_signed();
    assert_eq!([at(1000), at(1500), at(2000)], [100, 150, 200]);
    assert_eq!([at(3000), at(4000)], [101, 1], "a falling line is one too high");
    assert_eq!([at(500), at(5000)], [51, -99], "the outer lines go on");
    let steps = shift(0, vec![samples]);
    let at = |time| steps.ns(time, 0).wrapping_sub(time).cast_signed();
    assert_eq!([at(500), at(1500), at(2500), at(9000)], [100, 100, 200, 200]);
}

#[test]
fn scaling_does_not_overflow() {
    let half =
        |time, offset| ShiftSample { scaling: 1 << 47, fraction: 48, ..sample(time, offset) };
    let correction = shift(0, vec![vec![half(0, 7), half(10, 7)]]);
    assert_eq!(correction.ns(10_000_000_000_000_000_000, 0), 5_000_000_000_000_000_007);
}

#[test]
fn ratios_that_were_not_measured_are_left_out() {
    for (scaling, fraction) in [(0, 0), (0, 48), (1, 64), (1, u64::MAX)] {
        let samples = [0, 10].map(|time| ShiftSample { scaling, fraction, ..sample(time, 5) });
        assert_eq!(shift(0, vec![samples.to_vec()]).ns(1000, 0), 1005);
    }
}

#[test]
fn extreme_samples_do_not_panic() {
    let times = [0, 1, u64::MAX / 2, u64::MAX];
    let offsets = [i64::MIN, -1, 0, i64::MAX];
    for low in times {
        for high in times.into_iter().filter(|&high| high > low) {
            for (a, b) in offsets.iter().flat_map(|&a| offsets.map(|b| (a, b))) {
                let correction = shift(1, vec![vec![sample(low, a), sample(high, b)]]);
                let _ = times.map(|time| correction.ns(time, 0));
            }
        }
    }
}

#[test]
fn ticks_become_nanoseconds_and_then_offsets_are_added() {
    let tsc = Some(Tsc2Nsec { mult: 1 << 31, shift: 32, offset: 1_000_000 });
    let correction = Correction { tsc, added: -10, ..Correction::identity() };
    assert_eq!(correction.ns(1000, 0), 490, "the option's own offset is not applied");
    assert_eq!(correction.ns(u64::MAX - 1, 0), u64::MAX / 2 - 10);
    assert!(!correction.is_identity() && Correction::identity().is_identity());
}
