//! Halts: vCPUs that sleep and are woken at once, and the host's polling for work.

use super::Observed;
use super::cause::{Cause, CauseId};
use super::exit_class::class_of;
use crate::advice::Amount;
use crate::advice::evidence::{Idles, Place};
use crate::advice::sums::ExitSums;
use crate::advice::thresholds::{MIN_EXITS, SHORT_IDLE_NS, is_most};

/// Timers that a short sleep sets: one to wake up, and the tick's after that.
const TIMERS_OF_SLEEP: u64 = 2;
/// Halts that run in the kernel for this many times the mean of other exits have polled.
const POLLED: u64 = 4;

pub(super) fn causes(observed: &Observed<'_>) -> Vec<Cause> {
    let Some(exits) = observed.exits else { return Vec::new() };
    let recorded = &observed.all_exits.recorded;
    if !recorded.off_cpu {
        return Vec::new();
    }
    let polling = if recorded.halt_poll {
        polling(observed, &exits.idles)
    } else {
        guessed_polling(observed, &exits.places)
    };
    [wakeups(observed, &exits.places, &exits.idles), polling].into_iter().flatten().collect()
}

fn wakeups(observed: &Observed<'_>, places: &[Place], idles: &Idles) -> Option<Cause> {
    let is_timer = |place: &&Place| class_of(place) == Some(CauseId::TimerTicks);
    let timers = ExitSums::of_all(places.iter().filter(is_timer).map(|place| &place.sums));
    let cost_ns = idles.short_cost_ns.saturating_add(timers_ns(observed, &timers));
    if !are_short(idles) || !observed.matters(CauseId::HaltWakeup, cost_ns) {
        return None;
    }
    let cause = observed.cause(CauseId::HaltWakeup, cost_ns, 0.8);
    let cause = cause.fact("halts", Amount::Count(idles.count));
    let cause = cause.fact(
        format!("halts shorter than {} us", SHORT_IDLE_NS / 1000),
        Amount::Count(idles.short),
    );
    Some(cause.fact("cost of these halts", Amount::Time(idles.short_cost_ns)))
}

fn are_short(idles: &Idles) -> bool {
    idles.count >= MIN_EXITS && is_most(idles.short, idles.count)
}

/// The part of the cost of timers that short sleeps set.
pub(super) fn timers_ns(observed: &Observed<'_>, timers: &ExitSums) -> u64 {
    let Some(idles) = observed.exits.map(|exits| &exits.idles).filter(|idles| are_short(idles))
    else {
        return 0;
    };
    let set = idles.short.saturating_mul(TIMERS_OF_SLEEP).min(timers.count);
    let cost_ns = u128::from(timers.taken_ns(&observed.all_exits.recorded));
    let part_ns = cost_ns * u128::from(set) / u128::from(timers.count.max(1));
    u64::try_from(part_ns).unwrap_or(u64::MAX)
}

/// Polling costs the host, not the guest.
fn polling(observed: &Observed<'_>, idles: &Idles) -> Option<Cause> {
    let cost_ns = idles.lost_ns.saturating_add(idles.won_ns);
    let polls = idles.polls_won + idles.polls_lost;
    if polls < MIN_EXITS || !observed.matters(CauseId::HaltPollBurn, cost_ns) {
        return None;
    }
    let cause = observed.cause(CauseId::HaltPollBurn, cost_ns, 0.85);
    let cause = cause.fact("polls", Amount::Count(polls));
    Some(cause.fact("polls that ended in sleep", Amount::Count(idles.polls_lost)))
}

/// Without events of polling: halts that run in the kernel for much longer than other exits.
fn guessed_polling(observed: &Observed<'_>, places: &[Place]) -> Option<Cause> {
    let sums = |waiting: bool| {
        let places = places.iter().filter(|place| place.waiting == waiting);
        ExitSums::of_all(places.map(|place| &place.sums))
    };
    let (halts, others) = (sums(true), sums(false));
    let usual_ns = others.parts.kernel_ns / others.count.max(1);
    let mean_ns = halts.parts.kernel_ns / halts.count.max(1);
    let cost_ns = halts.parts.kernel_ns.saturating_sub(usual_ns.saturating_mul(halts.count));
    if halts.count < MIN_EXITS
        || mean_ns < usual_ns.saturating_mul(POLLED)
        || !observed.matters(CauseId::HaltPollBurn, cost_ns)
    {
        return None;
    }
    let cause = observed.cause(CauseId::HaltPollBurn, cost_ns, 0.7);
    let cause = cause.fact("halts", Amount::Count(halts.count));
    let cause = cause.fact("mean time that a halt runs in the kernel", Amount::Time(mean_ns));
    Some(cause.open("polling itself: record kvm:kvm_vcpu_wakeup"))
}
