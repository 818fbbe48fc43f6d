//! vCPUs that spin for a lock while other vCPUs of their VM wait for a CPU.

use super::evidence::Place;
use super::measured::{Measured, texts};
use super::sums::ExitSums;
use super::thresholds::matters;
use super::{Advice, Amount, Fact};

/// Exits by which the processor reports a spinning guest.
pub(crate) const SPINS: [&str; 2] = ["PAUSE_INSTRUCTION", "pause"];

/// Spinning alone can mean that a lock is held for long; together with run-queue waits, its holder probably has no
/// CPU.
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
    advice.title = "vCPUs spin while other vCPUs of the VM wait for a CPU".to_owned();
    advice.why = "A vCPU that spins on a lock exits after a long series of PAUSE instructions. Other vCPUs of this VM wait in \
                  the run queue, so the lock holder probably has no CPU: there are more vCPUs than CPUs for them."
        .to_owned();
    advice.helps = texts(&[
        "Use fewer vCPUs or more CPUs, so that all vCPUs can run at the same time",
        "Use -cpu …,+kvm-pv-unhalt,+kvm-steal-time and a guest kernel with CONFIG_PARAVIRT_SPINLOCKS: waiters then halt instead \
         of spinning",
        "Use -cpu …,+kvm-pv-tlb-flush,+kvm-pv-ipi: a vCPU then does not spin until other vCPUs have flushed their TLBs",
        "If the exits cost more than the spinning, tune ple_gap and ple_window of kvm_intel or kvm_amd",
    ]);
    advice.evidence.push(Fact::new("run-queue wait", Amount::Time(waited_ns)));
    vec![advice]
}

impl Measured<'_> {
    /// Run-queue wait of the vCPUs during exits.
    pub(super) fn waited_ns(&self) -> u64 {
        let waits = self.evidence.places.iter().map(|place| place.sums.parts.runnable_ns);
        waits.fold(0, u64::saturating_add)
    }
}
