//! Tests how often chance is reported as a change of a fleet, and how often a real change is found. Hosts are like
//! those of `fleet simulate` (deviation of logarithms 0.35 by host, 0.08 by host and day), with ten numbers each, of
//! all hosts and of two kinds.
//!
//! `HYPERSCOPE_FLEET_REPEATS` sets the number of repetitions.

#![allow(clippy::print_stdout, reason = "documentation has these numbers: run with --nocapture")]

use super::points_of_all;
use crate::change_points::ChangePoint;
use crate::day_levels::{DayLevels, HostStep};
use crate::simulate::normal;
use stats::Chance;

const ALPHA: f64 = 0.05;
const HOST: f64 = 0.35;
const DAY: f64 = 0.08;
const NUMBERS: usize = 10;

fn repeats() -> usize {
    std::env::var("HYPERSCOPE_FLEET_REPEATS").ok().and_then(|text| text.parse().ok()).unwrap_or(200)
}

/// Properties of a fleet.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    hosts: u32,
    days: u32,
    /// Whether a host reported on a day.
    is_there: fn(host: u32, day: u32, chance: &mut Chance) -> bool,
    /// Deviation that all hosts of a day share.
    common: f64,
    /// The share of that deviation which carries over to the next day.
    persistence: f64,
}

const WHOLE: Shape = Shape {
    name: "whole",
    hosts: 20,
    days: 14,
    is_there: |_, _, _| true,
    common: 0.0,
    persistence: 0.0,
};

/// A change of the first number: its size, its first day, and its hosts.
#[derive(Clone, Copy)]
struct PutIn {
    log: f64,
    from: u32,
    is_on: fn(u32) -> bool,
}

const NOTHING: PutIn = PutIn { log: 0.0, from: 0, is_on: |_| false };

fn values(shape: &Shape, put_in: PutIn, chance: &mut Chance) -> Vec<HostStep> {
    let hosts: Vec<f64> = (0..shape.hosts).map(|_| HOST * normal(chance)).collect();
    let (mut all, mut common) = (Vec::new(), 0.0);
    for step in 0..shape.days {
        common = shape.persistence * common + shape.common * normal(chance);
        for (host, level) in (0..).zip(&hosts) {
            let log = level + common + DAY * normal(chance);
            let more = if step >= put_in.from && (put_in.is_on)(host) { put_in.log } else { 0.0 };
            if (shape.is_there)(host, step, chance) {
                all.push(HostStep { host, step, log: log + more });
            }
        }
    }
    all
}

/// The days on which each series of a fleet changes: for each number, all hosts, then both kinds.
fn days(shape: &Shape, put_in: PutIn, seed: u64) -> Vec<Vec<u32>> {
    let mut chance = Chance::of_part(29, seed);
    let mut series = Vec::new();
    for number in 0..NUMBERS {
        let values = values(shape, if number == 0 { put_in } else { NOTHING }, &mut chance);
        for kind in [None, Some(0), Some(1)] {
            let is_of = |value: &&HostStep| kind.is_none_or(|kind| value.host % 2 == kind);
            series.push(DayLevels::new(values.iter().filter(is_of).copied().collect()));
        }
    }
    let found = points_of_all(&series.iter().collect::<Vec<_>>(), ALPHA);
    let day = |(series, points): (&DayLevels, Vec<ChangePoint>)| {
        points.iter().filter_map(|point| series.steps.get(point.at).copied()).collect()
    };
    series.iter().zip(found).map(day).collect()
}

/// The share of fleets without a change in which one is reported.
fn alarms(shape: &Shape) -> f64 {
    let is_alarm = |seed: &usize| {
        days(shape, NOTHING, *seed as u64).iter().any(|series_days| !series_days.is_empty())
    };
    let share = (0..repeats()).filter(is_alarm).count() as f64 / repeats() as f64;
    println!("{}, {} hosts, {} days: {:.1}%", shape.name, shape.hosts, shape.days, share * 100.0);
    share
}

fn is_there_often(_: u32, _: u32, chance: &mut Chance) -> bool {
    chance.below(3) > 0
}

/// Half of the hosts are replaced in the middle, one by one.
fn is_replaced(host: u32, day: u32, _: &mut Chance) -> bool {
    match host % 4 {
        0 => day < 4 + host / 4,
        1 => day >= 4 + host / 4,
        _ => true,
    }
}

/// The requested rate is 5% for all of a fleet's numbers together; 8% of 200 fleets adds two deviations of chance.
#[test]
fn chance_is_called_a_change_of_a_fleet_as_often_as_asked_for() {
    let some = [
        WHOLE,
        Shape { days: 6, ..WHOLE },
        Shape { hosts: 8, days: 30, ..WHOLE },
        Shape { name: "two of three hosts a day", is_there: is_there_often, ..WHOLE },
        Shape { name: "hosts replaced", is_there: is_replaced, ..WHOLE },
        Shape { name: "days in common", common: 0.05, ..WHOLE },
    ];
    for shape in some {
        let share = alarms(&shape);
        assert!(share <= 0.08, "{}: {share}", shape.name);
    }
}

/// Days that depend on the day before give more false alarms: docs/fleet.md has the rate.
#[test]
fn days_that_depend_on_each_other_give_more() {
    let alarm_share = |persistence| {
        alarms(&Shape { name: "days depend", common: 0.05, persistence, days: 30, ..WHOLE })
    };
    let (some, much) = (alarm_share(0.3), alarm_share(0.7));
    assert!(some < much && much > 0.3, "{some} {much}");
}

/// The share of fleets whose change is found in a series of the first number, at most a day off.
fn found(shape: &Shape, put_in: PutIn) -> f64 {
    let is_found = |seed: &usize| {
        let days = days(shape, put_in, *seed as u64);
        days.iter().take(3).flatten().any(|day| day.abs_diff(put_in.from) <= 1)
    };
    let share = (0..repeats()).filter(is_found).count() as f64 / repeats() as f64;
    let percent = (put_in.log.exp() - 1.0) * 100.0;
    println!("{} hosts, {} days, {percent:.0}%: {:.1}%", shape.hosts, shape.days, share * 100.0);
    share
}

#[test]
fn changes_of_a_fleet_are_found() {
    let all: fn(u32) -> bool = |_| true;
    let odd: fn(u32) -> bool = |host| host % 2 == 1;
    let many = Shape { hosts: 100, ..WHOLE };
    for (shape, percent, is_on, min) in [
        (WHOLE, 0.10_f64, all, 0.75),
        (WHOLE, 0.15, odd, 0.75),
        (many, 0.04, all, 0.7),
        (many, 0.06, all, 0.9),
        (many, 0.06, odd, 0.7),
    ] {
        let share = found(&shape, PutIn { log: percent.ln_1p(), from: 7, is_on });
        assert!(share >= min, "{} hosts, {percent}: {share}", shape.hosts);
    }
}

/// If many numbers change, the false ones are at most 5% of those reported.
#[test]
fn false_ones_are_a_share_of_those_found() {
    let (mut right, mut wrong) = (0, 0);
    for seed in 0..repeats() as u64 / 10 {
        let mut chance = Chance::of_part(11, seed);
        let put_in = PutIn { log: 0.2, from: 7, is_on: |_| true };
        let number = |at| values(&WHOLE, if at < 10 { put_in } else { NOTHING }, &mut chance);
        let series: Vec<DayLevels> = (0..40).map(number).map(DayLevels::new).collect();
        let found = points_of_all(&series.iter().collect::<Vec<_>>(), ALPHA);
        let changed = found.iter().map(|points| usize::from(!points.is_empty()));
        right += changed.clone().take(10).sum::<usize>();
        wrong += changed.skip(10).sum::<usize>();
    }
    assert!(right * 10 >= repeats() * 9, "{right} of {}", repeats());
    assert!(wrong * 15 <= right + wrong, "{wrong} of {}", right + wrong);
}
