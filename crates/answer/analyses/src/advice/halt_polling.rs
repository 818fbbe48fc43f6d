//! Halt polling that burns CPU for nothing: the vCPU sleeps in the end.

use super::measured::{Measured, texts};
use super::thresholds::{MIN_EXITS, a_third, is_most, matters};
use super::{About, Advice, Amount, Fact, SavingOf};

pub(super) fn advise(measured: &Measured<'_>) -> Vec<Advice> {
    let idles = &measured.evidence.idles;
    let recorded = measured.recorded;
    let polls = idles.polls_won + idles.polls_lost;
    // What the VM's vCPUs had of CPUs without polling, and with what was polled for nothing.
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
        title: "Halt polling mostly ends in sleep".to_owned(),
        why: "The host polls for work when the guest halts. Most of these polls found none, and the thread slept all the same: \
              the guest's idles are longer than the time for which it polls."
            .to_owned(),
        helps: texts(&[
            "Host: a smaller /sys/module/kvm/parameters/halt_poll_ns, 0 to stop it for VMs that start from then on; other threads get that time",
            "For this VM alone: the capability KVM_CAP_HALT_POLL, where the VMM sets it",
            "A guest that polls by itself (cpuidle_haltpoll) stops the host's polling for its vCPUs: not both",
        ]),
        evidence: vec![
            Fact::new("polls", Amount::Count(polls)),
            Fact::new("of them ended in sleep", Amount::Count(idles.polls_lost)),
            Fact::new("polled for those", Amount::Time(idles.lost_ns)),
            Fact::new("polled for the others", Amount::Time(idles.won_ns)),
            Fact::new(
                "of the time that the vCPUs had CPUs",
                Amount::Share(idles.lost_ns as f64 / on_cpu_ns.max(1) as f64),
            ),
        ],
        saving_at_least_ns: a_third(idles.lost_ns),
        // Who stops polling stops that which finds work, too.
        saving_at_most_ns: idles.lost_ns.saturating_add(idles.won_ns),
        saving_of: SavingOf::Polling,
        ..measured.about(About::HaltPolling)
    }]
}
