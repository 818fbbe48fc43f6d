//! Timers that the guest's kernel sets by exits, and the exits by which they expire.

use super::evidence::Place;
use super::measured::{Measured, texts};
use super::sums::ExitSums;
use super::{Advice, Amount, Fact};

/// IA32_TSC_DEADLINE; initial count and LVT entry of x2APIC's timer.
pub(crate) const TIMER_MSRS: [u64; 3] = [0x6e0, 0x838, 0x832];
/// The VMX preemption timer, with which KVM leaves the guest when its timer expires.
pub(crate) const DUE: &str = "PREEMPTION_TIMER";

pub(super) fn advise(measured: &Measured<'_>) -> Vec<Advice> {
    let is_set = |place: &Place| place.msr().is_some_and(|msr| TIMER_MSRS.contains(&msr));
    let is_due = |place: &Place| place.reason == DUE;
    let places: Vec<&Place> = measured.own_exits(|place| is_set(place) || is_due(place));
    let sums = |includes: &dyn Fn(&Place) -> bool| {
        ExitSums::of_all(places.iter().filter(|place| includes(place)).map(|place| &place.sums))
    };
    if !measured.matters(&sums(&|_| true)) {
        return Vec::new();
    }
    let (set, due) = (sums(&is_set).count, sums(&is_due).count);
    let Some(mut advice) = measured.on(&places) else { return Vec::new() };
    advice.title = "The guest sets timers frequently".to_owned();
    advice.why = "Each time the guest's kernel sets its timer, it writes a register, which exits; the timer's expiry causes \
                  another exit. Ticks, short sleeps and network timers in the guest add up to this rate."
        .to_owned();
    let mut helps = vec![
        "Use fewer timers in the guest: no tick on idle vCPUs (CONFIG_NO_HZ_IDLE), nohz_full=… for vCPUs that run one task, a \
         lower CONFIG_HZ, a larger timer slack",
        "Change guest programs that sleep or poll for microseconds: use longer intervals, or wait for an event",
    ];
    if due > 0 {
        helps.push("On the host: kvm.pi_inject_timer=1 with nohz_full and housekeeping CPUs, on processors with posted \
                    interrupts; timers then expire without an exit");
    }
    advice.helps = texts(&helps);
    advice.evidence.push(Fact::new("timers set", Amount::Count(set)));
    if due > 0 {
        advice.evidence.push(Fact::new("timer expiries (PREEMPTION_TIMER)", Amount::Count(due)));
    }
    vec![advice]
}
