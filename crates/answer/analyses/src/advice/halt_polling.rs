//! Halt polling that wastes CPU time: the vCPU sleeps afterwards.

use super::measured::{Measured, texts};
use super::thresholds::{MIN_EXITS, a_third, is_most, matters};
use super::{About, Advice, Amount, Fact, SavingOf};

pub(super) fn advise(measured: &Measured<'_>) -> Vec<Advice> {
    let idles = &measured.evidence.idles;
    let recorded = measured.recorded;
    let polls = idles.polls_won + idles.polls_lost;
    // CPU time of the VM's vCPUs without successful polling, and with unsuccessful polling.
    let on_cpu_ns = measured.running_ns.saturating_add(idles.lost_ns);
    let is_known = recorded.off_cpu && recorded.halt_poll && idles.unknown == 0;
    if !is_known
        || polls < MIN_EXITS
        || !is_most(idles.polls_lost, polls)
        || !matters(idles.lost_ns, on_cpu_ns)
    {
        return Vec::new();
    }
    vec![Advice {
        title: "Most halt polling finds no work".to_owned(),
        why: "When the guest halts, the host polls for work. Most of these polls found none and the thread slept anyway: the \
              guest's idle periods are longer than the polling time."
            .to_owned(),
        helps: texts(&[
            "On the host: reduce /sys/module/kvm/parameters/halt_poll_ns, or set it to 0 to disable polling for VMs that start \
             later; other threads can then use the time",
            "For this VM only: the capability KVM_CAP_HALT_POLL, if the VMM sets it",
            "If the guest polls by itself (cpuidle_haltpoll), the host stops polling for its vCPUs, so use only one of the two",
        ]),
        evidence: vec![
            Fact::new("polls", Amount::Count(polls)),
            Fact::new("polls that ended in sleep", Amount::Count(idles.polls_lost)),
            Fact::new("time in those polls", Amount::Time(idles.lost_ns)),
            Fact::new("time in the other polls", Amount::Time(idles.won_ns)),
            Fact::new(
                "share of the vCPUs' time on CPU",
                Amount::Share(idles.lost_ns as f64 / on_cpu_ns.max(1) as f64),
            ),
        ],
        saving_at_least_ns: a_third(idles.lost_ns),
        // Without polling, successful polls disappear as well.
        saving_at_most_ns: idles.lost_ns.saturating_add(idles.won_ns),
        saving_of: SavingOf::Polling,
        ..measured.about(About::HaltPolling)
    }]
}
