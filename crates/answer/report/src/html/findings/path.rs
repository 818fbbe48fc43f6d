//! The finding about requests: the path with the longest time, and its longest hop.

use analyses::distribution::Distribution;
use analyses::path::{Actor, Hop};

use super::{Finding, Link, Weight};
use crate::{PathReport, count, share, time as duration};

pub(super) fn finding_of(report: &PathReport) -> Option<Finding> {
    let ns = report.paths.nanoseconds;
    let path = report.paths.paths.iter().max_by_key(|path| path.total.sum())?;
    let time = |hop: &Hop| hop.times.sum();
    let longest = path.hops.iter().max_by_key(|hop| time(hop))?;
    let all: u64 = path.hops.iter().map(time).fold(0, u64::saturating_add);
    let half = |times: &Distribution| {
        let [half] = times.percentiles([500]);
        duration(half.unwrap_or_default(), ns)
    };
    let values = [
        &path.name,
        &count(path.total.count()),
        &half(&path.total),
        &share(longest.times.sum(), all),
        &longest.to,
        &match longest.on {
            Actor::Recorder => "the recording itself".to_owned(),
            on => on.name().to_owned(),
        },
    ];
    let sentence = "Of all requests, *{}* took the most time: {} of them, half within {}; *{}* of that is the hop to “{}” on {}.";
    let link = Link { section: "path", vm: path.vm.clone(), ..Link::default() };
    Some(Finding::new(Weight::Notice, sentence, &values).to(link))
}
