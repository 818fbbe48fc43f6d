//! Activity of a guest while its vCPU ran it, from a naive search backwards from each time.

use std::collections::BTreeMap;

use super::flat::Event;
use super::naive_exits::guest_window;

/// Time by guest thread and activity: "irq", "idle" or "some".
pub(crate) type Ran = BTreeMap<(u64, &'static str), u64>;

/// The windows in which a host thread ran its guest, ascending.
fn windows(thread: u64, events: &[&Event<'_>]) -> Vec<(u64, u64)> {
    let is_exit = |event: &Event<'_>| event.is("kvm_exit") && event.ran() == thread;
    let exits = (0..events.len()).filter(|&at| is_exit(events[at]));
    let window = |at: usize| {
        let (guest_ns, before_ns) = guest_window(thread, &events[..at], events[at].ns);
        let end = events[at].ns - before_ns;
        (end - guest_ns, end)
    };
    exits.map(window).filter(|(from, to)| from < to).collect()
}

/// Overlays events of a guest's CPU on the windows of its vCPU; the guest's recording ends at `end_ns`.
pub(crate) fn ran(thread: u64, host: &[&Event<'_>], guest: &[&Event<'_>], end_ns: u64) -> Ran {
    let windows = windows(thread, host);
    let mut seen = 0;
    let mut ran = Ran::new();
    for (at, &(from, to)) in windows.iter().enumerate() {
        // Events up to the middle between two windows belong to the first one.
        let next = windows.get(at + 1).map_or(u64::MAX, |next| next.0);
        let mut now = from;
        while let Some(event) = guest.get(seen) {
            if event.ns > to && next - event.ns.min(next) < event.ns - to {
                break;
            }
            let then = event.ns.clamp(now, to);
            add(&mut ran, &guest[..seen], then - now);
            (now, seen) = (then, seen + 1);
        }
        // Nothing is known after the end of the guest's recording.
        add(&mut ran, &guest[..seen], to.min(end_ns).saturating_sub(now));
    }
    ran
}

/// Adds time after the last of these events.
fn add(ran: &mut Ran, seen: &[&Event<'_>], ns: u64) {
    let Some(last) = seen.last() else { return };
    let task = last.get("next_pid").unwrap_or_else(|| last.ran());
    let since_switch = seen.iter().rev().take_while(|event| !event.is("sched_switch"));
    let since_switch: Vec<_> = since_switch.collect();
    let count = |name: &str| since_switch.iter().filter(|event| event.is(name)).count();
    let in_handler = count("irq_handler_entry") > count("irq_handler_exit");
    let in_softirq = count("softirq_entry") > count("softirq_exit");
    let what = match task {
        _ if in_handler || in_softirq => "irq",
        0 => "idle",
        _ => "some",
    };
    if ns > 0 {
        *ran.entry((task, what)).or_default() += ns;
    }
}
