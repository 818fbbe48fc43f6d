//! However few spans are kept, no time is lost or moved from one state to another.

use super::*;
use proptest::prelude::*;

fn sums(lane: &Lane) -> ([u64; State::COUNT], u64) {
    let (mut sums, mut count) = ([0; State::COUNT], 0);
    for item in lane.items() {
        match item.state {
            Some(state) => {
                sums[usize::from(state.number())] += item.length_ns;
                count += 1;
            }
            None => {
                let merged = &lane.merged()[item.label as usize];
                count += merged.count;
                for (sum, more) in sums.iter_mut().zip(merged.state_ns) {
                    *sum += more;
                }
            }
        }
    }
    (sums, count)
}

proptest! {
    #[test]
    fn merging_keeps_the_time_of_every_state(
        steps in prop::collection::vec((0u64..300, 1u64..5000, 0usize..State::COUNT), 1..6000),
        most in 1000usize..3000,
    ) {
        let mut set = LaneSet::new(most);
        let lane = set.add(Lane::new("host", LaneKind::Vcpu, "vCPU 0"));
        let (mut at_ns, mut expected) = (0, [0; State::COUNT]);
        for (gap_ns, length_ns, state) in &steps {
            let from_ns = at_ns + gap_ns / 100 * 100;
            at_ns = from_ns + length_ns;
            set.push(lane, Span { from_ns, to_ns: at_ns, state: State::ALL[*state], label: 0 });
            expected[*state] += length_ns;
        }
        let lane = &set.lanes()[0];
        prop_assert!(lane.items().len() <= most);
        prop_assert_eq!(sums(lane), (expected, steps.len() as u64));
        prop_assert_eq!(set.spans(), steps.len() as u64);
        let ends: Vec<_> = lane.items().iter().map(|item| (item.from_ns, item.to_ns())).collect();
        prop_assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        let below_ns = set.merged_below_ns();
        let whole = |item: &&Item| item.state.is_some();
        let long = steps.iter().filter(|(_, length_ns, _)| *length_ns >= below_ns).count();
        prop_assert_eq!(
            lane.items().iter().filter(whole).filter(|item| item.length_ns >= below_ns).count(),
            long,
            "spans that are long enough are kept as they were"
        );
    }
}

#[test]
fn what_overlaps_is_cut_off() {
    let mut set = LaneSet::new(1000);
    let lane = set.add(Lane::new("host", LaneKind::Cpu, "CPU 0"));
    let span = |from_ns, to_ns| Span { from_ns, to_ns, state: State::CpuOther, label: 0 };
    set.push(lane, span(10, 20));
    set.push(lane, span(15, 30));
    set.push(lane, span(12, 18));
    set.push(lane, span(2, 14));
    set.push(lane, span(0, 1));
    let ends: Vec<_> =
        set.lanes()[0].items().iter().map(|item| (item.from_ns, item.to_ns())).collect();
    assert_eq!(ends, [(0, 1), (2, 10), (10, 20), (20, 30)], "and what comes late is put in place");
    assert_eq!((set.spans(), set.range_ns()), (4, Some((0, 30))));
}
