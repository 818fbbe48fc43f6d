//! Differential flame graphs: equal runs are rarely coloured, changes are, and no stack is missing.

use std::collections::BTreeMap;

use analyses::diff::{Options, Run, RunVm, StackChanges, StackFrame, Stacks, stack_changes};
use proptest::prelude::*;
use stats::Chance;

use super::made::{QUESTION, normal};

/// Shares of functions, each with four callers; the sum is 1.
const SHARES: [f64; 12] = [0.22, 0.2, 0.13, 0.1, 0.09, 0.07, 0.06, 0.05, 0.03, 0.02, 0.02, 0.01];
const SPAN_NS: u64 = 10_000_000_000;
/// Number of samples that a recorder takes of one CPU in ten seconds.
const SAMPLES: u64 = 4990;
const OPTIONS: Options = Options { alpha: 0.05, seed: 1 };

fn code(name: &str) -> StackFrame {
    StackFrame::Code(name.to_owned())
}

fn run(stacks: Stacks) -> Run {
    let vms = vec![RunVm { name: "vm".to_owned(), vcpus: 1 }];
    Run { vms, span_ns: (0, SPAN_NS), stacks, ..(QUESTION.measure)(super::made::NOTHING, &|_| ()) }
}

/// Samples of functions with these mean shares. `wander` is the deviation of phases of a third of a second, as
/// standard deviation of the logarithm.
fn sampled(shares: &[f64; 12], wander: f64, samples: u64, seed: u64) -> Run {
    let mut chance = Chance::of_part(seed, 7);
    let mut stacks = Stacks::default();
    let mut weights = *shares;
    for at in 0..samples {
        if at % 160 == 0 {
            weights = shares.map(|share| share * (wander * normal(&mut chance)).exp());
        }
        let all: f64 = weights.iter().sum();
        let mut remaining = chance.below(1 << 30) as f64 / f64::from(1 << 30) * all;
        let drawn = weights.iter().position(|weight| {
            remaining -= weight;
            remaining < 0.0
        });
        let leaf = drawn.unwrap_or(0);
        let caller = code(&format!("caller {}", leaf % 4));
        let stack = [StackFrame::Vm(0), caller, code(&format!("function {leaf}"))];
        stacks.add(stack, at * (SPAN_NS / samples), SPAN_NS / samples, false);
    }
    run(stacks)
}

fn coloured(changes: &StackChanges) -> Vec<&StackFrame> {
    let judged = changes
        .stacks
        .iter()
        .filter(|stack| stack.judged.as_ref().is_some_and(|row| row.significant));
    judged.map(|stack| &stack.frame).collect()
}

/// Number of pairs of equal runs with any coloured stack.
fn alarms(pairs: u64, wander: f64) -> usize {
    let is_coloured = |pair: &u64| {
        let [a, b] = [2 * pair, 2 * pair + 1].map(|seed| sampled(&SHARES, wander, SAMPLES, seed));
        !coloured(&stack_changes(&[a], &[b], OPTIONS)).is_empty()
    };
    (0..pairs).filter(is_coloured).count()
}

#[test]
fn equal_runs_have_no_colour() {
    // 5% of 200 are 10; more than 20 have a probability of one in five hundred.
    for wander in [0.0, 0.4] {
        let alarms = alarms(200, wander);
        assert!(alarms <= 20, "wander {wander}: {alarms} of 200");
        println!("wander {wander}: {alarms} of 200 pairs of equal runs have colour");
    }
}

#[test]
fn three_percent_of_the_time_are_found() {
    let mut changed = SHARES;
    (changed[1], changed[0]) = (changed[1] + 0.03, changed[0] - 0.03);
    // With half a minute per run; with ten seconds, twelve of twenty changes are found.
    let found = (0..20).filter(|pair| {
        let a = sampled(&SHARES, 0.0, 3 * SAMPLES, 1000 + pair);
        let b = sampled(&changed, 0.0, 3 * SAMPLES, 2000 + pair);
        let changes = stack_changes(&[a], &[b], OPTIONS);
        let grown = |stack: &&analyses::diff::ChangedStack| stack.frame == code("function 1");
        let grown = changes.stacks.iter().find(grown).unwrap();
        grown.ns_per_s[1] > grown.ns_per_s[0] && coloured(&changes).contains(&&grown.frame)
    });
    let found = found.count();
    println!("3% more in one function: found in {found} of 20");
    assert!(found >= 18, "{found} of 20");
}

#[test]
fn what_is_on_one_side_only_is_kept() {
    let (mut a, mut b) = (Stacks::default(), Stacks::default());
    for at in 0..1000 {
        let leaf = |name| [StackFrame::Vm(0), code("caller"), code(name)];
        a.add(leaf("gone"), at * 10_000_000, 3_000_000, false);
        b.add(leaf("new"), at * 10_000_000, 3_000_000, false);
    }
    let changes = stack_changes(&[run(a)], &[run(b)], OPTIONS);
    assert_eq!(coloured(&changes), [&code("gone"), &code("new")]);
    let rates: Vec<[f64; 2]> = changes.stacks.iter().map(|stack| stack.ns_per_s).collect();
    assert_eq!(rates, [[3e8, 3e8], [3e8, 3e8], [3e8, 0.0], [0.0, 3e8]]);
    assert_eq!(changes.vms, ["vm"]);
}

#[test]
fn time_that_events_say_needs_no_samples() {
    let waits = |ns: u64| {
        let mut stacks = Stacks::default();
        for at in 0..100 {
            let stack = [StackFrame::Vm(0), StackFrame::Part("preempted".to_owned())];
            stacks.add(stack, at * 100_000_000, ns + at % 7 * 1000, true);
        }
        run(stacks)
    };
    let changes = stack_changes(&[waits(1_000_000)], &[waits(2_000_000)], OPTIONS);
    assert_eq!(coloured(&changes).len(), 2, "{changes:?}");
    let same = stack_changes(&[waits(1_000_000)], &[waits(1_000_000)], OPTIONS);
    assert_eq!(coloured(&same), [] as [&StackFrame; 0]);
}

proptest! {
    #[test]
    fn frames_add_up(
        sides in prop::collection::vec(
            prop::collection::vec((prop::collection::vec(0..4usize, 1..5), 0..SPAN_NS, 0..1_000_000u64), 0..40),
            2..5,
        ),
    ) {
        let runs: Vec<Run> = sides.iter().map(|times| {
            let mut stacks = Stacks::default();
            for (stack, at_ns, time_ns) in times {
                let frames = stack.iter().map(|name| code(&name.to_string()));
                stacks.add(frames, *at_ns, *time_ns, false);
            }
            run(stacks)
        }).collect();
        let (a, b) = runs.split_at(1);
        let changes = stack_changes(a, b, OPTIONS);
        let mut below: BTreeMap<Option<usize>, [f64; 2]> = BTreeMap::new();
        for stack in &changes.stacks {
            let sum = below.entry(stack.caller).or_default();
            (0..2).for_each(|side| sum[side] += stack.ns_per_s[side]);
        }
        for (at, stack) in changes.stacks.iter().enumerate() {
            for side in 0..2 {
                let callees = below.get(&Some(at)).map_or(0.0, |sum| sum[side]);
                prop_assert!((callees + stack.own_ns_per_s[side] - stack.ns_per_s[side]).abs() < 1e-3);
            }
        }
        let ns = |runs: &[Vec<(Vec<usize>, u64, u64)>]| {
            runs.iter().flatten().map(|(_, _, ns)| *ns as f64).sum::<f64>() / runs.len() as f64 / 10.0
        };
        let totals = changes.ns_per_s();
        prop_assert!((totals[0] - ns(&sides[..1])).abs() < 1e-3 && (totals[1] - ns(&sides[1..])).abs() < 1e-3);
    }
}
