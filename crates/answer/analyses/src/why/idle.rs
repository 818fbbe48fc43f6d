//! Halts: vCPUs that sleep and are woken at once, and the host's polling for work.

use super::Observed;
use super::cause::{Cause, CauseId};
use crate::advice::Amount;
use crate::advice::evidence::Idles;
use crate::advice::thresholds::{MIN_EXITS, is_most};

pub(super) fn causes(observed: &Observed<'_>) -> Vec<Cause> {
    let Some(exits) = observed.exits else { return Vec::new() };
    let recorded = &observed.all_exits.recorded;
    if !recorded.off_cpu {
        return Vec::new();
    }
    [wakeups(observed, &exits.idles), polling(observed, &exits.idles)]
        .into_iter()
        .flatten()
        .collect()
}

fn wakeups(observed: &Observed<'_>, idles: &Idles) -> Option<Cause> {
    let cost_ns = idles.short_cost_ns;
    if idles.count < MIN_EXITS
        || !is_most(idles.short, idles.count)
        || !observed.matters(CauseId::HaltWakeup, cost_ns)
    {
        return None;
    }
    let cause = observed.cause(CauseId::HaltWakeup, cost_ns, 0.8);
    let cause = cause.fact("halts", Amount::Count(idles.count));
    Some(cause.fact("halts shorter than 200 us", Amount::Count(idles.short)))
}

/// Polling costs the host, not the guest: its share is of the CPU time that the vCPUs took.
fn polling(observed: &Observed<'_>, idles: &Idles) -> Option<Cause> {
    let cost_ns = idles.lost_ns;
    let polls = idles.polls_won + idles.polls_lost;
    if polls < MIN_EXITS
        || !is_most(idles.polls_lost, polls)
        || !observed.matters(CauseId::HaltPollBurn, cost_ns)
    {
        return None;
    }
    let cause = observed.cause(CauseId::HaltPollBurn, cost_ns, 0.85);
    let cause = cause.fact("polls", Amount::Count(polls));
    Some(cause.fact("polls that ended in sleep", Amount::Count(idles.polls_lost)))
}
