//! Short idle times without halt polling: the vCPU sleeps and is woken immediately.

use super::evidence::Place;
use super::measured::{Measured, texts};
use super::thresholds::{MIN_EXITS, SHORT_IDLE_NS, is_most, matters};
use super::{Advice, Amount, Fact, SavingOf};

pub(super) fn advise(measured: &Measured<'_>) -> Vec<Advice> {
    let idles = &measured.evidence.idles;
    let recorded = measured.recorded;
    let polled = idles.polls_won + idles.polls_lost;
    let is_known = recorded.off_cpu && recorded.wake && recorded.halt_poll && idles.unknown == 0;
    if !is_known
        || polled > 0
        || idles.count < MIN_EXITS
        || !is_most(idles.short, idles.count)
        || !matters(idles.short_cost_ns, measured.running_ns)
    {
        return Vec::new();
    }
    let waiting: Vec<&Place> = measured.own_exits(|place| place.waiting);
    let Some(mut advice) = measured.on(&waiting) else { return Vec::new() };
    advice.title = "The guest idles briefly and the host does not poll".to_owned();
    advice.why = "The guest halts and gets new work within the time that KVM could poll. Without polling, each of these halts \
                  puts the vCPU's thread to sleep and wakes it again, which costs more than the wait and delays the guest."
        .to_owned();
    advice.helps = texts(&[
        "On the host: echo 200000 > /sys/module/kvm/parameters/halt_poll_ns, if CPUs have time for polling",
        "In the guest: cpuidle_haltpoll with the haltpoll governor (guest_halt_poll_ns), which polls without an exit",
        "If the VM has dedicated CPUs: -overcommit cpu-pm=on, so that the idle guest does not exit at all",
    ]);
    advice.evidence = vec![
        Fact::new("idles", Amount::Count(idles.count)),
        Fact::new(
            format!("exits shorter than {} us", SHORT_IDLE_NS / 1000),
            Amount::Count(idles.short),
        ),
        Fact::new("halt polls by the host", Amount::Count(polled)),
        Fact::new("cost of the short exits", Amount::Time(idles.short_cost_ns)),
    ];
    advice.saving_at_most_ns = idles.short_cost_ns;
    advice.saving_of = SavingOf::Cost;
    vec![advice]
}
