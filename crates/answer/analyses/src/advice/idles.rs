//! Short idles without halt polling: the vCPU sleeps and is woken at once.

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
    advice.title = "Idles are short, and the host doesn't poll for their end".to_owned();
    advice.why = "The guest halts and has work again within the time for which KVM could poll. Without polling each of these idles \
                  puts the vCPU's thread to sleep and wakes it, which costs more than the wait and delays the guest."
        .to_owned();
    advice.helps = texts(&[
        "Host: echo 200000 > /sys/module/kvm/parameters/halt_poll_ns, where CPUs are free to be polled on",
        "Guest: cpuidle_haltpoll with the haltpoll governor (guest_halt_poll_ns): it polls without an exit",
        "CPUs that the VM has to itself: -overcommit cpu-pm=on, and the guest's idle doesn't exit at all",
    ]);
    advice.evidence = vec![
        Fact::new("idles", Amount::Count(idles.count)),
        Fact::new(format!("of them below {} us", SHORT_IDLE_NS / 1000), Amount::Count(idles.short)),
        Fact::new("polls of the host", Amount::Count(polled)),
        Fact::new("cost of the short ones", Amount::Time(idles.short_cost_ns)),
    ];
    advice.saving_at_most_ns = idles.short_cost_ns;
    advice.saving_of = SavingOf::Cost;
    vec![advice]
}
