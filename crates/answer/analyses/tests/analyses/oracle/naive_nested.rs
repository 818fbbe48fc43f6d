//! Costs of level-2 exits, from a naive search forwards from each of them.

use std::collections::BTreeMap;

use super::naive_exits::Exit;

/// Sums per level-2 reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LevelTwo {
    pub(crate) count: u64,
    pub(crate) paired: u64,
    pub(crate) time_ns: u64,
    pub(crate) reflected: u64,
    pub(crate) unfinished: u64,
    pub(crate) injected_as: BTreeMap<String, u64>,
    /// By code: number of level-1 exits, number of paired ones, and their time.
    pub(crate) ancillary: BTreeMap<String, (u64, u64, u64)>,
}

/// Sums by code of level 2, from the exits of all threads.
pub(crate) fn level_two(exits: &[Exit]) -> BTreeMap<String, LevelTwo> {
    let mut rows: BTreeMap<String, LevelTwo> = BTreeMap::new();
    for (at, exit) in exits.iter().enumerate().filter(|(_, exit)| exit.level == 2) {
        let row = rows.entry(exit.code.clone()).or_default();
        row.count += 1;
        row.paired += exit.sums.paired;
        row.time_ns += exit.sums.time_ns;
        let Some(injected) = exit.injected_as else { continue };
        row.reflected += 1;
        *row.injected_as.entry(injected.to_string()).or_default() += 1;
        let parents = exits[at + 1..]
            .iter()
            .take_while(|parent| parent.thread == exit.thread && parent.level == 1);
        let mut finished = false;
        for parent in parents {
            let sum = row.ancillary.entry(parent.code.clone()).or_default();
            *sum = (sum.0 + 1, sum.1 + parent.sums.paired, sum.2 + parent.sums.time_ns);
            if parent.enters_level_two {
                finished = true;
                break;
            }
        }
        row.unfinished += u64::from(!finished);
    }
    rows
}
