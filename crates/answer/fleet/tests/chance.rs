//! Tests how often chance is reported as a change, and how often a change is found, on simulated hosts: the time of
//! exits varies by host (deviation of logarithms 0.35) and by day (0.08).
//!
//! `HYPERSCOPE_FLEET_REPEATS` sets the number of repetitions.

use fleet::{Change, HostValues, compare};
use stats::Chance;

const ALPHA: f64 = 0.05;
const HOST: f64 = 0.35;
const DAY: f64 = 0.08;
/// Exits of a host, and the deviation of the logarithms of their times.
const EXITS: f64 = 2000.0;
const EXIT: f64 = 1.0;

fn repeats() -> usize {
    std::env::var("HYPERSCOPE_FLEET_REPEATS").ok().and_then(|text| text.parse().ok()).unwrap_or(400)
}

/// A number of the normal distribution.
fn normal(chance: &mut Chance) -> f64 {
    let mut even = || ((chance.number() >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
    let (first, other) = (even(), even());
    (-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}

/// The mean of a host's exits on a day: the mean of 2,000 log-normal times has its own error.
fn day(host: f64, chance: &mut Chance) -> f64 {
    let error = ((EXIT * EXIT).exp_m1() / EXITS).sqrt();
    (host + DAY * normal(chance)).exp() * (1.0 + error * normal(chance))
}

/// The same hosts on both sides.
fn same_hosts(hosts: usize, effect: f64, chance: &mut Chance) -> Vec<HostValues> {
    let make_host = |_| {
        let host = HOST * normal(chance);
        let (a, b) = (Some(day(host, chance)), Some(day(host, chance) * effect));
        HostValues { a, b, stratum: 0, is_control: false }
    };
    (0..hosts).map(make_host).collect()
}

/// Hosts of two kinds, one of which is three times as slow and more frequent on the second side.
fn other_hosts(hosts: usize, effect: f64, chance: &mut Chance) -> Vec<HostValues> {
    let mut all = Vec::new();
    for at in 0..hosts * 2 {
        let is_b = at % 2 == 1;
        let stratum = usize::from(chance.below(10) < if is_b { 7 } else { 3 });
        let host = HOST * normal(chance) + if stratum == 1 { 3.0_f64.ln() } else { 0.0 };
        let value = Some(day(host, chance) * if is_b { effect } else { 1.0 });
        let (a, b) = if is_b { (None, value) } else { (value, None) };
        all.push(HostValues { a, b, stratum, is_control: false });
    }
    all
}

/// All hosts became a fifth slower meanwhile; half of them were changed.
fn staged(hosts: usize, effect: f64, chance: &mut Chance) -> Vec<HostValues> {
    let mut all = same_hosts(hosts, 1.2, chance);
    for (at, host) in all.iter_mut().enumerate() {
        host.is_control = at % 2 == 0;
        let effect = if host.is_control { 1.0 } else { effect };
        host.b = host.b.map(|b| b * effect);
    }
    all
}

type Shape = fn(usize, f64, &mut Chance) -> Vec<HostValues>;

fn is_alarm(change: &Change) -> bool {
    change.p <= ALPHA && change.is_not_contradicted(ALPHA)
}

/// The share of fleets that are reported as different.
fn alarms(shape: Shape, hosts: usize, effect: f64) -> f64 {
    let found = (0..repeats()).filter(|repeat| {
        let mut chance = Chance::of_part(23, *repeat as u64);
        let hosts = shape(hosts, effect, &mut chance);
        compare(&hosts, ALPHA, *repeat as u64).is_some_and(|change| is_alarm(&change))
    });
    let share = found.count() as f64 / repeats() as f64;
    println!("hosts {hosts}, effect {effect}: {:.1}% of {}", share * 100.0, repeats());
    share
}

/// The requested rate is 5%; 6% of 400 fleets adds one deviation of chance.
#[test]
fn chance_is_called_a_change_as_often_as_asked_for() {
    let max = 0.06;
    for (name, shape) in
        [("same hosts", same_hosts as Shape), ("other hosts", other_hosts), ("staged", staged)]
    {
        for hosts in [8, 20] {
            let share = alarms(shape, hosts, 1.0);
            assert!(share <= max, "{name}, {hosts} hosts: {share}");
        }
    }
}

#[test]
fn changes_are_found() {
    for (shape, hosts, effect, min) in [
        (same_hosts as Shape, 20, 1.06, 0.4),
        (same_hosts, 100, 1.03, 0.45),
        (same_hosts, 100, 1.06, 0.95),
        (other_hosts, 100, 1.25, 0.9),
        (staged, 100, 1.08, 0.85),
    ] {
        let share = alarms(shape, hosts, effect);
        assert!(share >= min, "{hosts} hosts, {effect}: {share}");
    }
}

/// The interval contains the true change as often as its confidence promises.
#[test]
fn intervals_hold_the_change() {
    for shape in [same_hosts as Shape, other_hosts, staged] {
        let held = (0..repeats()).filter(|repeat| {
            let mut chance = Chance::of_part(5, *repeat as u64);
            let change = compare(&shape(20, 1.1, &mut chance), ALPHA, 1);
            change.is_some_and(|change| change.low <= 1.1 && change.high >= 1.1)
        });
        let share = held.count() as f64 / repeats() as f64;
        assert!((0.91..=0.99).contains(&share), "{share}");
    }
}
