//! Compares real recordings with themselves: their time is split into pieces, which are randomly assigned to both
//! sides, so each significant difference is a false positive.

use std::collections::BTreeMap;
use std::path::Path;

use analyses::diff::{KeyValue, Run, Series};
use stats::Chance;
use timeline::{ExitSink, ExitSpan, Outcome, each_exit};

use super::made::{add, compared, run};

/// Number of pieces.
const PIECES: usize = 200;

/// All exits, as time, reason and duration.
#[derive(Debug, Default)]
struct All(Vec<(u64, u64, u64)>);

impl ExitSink for All {
    fn exit(&mut self, _: usize, span: &ExitSpan) {
        if span.outcome == Outcome::Paired {
            self.0.push((span.start_ns, span.code, span.duration_ns()));
        }
    }
}

fn exits(path: &str) -> Vec<(u64, u64, u64)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures").join(path);
    let mut all = each_exit(&sources::open(&path).unwrap(), false, All::default(), &|_| ()).sink.0;
    all.sort_unstable();
    all
}

/// Two runs, each a concatenation of randomly assigned pieces.
fn dealt(exits: &[(u64, u64, u64)], chance: &mut Chance) -> [Run; 2] {
    let (first, last) = (exits[0].0, exits[exits.len() - 1].0);
    let piece_ns = (last - first) / PIECES as u64 + 1;
    let mut order: Vec<usize> = (0..PIECES).collect();
    chance.shuffle(&mut order);
    let mut places = [(0, 0u64); PIECES];
    for (rank, piece) in order.into_iter().enumerate() {
        places[piece] = (rank % 2, (rank / 2) as u64);
    }
    let mut groups: [BTreeMap<u64, Series>; 2] = Default::default();
    let mut wholes: [Series; 2] = Default::default();
    for (at, code, ns) in exits {
        let (side, place) = places[((at - first) / piece_ns) as usize];
        let at = place * piece_ns + (at - first) % piece_ns;
        add(groups[side].entry(*code).or_default(), at, *ns);
        add(&mut wholes[side], at, *ns);
    }
    let span = (0, piece_ns * PIECES as u64 / 2);
    let [a, b] = groups.map(|groups| {
        groups.into_iter().map(|(code, series)| (KeyValue::Number(code), series)).collect()
    });
    let [whole_a, whole_b] = wholes;
    [run(a, whole_a, span), run(b, whole_b, span)]
}

/// Share of all comparisons with p below 0.05, and of pairs with any significant row.
fn called_different(path: &str, pairs: u64) -> (f64, f64) {
    let exits = exits(path);
    let mut chance = Chance::new(11);
    let (mut below, mut compared_in_all, mut significant) = (0, 0, 0);
    for pair in 0..pairs {
        let [a, b] = dealt(&exits, &mut chance);
        let diff = compared(&[a], &[b], pair);
        below += diff.rows.iter().filter(|row| row.p.is_some_and(|p| p < 0.05)).count();
        compared_in_all += diff.rows.iter().filter(|row| row.p.is_some()).count();
        significant += u32::from(diff.rows.iter().any(|row| row.significant));
    }
    (below as f64 / compared_in_all as f64, f64::from(significant) / pairs as f64)
}

#[test]
fn halves_of_real_recordings_that_chance_made_do_not_differ() {
    for path in [
        "arm64/D.dat",
        "arm64/B-vhost-off.dat",
        "x86-svm/host-guest.dat",
        "x86-svm/tsc.dat",
        "x86-vmx/smp.dat",
    ] {
        let (below, significant) = called_different(path, 20);
        eprintln!(
            "{path}: p below 0.05 in {below:.3} of comparisons, significant in {significant}"
        );
        assert!(below < 0.09, "{path}: {below}");
        assert!(significant <= 0.25, "{path}: {significant}");
    }
}
