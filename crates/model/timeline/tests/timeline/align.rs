//! What alignment from the trace alone promises: whatever the clocks did, the truth lies within the
//! stated bound, or no answer is given.

mod history;

use proptest::prelude::*;
use timeline::align::{Away, Budget, Piece, Unsolved, solve};

use self::history::{History, Spec, random};

/// Every piece bounds the truth at each of its events; returns how many events they cover.
fn check(history: &History, pieces: &[Piece]) -> usize {
    let mut covered = 0;
    let mut last_ns = i64::MIN;
    for piece in pieces {
        assert!(last_ns < piece.from_ns && piece.from_ns <= piece.to_ns, "pieces are in order");
        last_ns = piece.to_ns;
        for (&stamp, &truth) in history.stamps.iter().zip(&history.truth) {
            if (piece.from_ns..=piece.to_ns).contains(&stamp) {
                let off = piece.line.offset_at(stamp).abs_diff(truth);
                assert!(off <= piece.bound_ns, "{off} ns off at {stamp}: {piece:?}");
                covered += 1;
            }
        }
    }
    covered
}

fn solved(spec: &Spec) -> (History, Result<Vec<Piece>, Unsolved>) {
    let history = spec.history();
    let pieces = solve(&history.stamps, &history.away, &mut Budget::default());
    (history, pieces)
}

#[test]
fn a_steady_clock_is_one_piece_that_covers_everything() {
    for (seed, offset_ns) in [(1, 0), (2, 49_000_000_000), (3, -3_600_000_000_000), (4, 12_345)] {
        let (history, pieces) = solved(&Spec { seed, offset_ns, ..Spec::default() });
        let pieces = pieces.unwrap();
        assert_eq!(pieces.len(), 1);
        assert_eq!(check(&history, &pieces), history.stamps.len());
        assert!(pieces[0].bound_ns < 20_000, "{:?}", pieces[0]);
    }
}

#[test]
fn drift_is_found_with_its_bounds() {
    for drift_ppb in [-400_000, -17_000, 900, 250_000] {
        let spec = Spec { drift_ppb, offset_ns: 7_000_000_000, ..Spec::default() };
        let (history, pieces) = solved(&spec);
        let pieces = pieces.unwrap();
        assert_eq!(check(&history, &pieces), history.stamps.len());
        // The rate is that of the guest's clock, a little off the host's.
        let (low, high) = pieces[0].drifts_ppb;
        let real = drift_ppb as f64 / (1.0 - drift_ppb as f64 / 1e9);
        assert!(low <= real + 1.0 && real - 1.0 <= high, "{drift_ppb}: {low} {high}");
        assert!(high - low < 30_000.0, "{drift_ppb}: {low} {high}");
    }
}

#[test]
fn a_jump_parts_the_pieces() {
    for by in [3_000_000, -1_000_000, -1_500_000_000] {
        let spec = Spec { jumps: vec![(400, by)], length_ns: 4_000_000_000, ..Spec::default() };
        let (history, pieces) = solved(&spec);
        let pieces = pieces.unwrap();
        assert_eq!(pieces.len(), 2, "{by}: {pieces:?}");
        let covered = check(&history, &pieces);
        assert!(covered * 100 > history.stamps.len() * 95, "{covered}");
    }
}

#[test]
fn a_guest_recorded_for_a_part_of_the_time_is_found() {
    let spec = Spec { guest_recorded: (300, 600), offset_ns: -5_000_000, ..Spec::default() };
    let (history, pieces) = solved(&spec);
    assert_eq!(check(&history, &pieces.unwrap()), history.stamps.len());
}

#[test]
fn exits_as_short_as_those_of_hardware_bound_the_clock_to_nanoseconds() {
    let spec = Spec {
        inside_ns: 80_000,
        away_ns: 2000,
        idle_one_in: 20,
        event_ns: 50_000,
        length_ns: 5_000_000_000,
        drift_ppb: 2000,
        ..Spec::default()
    };
    let (history, pieces) = solved(&spec);
    let pieces = pieces.unwrap();
    assert_eq!(check(&history, &pieces), history.stamps.len());
    assert!(pieces.len() == 1 && pieces[0].bound_ns < 50, "{pieces:?}");
}

#[test]
fn a_guest_that_idles_is_found_by_a_few_hundred_events() {
    for seed in 0..10 {
        let spec = Spec {
            seed,
            inside_ns: 100_000,
            idle_one_in: 1,
            event_ns: 200_000,
            length_ns: 3_000_000_000,
            guest_recorded: (200, 900),
            offset_ns: 4_000_000_000,
            ..Spec::default()
        };
        let (history, pieces) = solved(&spec);
        assert!(history.stamps.len() < 400, "{}", history.stamps.len());
        assert_eq!(check(&history, &pieces.unwrap()), history.stamps.len(), "seed {seed}");
    }
}

#[test]
fn a_guest_on_another_vcpu_has_no_place() {
    for seed in 0..20 {
        let history = Spec { seed, ..Spec::default() }.history();
        let other = Spec { seed: seed + 1000, ..Spec::default() }.history();
        assert!(
            solve(&history.stamps, &other.away, &mut Budget::default()).is_err(),
            "seed {seed}"
        );
    }
}

#[test]
fn what_says_too_little_is_no_answer() {
    assert_eq!(
        solve(&[1, 2, 3], &Away::default(), &mut Budget::default()).err(),
        Some(Unsolved::NothingRecorded)
    );
    // Exits at regular times fit at every turn.
    let (mut away, mut random) = (Away::default(), random(5));
    (0..2000).for_each(|at| away.push(at * 1_000_000, at * 1_000_000 + 500_000));
    let mut stamps: Vec<i64> = (0..900)
        .map(|_| random.below(1900) as i64 * 1_000_000 + 600_000 + random.below(300_000) as i64)
        .collect();
    stamps.sort_unstable();
    stamps.dedup();
    assert_eq!(
        solve(&stamps, &away, &mut Budget::default()).err(),
        Some(Unsolved::SeveralOffsetsFit)
    );
}

#[test]
fn times_of_damaged_recordings_do_no_harm() {
    let top = i64::MAX as u64;
    let ends: [&[(u64, u64)]; 4] = [
        &[(0, 1), (5, top)],
        &[(0, 1), (top - 9, top - 3)],
        &[(0, top)],
        &[(0, 10), (20, 30), (top / 2, top / 2 + 5), (top - 1, top)],
    ];
    for spans in ends {
        let mut away = Away::default();
        spans.iter().for_each(|&(from, to)| away.push(from, to));
        for step in [1, 1 << 20, i64::MAX / 40] {
            let mut stamps: Vec<i64> = (0..40).map(|at| at * step).collect();
            let _ = solve(&stamps, &away, &mut Budget::default());
            stamps.extend([i64::MAX - 1, i64::MAX]);
            let _ = solve(&stamps, &away, &mut Budget::default());
            let negative: Vec<i64> = stamps.iter().rev().map(|stamp| -stamp).collect();
            let _ = solve(&negative, &away, &mut Budget::default());
        }
    }
}

#[test]
fn another_cpu_of_the_guest_narrows_the_bound() {
    let spec = Spec { event_ns: 2_000_000, offset_ns: 1_000_000, ..Spec::default() };
    let (history, pieces) = solved(&spec);
    let mut pieces = pieces.unwrap();
    let other = Spec { seed: 77, event_ns: 50_000, ..spec }.history();
    let before = pieces[0].bound_ns;
    assert!(pieces[0].narrow_by(&other.stamps, &other.away));
    assert!(pieces[0].bound_ns < before, "{before} {}", pieces[0].bound_ns);
    check(&history, &pieces);
    // One whose clock is another contradicts, and changes nothing.
    let (original, far) =
        (pieces[0].clone(), Spec { offset_ns: 9_000_000, ..other_spec() }.history());
    assert!(!pieces[0].narrow_by(&far.stamps, &far.away));
    assert_eq!(pieces[0].bound_ns, original.bound_ns);
}

fn other_spec() -> Spec {
    Spec { seed: 78, event_ns: 50_000, ..Spec::default() }
}

/// Jumps by less may hide in a line that fits before and after them.
const MIN_JUMP_NS: i64 = 2_000_000;

/// This many events must contradict the offset before or after a jump for it to be noticed.
const CONTRADICTIONS: usize = 30;

/// What clocks drift apart between two events, at most.
const MAX_DRIFT_BETWEEN_NS: u64 = 8000;

/// Whether all jumps can be noticed.
fn is_noticeable(history: &History) -> bool {
    let mut runs: Vec<(i64, Vec<i64>)> = Vec::new();
    for (&stamp, &truth) in history.stamps.iter().zip(&history.truth) {
        match runs.last_mut() {
            Some((last, run)) if last.abs_diff(truth) < MIN_JUMP_NS as u64 / 2 => {
                // Two jumps that nearly cancel out are a small one.
                if last.abs_diff(truth) > MAX_DRIFT_BETWEEN_NS {
                    return false;
                }
                *last = truth;
                run.push(stamp);
            }
            _ => runs.push((truth, vec![stamp])),
        }
    }
    let contradict = |run: &(i64, Vec<i64>), offset: i64| {
        run.1.iter().filter(|&stamp| history.away.around(stamp + offset).is_some()).count()
    };
    runs.windows(2).all(|two| {
        contradict(&two[0], two[1].0).min(contradict(&two[1], two[0].0)) >= CONTRADICTIONS
    })
}

prop_compose! {
    fn any_spec()(
        seed in any::<u64>(),
        length_ms in 200_u64..4000,
        inside_ns in 20_000_u64..2_000_000,
        away_ns in 2_000_u64..400_000,
        idle_one_in in 0_u64..60,
        event_ns in 10_000_u64..2_000_000,
        offset_ns in -10_000_000_000_000_i64..40_000_000_000,
        drift_ppb in -400_000_i64..400_000,
        jumps in prop::collection::vec((50_u64..950, MIN_JUMP_NS..20_000_000, any::<bool>()), 0..3),
        lost in 0_u64..300,
        begin in 0_u64..400,
        part in 300_u64..1000,
    ) -> Spec {
        let jumps = jumps.into_iter().map(|(at, by, back)| (at, if back { -by } else { by }));
        Spec {
            seed, inside_ns, away_ns, idle_one_in, event_ns, offset_ns, drift_ppb, lost,
            length_ns: length_ms * 1_000_000,
            jumps: jumps.collect(),
            guest_recorded: (begin, (begin + part).min(1000)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_truth_lies_within_the_bound(spec in any_spec()) {
        let (history, pieces) = solved(&spec);
        if let (Ok(pieces), true) = (pieces, is_noticeable(&history)) {
            check(&history, &pieces);
        }
    }
}
