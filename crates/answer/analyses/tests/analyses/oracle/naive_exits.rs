//! Exits and their parts from a naive search backwards from each time.

use super::flat::Event;

/// State of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Kernel,
    User,
    Runnable,
    Blocked,
}

/// Sums per group of exits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) count: u64,
    pub(crate) paired: u64,
    pub(crate) time_ns: u64,
    pub(crate) kernel_ns: u64,
    pub(crate) user_ns: u64,
    pub(crate) runnable_ns: u64,
    pub(crate) blocked_ns: u64,
    pub(crate) halt_poll_ns: u64,
    pub(crate) by_kernel: u64,
    pub(crate) by_user: u64,
    pub(crate) by_l1: u64,
    pub(crate) poll_unknown: u64,
    pub(crate) before_exit_ns: u64,
    pub(crate) guest_ns: u64,
}

impl Sums {
    pub(crate) fn add(&mut self, exit: &Exit) {
        let sums = &exit.sums;
        for (sum, more) in [
            (&mut self.count, sums.count),
            (&mut self.paired, sums.paired),
            (&mut self.time_ns, sums.time_ns),
            (&mut self.kernel_ns, sums.kernel_ns),
            (&mut self.user_ns, sums.user_ns),
            (&mut self.runnable_ns, sums.runnable_ns),
            (&mut self.blocked_ns, sums.blocked_ns),
            (&mut self.halt_poll_ns, sums.halt_poll_ns),
            (&mut self.by_kernel, sums.by_kernel),
            (&mut self.by_user, sums.by_user),
            (&mut self.by_l1, sums.by_l1),
            (&mut self.poll_unknown, sums.poll_unknown),
            (&mut self.before_exit_ns, sums.before_exit_ns),
            (&mut self.guest_ns, sums.guest_ns),
        ] {
            *sum += more;
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Exit {
    pub(crate) thread: u64,
    pub(crate) vcpu_id: Option<u64>,
    pub(crate) level: u8,
    pub(crate) code: String,
    /// The code injected into level 1.
    pub(crate) injected_as: Option<u64>,
    /// `kvm_nested_vmenter` occurred before the next entry.
    pub(crate) enters_level_two: bool,
    /// Sums of this exit alone.
    pub(crate) sums: Sums,
}

/// The exits of one thread, from its events.
pub(crate) fn exits_of(thread: u64, events: &[&Event<'_>]) -> Vec<Exit> {
    let mut exits = Vec::new();
    let mut level_two_runs = false;
    for (at, event) in events.iter().enumerate() {
        if !event.is("kvm_exit") {
            continue;
        }
        // Up to the thread's next entry, next exit or end.
        let ends = |event: &Event<'_>| {
            event.ran() == thread
                && ["kvm_entry", "kvm_exit", "sched_process_exit"].iter().any(|name| event.is(name))
        };
        let end = events[at + 1..].iter().position(|event| ends(event)).map(|more| at + 1 + more);
        let span = &events[at..end.map_or(events.len(), |end| end + 1)];
        let paired = end.is_some_and(|end| events[end].is("kvm_entry"));
        exits.push(exit(thread, &events[..at], span, paired, &mut level_two_runs));
    }
    exits
}

/// One exit: `span` goes from `kvm_exit` to the event that ends it.
fn exit(
    thread: u64,
    before: &[&Event<'_>],
    span: &[&Event<'_>],
    paired: bool,
    level_two_runs: &mut bool,
) -> Exit {
    let position_of =
        |name: &str| span.iter().position(|event| event.is(name) && event.ran() == thread);
    let enters = position_of("kvm_nested_vmenter");
    let injects = position_of("kvm_nested_vmexit_inject");
    // An injection after an enter reverts the enter: it reflects no hardware exit.
    let takes_back = enters.is_some() && injects > enters;
    let injected = injects.filter(|_| !takes_back).map(|at| span[at]);
    let of_level_two =
        position_of("kvm_nested_vmexit").is_some() || injected.is_some() || *level_two_runs;
    *level_two_runs = injects.is_none() && (enters.is_some() || of_level_two);

    let mut sums = Sums { count: 1, ..Sums::default() };
    (sums.guest_ns, sums.before_exit_ns) = guest_window(thread, before, span[0].ns);
    if paired {
        sums.paired = 1;
        sums.time_ns = span[span.len() - 1].ns - span[0].ns;
        parts(thread, span, &mut sums);
        if injected.is_some() {
            sums.by_l1 = 1;
        } else if position_of("kvm_userspace_exit").is_some() {
            sums.by_user = 1;
        } else {
            sums.by_kernel = 1;
        }
    }
    Exit {
        thread,
        vcpu_id: span.iter().chain(before).find_map(|event| event.get("vcpu_id")),
        level: if of_level_two { 2 } else { 1 },
        code: code(span[0]),
        injected_as: injected
            .map(|event| event.get("exit_reason").or_else(|| event.get("exit_code")).unwrap()),
        enters_level_two: enters.is_some(),
        sums,
    }
}

fn code(exit: &Event<'_>) -> String {
    match (exit.get("exit_reason"), exit.get("ret"), exit.get("esr_ec")) {
        (Some(reason), _, _) => reason.to_string(),
        (None, Some(ret), Some(class)) => format!("{ret}:{class}"),
        _ => panic!("an exit without a code: {exit:?}"),
    }
}

/// Guest time since the last entry, and host time between the guest and this exit.
pub(crate) fn guest_window(thread: u64, before: &[&Event<'_>], exit_ns: u64) -> (u64, u64) {
    let last =
        |name: &str| before.iter().rposition(|event| event.is(name) && event.ran() == thread);
    let Some(entry) = last("kvm_entry") else { return (0, 0) };
    if last("kvm_exit").is_some_and(|exit| exit > entry) {
        return (0, 0);
    }
    let host = before[entry..].iter().find(|event| is_host_work(thread, event));
    let host_ns = host.map_or(exit_ns, |event| event.ns);
    (host_ns - before[entry].ns, exit_ns - host_ns)
}

/// Whether an event is an interrupt, softirq, timer or scheduler event in the thread's context.
fn is_host_work(thread: u64, event: &Event<'_>) -> bool {
    let host = ["irq", "irq_vectors", "timer", "sched", "ipi", "workqueue", "rcu", "napi", "net"];
    let switch = event.leaves(thread) || event.resumes(thread);
    switch || (event.ran() == thread && host.contains(&event.format.system()))
}

/// Attributes each interval between two events of the span to a part.
fn parts(thread: u64, span: &[&Event<'_>], sums: &mut Sums) {
    let pieces: Vec<(u64, u64, State)> = (1..span.len())
        .map(|at| (span[at - 1].ns, span[at].ns, state(thread, &span[..at])))
        .collect();
    for &(from, to, state) in &pieces {
        *match state {
            State::Kernel => &mut sums.kernel_ns,
            State::User => &mut sums.user_ns,
            State::Runnable => &mut sums.runnable_ns,
            State::Blocked => &mut sums.blocked_ns,
        } += to - from;
    }
    let mut since = 0;
    for at in 0..span.len() {
        if span[at].is("kvm_vcpu_wakeup") && span[at].ran() == thread {
            match polled_until(thread, &span[since..at], &pieces[since..at], span[at]) {
                Some((from, until)) => {
                    let polled = kernel_within(&pieces[since..at], from, until);
                    sums.kernel_ns -= polled;
                    sums.halt_poll_ns += polled;
                }
                None => sums.poll_unknown = 1,
            }
            since = at;
        }
    }
}

/// State of the thread after the last event of `seen`, which starts with its exit.
fn state(thread: u64, seen: &[&Event<'_>]) -> State {
    let switch = seen.iter().rposition(|event| event.leaves(thread) || event.resumes(thread));
    if let Some(at) = switch
        && seen[at].leaves(thread)
    {
        let sleeps = seen[at].get("prev_state").unwrap() & 0xff != 0;
        let woken = seen[at..].iter().any(|event| event.wakes(thread));
        return if sleeps && !woken { State::Blocked } else { State::Runnable };
    }
    let thread_events: Vec<_> = seen.iter().filter(|event| event.ran() == thread).collect();
    let to_user = thread_events.iter().rposition(|event| event.is("kvm_userspace_exit"));
    match to_user {
        Some(at) if !thread_events[at..].iter().any(|event| is_return(event)) => State::User,
        _ => State::Kernel,
    }
}

fn is_return(event: &Event<'_>) -> bool {
    (event.is("kvm_fpu") && event.get("load") == Some(1))
        || event.is("kvm_timer_restore_state")
        || (event.is("sys_enter_ioctl") && event.get("cmd") == Some(0xae80))
}

/// Start and end of polling before `wakeup`; `None` if unknown.
fn polled_until(
    thread: u64,
    seen: &[&Event<'_>],
    pieces: &[(u64, u64, State)],
    wakeup: &Event<'_>,
) -> Option<(u64, u64)> {
    let from = wakeup.ns.saturating_sub(wakeup.get("ns").unwrap());
    if wakeup.get("waited") == Some(0) {
        return Some((from, wakeup.ns));
    }
    // A switch away ends the interval before it.
    let fell_asleep = (1..seen.len())
        .filter(|&at| seen[at].leaves(thread) && seen[at].get("prev_state").unwrap() & 0xff != 0)
        .filter(|&at| pieces[at - 1].2 == State::Kernel)
        .map(|at| seen[at].ns);
    let times: Vec<u64> = fell_asleep.collect();
    let until = times.iter().find(|&&ns| ns >= from).or(times.last());
    until.map(|&until| (from, until))
}

fn kernel_within(pieces: &[(u64, u64, State)], from: u64, until: u64) -> u64 {
    pieces
        .iter()
        .filter(|(_, _, state)| *state == State::Kernel)
        .map(|&(start, end, _)| end.min(until).saturating_sub(start.max(from)))
        .sum()
}
