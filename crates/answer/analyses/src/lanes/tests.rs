//! Tests that merging neither loses time nor moves it between states.

use super::merge::Merged;
use super::*;
use proptest::prelude::*;
use raw_bytes::seven_bits::{take, take_byte};

fn sums(lane: &Lane) -> ([u64; State::COUNT], u64) {
    let (mut sums, mut count) = ([0; State::COUNT], 0);
    let mut all_merged = lane.merged();
    for item in lane.items() {
        match item.state {
            Some(state) => {
                sums[usize::from(state.number())] += item.length_ns;
                count += 1;
            }
            None => {
                let merged = all_merged.next().unwrap();
                count += merged.count;
                for (sum, more) in sums.iter_mut().zip(merged.state_ns) {
                    *sum += more;
                }
            }
        }
    }
    assert_eq!(all_merged.next(), None);
    let covered_ns: u64 = lane.items().map(|item| item.length_ns).sum();
    assert_eq!(lane.covered_ns(), covered_ns);
    (sums, count)
}

/// The columns for a page encode the lane's items.
fn assert_columns(lane: &Lane, origin_ns: u64) {
    let mut bytes = Vec::new();
    let all = lane.columns(origin_ns, |piece| {
        bytes.extend_from_slice(piece);
        Ok::<_, ()>(())
    });
    all.unwrap();
    let mut rest = bytes.as_slice();
    let mut number = || take(&mut rest).unwrap();
    let begins: Vec<u64> = lane.items().map(|_| number()).collect();
    let lengths: Vec<u64> = lane.items().map(|_| number()).collect();
    let states: Vec<u8> = lane.items().map(|_| take_byte(&mut rest).unwrap()).collect();
    let mut end_ns = origin_ns;
    for (at, item) in lane.items().enumerate() {
        assert_eq!((end_ns + begins[at], lengths[at]), (item.from_ns, item.length_ns));
        assert_eq!(states[at], item.state.map_or(255, State::number));
        assert_eq!(take(&mut rest), Some(u64::from(item.label)));
        end_ns = item.to_ns();
    }
    let merged: Vec<u8> =
        lane.merged().flat_map(|merged_span: Merged| merged_span.packed()).collect();
    assert_eq!(rest, merged);
}

proptest! {
    #[test]
    fn merging_keeps_the_time_of_every_state(
        steps in prop::collection::vec((0u64..300, 1u64..5000, 0usize..State::COUNT), 1..6000),
        max in 1000usize..3000,
    ) {
        let mut set = LaneSet::new(LaneRoom { spans: max, bytes: usize::MAX });
        let lane = set.add(Lane::new("host", LaneKind::Vcpu, "vCPU 0"));
        let (mut at_ns, mut expected) = (0, [0; State::COUNT]);
        for (gap_ns, length_ns, state) in &steps {
            let from_ns = at_ns + gap_ns / 100 * 100;
            at_ns = from_ns + length_ns;
            set.push(lane, Span { from_ns, to_ns: at_ns, state: State::ALL[*state], label: 0 });
            expected[*state] += length_ns;
        }
        let lane = &set.lanes()[0];
        prop_assert!(lane.len() <= max);
        prop_assert_eq!(sums(lane), (expected, steps.len() as u64));
        prop_assert_eq!(set.spans(), steps.len() as u64);
        assert_columns(lane, steps[0].0 / 100 * 100);
        let ends: Vec<_> = lane.items().map(|item| (item.from_ns, item.to_ns())).collect();
        prop_assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        let below_ns = set.merged_below_ns();
        let is_unmerged = |item: &Item| item.state.is_some();
        let long = steps.iter().filter(|(_, length_ns, _)| *length_ns >= below_ns).count();
        prop_assert_eq!(
            lane.items().filter(is_unmerged).filter(|item| item.length_ns >= below_ns).count(),
            long,
            "spans that are long enough are kept as they were"
        );
    }
}

#[test]
fn what_overlaps_is_cut_off() {
    let mut set = LaneSet::new(LaneRoom { spans: 1000, bytes: usize::MAX });
    let lane = set.add(Lane::new("host", LaneKind::Cpu, "CPU 0"));
    let span = |from_ns, to_ns| Span { from_ns, to_ns, state: State::CpuOther, label: 0 };
    set.push(lane, span(10, 20));
    set.push(lane, span(15, 30));
    set.push(lane, span(12, 18));
    set.push(lane, span(2, 14));
    set.push(lane, span(0, 1));
    let ends: Vec<_> = set.lanes()[0].items().map(|item| (item.from_ns, item.to_ns())).collect();
    assert_eq!(ends, [(0, 1), (2, 10), (10, 20), (20, 30)], "and what comes late is put in place");
    assert_eq!((set.spans(), set.range_ns()), (4, Some((0, 30))));
}

/// Memory is bounded for any length of the recording and any order of spans, and no time is lost.
#[test]
fn lanes_stay_within_their_bytes() {
    const BYTES: usize = 1 << 20;
    let mut set = LaneSet::new(LaneRoom { spans: usize::MAX, bytes: BYTES });
    let (mut expected, mut most_taken) = ([0; State::COUNT], 0);
    let lanes: Vec<usize> =
        (0..4).map(|_| set.add(Lane::new("host", LaneKind::Thread, "thread"))).collect();
    for at in 0..400_000u64 {
        let state = State::ALL[(at * 7 % State::COUNT as u64) as usize];
        let from_ns = at * 1_000;
        let to_ns = from_ns + 1 + at * 13 % 900;
        expected[usize::from(state.number())] += to_ns - from_ns;
        set.push(lanes[at as usize % 4], Span { from_ns, to_ns, state, label: 3 });
        most_taken = most_taken.max(set.used_room.bytes);
    }
    assert!(most_taken <= BYTES + 32 * 1024, "{most_taken} bytes");
    assert!(set.merged_below_ns() > 0);
    let mut all = [0; State::COUNT];
    for lane in set.lanes() {
        assert!(lane.len() > 100, "{}", lane.len());
        assert_columns(lane, 0);
        for (all, sum) in all.iter_mut().zip(sums(lane).0) {
            *all += sum;
        }
    }
    assert_eq!(all, expected);
}

/// Late spans are inserted among recent ones, even if older ones are packed.
#[test]
fn late_spans_find_their_place_among_many() {
    let mut set = LaneSet::new(LaneRoom { spans: usize::MAX, bytes: usize::MAX });
    let lane = set.add(Lane::new("guest", LaneKind::Task, "task"));
    let span = |from_ns, to_ns| Span { from_ns, to_ns, state: State::Running, label: 0 };
    for at in 1..=20_000u64 {
        set.push(lane, span(at * 100, at * 100 + 50));
        // A quarter of the spans leaves a gap after it; some gaps are filled later.
        if at > 4_000 && at.is_multiple_of(4) {
            let late = (at - 3_000) * 100 + 50;
            set.push(lane, span(late, late + 40));
        }
    }
    set.push(lane, span(160, 190));
    let items: Vec<_> = set.lanes()[0].items().map(|item| (item.from_ns, item.to_ns())).collect();
    assert_eq!(items.len(), 20_000 + 4_000, "the last came too late");
    assert!(items.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    assert!(items.contains(&(17_000 * 100 + 50, 17_000 * 100 + 90)));
    assert_columns(&set.lanes()[0], 7);
}
