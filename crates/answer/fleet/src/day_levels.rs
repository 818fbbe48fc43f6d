//! The level of a fleet in each step (a day, or several), independent of which hosts reported: median polish.
//!
//! A value is the sum of a host effect, a step effect and noise. Medians over the steps of each host and over the
//! hosts of each step are subtracted in turn until they vanish. The step effects then do not depend on which hosts
//! reported, and a single deviating host moves nothing.

use std::collections::BTreeMap;

use stats::median;

/// A host's value in a step, as a logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HostStep {
    pub(crate) host: u32,
    pub(crate) step: u32,
    pub(crate) log: f64,
}

/// Levels of a fleet.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DayLevels {
    /// Steps with a level, in order.
    pub(crate) steps: Vec<u32>,
    /// The typical host's level in each step.
    pub(crate) levels: Vec<f64>,
    /// Values that were used.
    pub(crate) values: Vec<HostStep>,
}

/// Min hosts of a step.
const MIN_HOSTS: usize = 3;

/// A step needs at least one host per this many of a typical step: fewer hosts vary more.
const MIN_SHARE: usize = 4;

/// Max rounds: the remainder halves at least with each.
const MAX_ROUNDS: usize = 30;

impl DayLevels {
    /// Computes the levels of steps with enough hosts.
    pub(crate) fn new(values: Vec<HostStep>) -> Self {
        let values = enough(values);
        let hosts = places(&values, |value| value.host);
        let steps = places(&values, |value| value.step);
        let mut rest: Vec<f64> = values.iter().map(|value| value.log).collect();
        let mut of_hosts = vec![0.0; hosts.len()];
        let mut of_steps = vec![0.0; steps.len()];
        for _ in 0..MAX_ROUNDS {
            let moved = take_off(&mut rest, hosts.values(), &mut of_hosts);
            let moved = moved.max(take_off(&mut rest, steps.values(), &mut of_steps));
            if moved < 1e-9 {
                break;
            }
        }
        let typical = median(&mut of_hosts).unwrap_or(0.0);
        let levels = of_steps.into_iter().map(|level| level + typical).collect();
        Self { steps: steps.into_keys().collect(), levels, values }
    }
}

/// Values of hosts that reported at least twice, in steps with enough hosts: others give no evidence of a change.
fn enough(mut values: Vec<HostStep>) -> Vec<HostStep> {
    loop {
        let before = values.len();
        let steps = places(&values, |value| value.step);
        let mut hosts: Vec<usize> = steps.values().map(Vec::len).collect();
        hosts.sort_unstable();
        let typical = hosts.get(hosts.len() / 2).copied().unwrap_or(0);
        let min = MIN_HOSTS.max(typical.div_ceil(MIN_SHARE));
        values.retain(|value| steps.get(&value.step).is_some_and(|all| all.len() >= min));
        let hosts = places(&values, |value| value.host);
        values.retain(|value| hosts.get(&value.host).is_some_and(|all| all.len() > 1));
        if values.len() == before {
            return values;
        }
    }
}

/// Indices of values by key.
fn places(values: &[HostStep], key_of: impl Fn(&HostStep) -> u32) -> BTreeMap<u32, Vec<usize>> {
    let mut places: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, value) in values.iter().enumerate() {
        places.entry(key_of(value)).or_default().push(at);
    }
    places
}

/// Moves each group's median from its values to its effect; returns the greatest move.
fn take_off<'p>(
    rest: &mut [f64],
    groups: impl Iterator<Item = &'p Vec<usize>>,
    effects: &mut [f64],
) -> f64 {
    let mut moved = 0.0_f64;
    for (group, effect) in groups.zip(effects) {
        let mut residuals: Vec<f64> =
            group.iter().filter_map(|at| rest.get(*at).copied()).collect();
        let Some(middle) = median(&mut residuals) else { continue };
        *effect += middle;
        for at in group {
            rest.iter_mut().skip(*at).take(1).for_each(|value| *value -= middle);
        }
        moved = moved.max(middle.abs());
    }
    moved
}

#[cfg(test)]
mod tests {
    use stats::Chance;

    use super::*;
    use crate::simulate::normal;

    fn fleet(hosts: u32, steps: u32, log: impl Fn(u32, u32) -> Option<f64>) -> Vec<HostStep> {
        let all = (0..hosts).flat_map(|host| (0..steps).map(move |step| (host, step)));
        all.filter_map(|(host, step)| Some(HostStep { host, step, log: log(host, step)? }))
            .collect()
    }

    /// Without noise the levels are the given ones, although slow hosts report on other days than fast ones.
    #[test]
    fn levels_do_not_depend_on_which_hosts_reported() {
        let level_of = |host: u32| f64::from(host % 5);
        let of_step = |step: u32| if step >= 6 { 0.25 } else { 0.0 };
        // Slow hosts report in the first days and again in the last two.
        let is_there = |host: u32, step: u32| level_of(host) < 3.0 || !(3..=9).contains(&step);
        let values = fleet(20, 12, |host, step| {
            is_there(host, step).then(|| 7.0 + level_of(host) + of_step(step))
        });
        let found = DayLevels::new(values);
        assert_eq!((found.steps.len(), places(&found.values, |value| value.host).len()), (12, 20));
        let first = *found.levels.first().unwrap();
        for (step, level) in (0..12).zip(&found.levels) {
            assert!((level - first - of_step(step)).abs() < 1e-9, "{step}: {:?}", found.levels);
        }
        assert!((first - 9.0).abs() < 1e-9, "the typical host's: {first}");
    }

    #[test]
    fn a_host_that_went_its_own_way_moves_nothing() {
        let values = |odd: f64| {
            let mut chance = Chance::new(3);
            let noise: Vec<f64> = (0..9 * 10).map(|_| normal(&mut chance) * 0.01).collect();
            fleet(9, 10, move |host, step| {
                let offset = if host == 4 && step > 5 { odd } else { 0.0 };
                Some(noise.get((host * 10 + step) as usize)? + offset)
            })
        };
        let (plain, moved) = (DayLevels::new(values(0.0)), DayLevels::new(values(5.0)));
        for (level, other) in plain.levels.iter().zip(&moved.levels) {
            assert!((level - other).abs() < 0.02, "{level} {other}");
        }
    }

    #[test]
    fn steps_and_hosts_that_say_nothing_are_left_out() {
        // Day 3 has two hosts of twelve; host 11 reported once.
        let found = DayLevels::new(fleet(12, 6, |host, step| {
            let is_there = if host == 11 { step == 0 } else { step != 3 || host < 2 };
            is_there.then_some(1.0)
        }));
        assert_eq!((found.steps, found.levels), (vec![0, 1, 2, 4, 5], vec![1.0; 5]));
        assert!(found.values.iter().all(|value| value.host != 11));
        assert_eq!(DayLevels::new(Vec::new()), DayLevels::default());
        assert_eq!(DayLevels::new(fleet(2, 9, |_, _| Some(1.0))), DayLevels::default());
    }
}
