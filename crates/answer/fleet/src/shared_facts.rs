//! Finds facts that the carriers of a change share: those that other hosts lack, or that changed at the same time.

use schemars::JsonSchema;
use serde::Serialize;

use std::collections::BTreeMap;

use crate::sessions::Session;

/// The sessions of a host that show its facts before and since a change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around<'s> {
    pub(crate) before: Option<&'s Session>,
    pub(crate) since: Option<&'s Session>,
}

impl Around<'_> {
    fn now(&self, name: &str) -> Option<String> {
        self.since?.text(name)
    }

    fn step(&self, name: &str) -> Option<(String, String)> {
        let (before, since) = (self.before?.text(name)?, self.since?.text(name)?);
        (before != since).then_some((before, since))
    }
}

/// A fact that hosts share.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct SharedFact {
    /// A column of sessions, or a label.
    pub name: String,
    /// The value.
    pub value: String,
    /// Carriers with this value.
    pub carriers: usize,
    /// Other hosts with this value.
    pub others: usize,
}

/// A fact that changed.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct CameWith {
    /// A column of sessions, or a label.
    pub name: String,
    /// The value before.
    pub before: String,
    /// The value since.
    pub since: String,
    /// Carriers whose fact changed in this way.
    pub carriers: usize,
    /// Other hosts whose fact changed in this way.
    pub others: usize,
}

/// A fact belongs to a group if nine of ten hosts have it: a host may be in the group by chance.
const ALL_BUT_ONE_OF: usize = 10;

/// Facts that nearly all carriers have, and nearly no other host.
pub(crate) fn shared(
    name: &str,
    carrying: &[Around<'_>],
    others: &[Around<'_>],
) -> Option<SharedFact> {
    let (value, carriers) = most_frequent(carrying.iter().filter_map(|host| host.now(name)))?;
    let others_with = others.iter().filter(|host| host.now(name).as_ref() == Some(&value)).count();
    // A single host has many facts that others lack.
    let is_group = carrying.len() > 1 && !others.is_empty();
    let is_theirs = others_with * ALL_BUT_ONE_OF <= others.len();
    let name = name.to_owned();
    (is_group && is_theirs && is_most(carriers, carrying.len())).then_some(SharedFact {
        name,
        value,
        carriers,
        others: others_with,
    })
}

/// Facts that changed on nearly all carriers.
pub(crate) fn came_with(
    name: &str,
    carrying: &[Around<'_>],
    others: &[Around<'_>],
) -> Option<CameWith> {
    let ((before, since), carriers) =
        most_frequent(carrying.iter().filter_map(|host| host.step(name)))?;
    let is_same =
        |host: &&Around<'_>| host.step(name).is_some_and(|(a, b)| a == before && b == since);
    let others = others.iter().filter(is_same).count();
    let name = name.to_owned();
    is_most(carriers, carrying.len()).then_some(CameWith { name, before, since, carriers, others })
}

fn is_most(some: usize, all: usize) -> bool {
    (all - some) * ALL_BUT_ONE_OF <= all
}

fn most_frequent<V: Ord>(values: impl Iterator<Item = V>) -> Option<(V, usize)> {
    let mut counts: BTreeMap<V, usize> = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(facts: &[(&str, &str)]) -> Session {
        Session::with(facts)
    }

    #[test]
    fn what_carriers_alone_have_is_shared() {
        let [old, new, other] = [
            [("cpu_model", "A"), ("kernel_release", "55"), ("arch", "x86_64")],
            [("cpu_model", "A"), ("kernel_release", "56"), ("arch", "x86_64")],
            [("cpu_model", "B"), ("kernel_release", "55"), ("arch", "x86_64")],
        ]
        .map(|facts| session(&facts));
        let around = |before, since| Around { before: Some(before), since: Some(since) };
        let carrying = vec![around(&old, &new); 12];
        let others = vec![around(&other, &other); 20];
        let fact = shared("cpu_model", &carrying, &others).unwrap();
        assert_eq!((fact.value.as_str(), fact.carriers, fact.others), ("A", 12, 0));
        assert_eq!(shared("arch", &carrying, &others), None);
        assert_eq!(shared("rack", &carrying, &others), None);
        assert_eq!(
            shared("cpu_model", &carrying, &[]),
            None,
            "all hosts: nothing tells them apart"
        );
        assert_eq!(shared("cpu_model", carrying.first_chunk::<1>().unwrap(), &others), None);
        let step = came_with("kernel_release", &carrying, &others).unwrap();
        assert_eq!((step.before.as_str(), step.since.as_str()), ("55", "56"));
        assert_eq!((step.carriers, step.others), (12, 0));
        assert_eq!(came_with("cpu_model", &carrying, &others), None);
        // One of ten carriers may lack the fact, and one of ten others may have it.
        let mixed = [vec![around(&other, &other)], vec![around(&old, &new); 10]].concat();
        let some = [vec![around(&new, &new); 2], vec![around(&other, &other); 18]].concat();
        let fact = shared("kernel_release", &mixed, &some).unwrap();
        assert_eq!((fact.carriers, fact.others), (10, 2));
        let many = [vec![around(&new, &new); 3], vec![around(&other, &other); 17]].concat();
        assert_eq!(shared("kernel_release", &mixed, &many), None);
        let gone = Around { before: Some(&old), since: None };
        assert_eq!((gone.now("arch"), gone.step("arch")), (None, None));
    }
}
