//! vCPUs that spin for a lock while others of their VM wait for a CPU.

use super::evidence::Place;
use super::measured::{Measured, texts};
use super::sums::ExitSums;
use super::thresholds::matters;
use super::{Advice, Amount, Fact};

/// Exits by which the processor reports a guest that spins.
const SPINS: [&str; 2] = ["PAUSE_INSTRUCTION", "pause"];

/// Spinning alone may be a lock that is held long; with waits in the run queue its holder has likely no CPU.
pub(super) fn advise(measured: &Measured<'_>) -> Vec<Advice> {
    let spins: Vec<&Place> = measured.own_exits(|place| SPINS.contains(&place.reason.as_str()));
    let sums = ExitSums::of_all(spins.iter().map(|place| &place.sums));
    let recorded = measured.recorded;
    let waited_ns = measured.waited_ns();
    let wanted_ns = measured.running_ns.saturating_add(waited_ns);
    let are_waits_known = recorded.off_cpu && recorded.wake;
    if !are_waits_known || !measured.matters(&sums) || !matters(waited_ns, wanted_ns) {
        return Vec::new();
    }
    let Some(mut advice) = measured.on(&spins) else { return Vec::new() };
    advice.title = "vCPUs spin while others of the VM wait for a CPU".to_owned();
    advice.why = "A vCPU that spins for a lock exits when it has executed PAUSE for long. As vCPUs of this VM also wait in the run \
                  queue, the one that holds the lock has likely no CPU: there are more vCPUs than CPUs for them."
        .to_owned();
    advice.helps = texts(&[
        "Fewer vCPUs, or more CPUs for them: as many as can run at the same time",
        "-cpu …,+kvm-pv-unhalt,+kvm-steal-time and a guest's kernel with CONFIG_PARAVIRT_SPINLOCKS: waiters halt in place of spinning",
        "-cpu …,+kvm-pv-tlb-flush,+kvm-pv-ipi: a vCPU doesn't spin for others to flush their TLBs",
        "The window of kvm_intel's or kvm_amd's ple_gap and ple_window, where exits cost more than the spinning",
    ]);
    advice.evidence.push(Fact::new("waited in the run queue", Amount::Time(waited_ns)));
    vec![advice]
}

impl Measured<'_> {
    /// What its vCPUs waited for CPUs during exits.
    pub(super) fn waited_ns(&self) -> u64 {
        let waits = self.evidence.places.iter().map(|place| place.sums.parts.runnable_ns);
        waits.fold(0, u64::saturating_add)
    }
}
