//! Calls of synthetic kernels, and calls of real kernels compared with counts and durations from another program.

mod guest_calls;
mod hooks;
mod losses;
mod random;
mod real;
mod recount;

use crate::machinery::Machinery;
use analyses::calls::{CallQuestion, Function, RecordedCalls, calls};

const OUTER: u64 = 0x1000;
const INNER: u64 = 0x2000;
const SYMBOLS: &str = "1000 T outer\n2000 t inner\t[kvm]\n3000 T last\n";

/// A synthetic kernel whose functions are traced.
struct Kernel(Machinery);

impl Kernel {
    fn new() -> Self {
        let mut machine = Machinery::new("local");
        machine.kallsyms = SYMBOLS.to_owned();
        machine.cmdlines = "7 worker\n".to_owned();
        Self(machine)
    }

    fn enter(&mut self, cpu: u32, ns: u64, thread: i32, func: u64, depth: u64) {
        let fields = [("func", func), ("depth", depth)];
        self.0.event(cpu, ns, thread, "funcgraph_entry", &fields);
    }

    /// A return with a measured duration that equals the time between the events.
    fn leave(&mut self, cpu: u32, ns: u64, thread: i32, func: u64, depth: u64, from_ns: u64) {
        self.measured(cpu, ns, thread, [func, depth, from_ns, ns]);
    }

    fn measured(&mut self, cpu: u32, ns: u64, thread: i32, call: [u64; 4]) {
        let [func, depth, calltime, rettime] = call;
        let fields = [
            ("func", func),
            ("depth", depth),
            ("overrun", 0),
            ("calltime", calltime),
            ("rettime", rettime),
        ];
        self.0.event(cpu, ns, thread, "funcgraph_exit", &fields);
    }

    fn switch(&mut self, cpu: u32, ns: u64, from: i32, to: i32) {
        let fields = [("prev_pid", from as u64), ("next_pid", to as u64)];
        self.0.event(cpu, ns, from, "sched_switch", &fields);
    }

    fn calls(self) -> RecordedCalls {
        calls(&self.0.recording(), &CallQuestion::default(), &mut (), &|_| ())
    }
}

fn named<'c>(calls: &'c RecordedCalls, name: &str) -> &'c Function {
    calls.functions.iter().find(|function| function.name.as_deref() == Some(name)).unwrap()
}

/// Count, total time, self time and off-CPU time.
fn numbers(function: &Function) -> [u64; 4] {
    [function.count, function.total_ns, function.self_ns, function.off_cpu_ns]
}

#[test]
fn time_of_callees_and_off_the_cpu_is_not_the_callers() {
    let mut kernel = Kernel::new();
    kernel.enter(0, 1_000, 7, OUTER, 0);
    kernel.enter(0, 1_100, 7, INNER, 1);
    kernel.switch(0, 1_150, 7, 8);
    kernel.switch(1, 1_950, 9, 7);
    kernel.leave(1, 2_000, 7, INNER, 1, 1_100);
    kernel.leave(1, 2_300, 7, OUTER, 0, 1_000);
    kernel.switch(1, 2_400, 7, 9);
    let calls = kernel.calls();
    assert_eq!(numbers(named(&calls, "outer")), [1, 1_300, 400, 0]);
    assert_eq!(numbers(named(&calls, "inner")), [1, 900, 100, 800]);
    assert_eq!(named(&calls, "inner").title(), "inner [kvm]");
    assert!(calls.switches);
    let thread = calls.threads.iter().find(|thread| thread.thread == 7).unwrap();
    assert_eq!(thread.name.as_deref(), Some("worker"));
    assert_eq!((thread.traced_ns, thread.self_ns, thread.off_cpu_ns), (1_400, 500, 800));
    assert_eq!(thread.unaccounted_ns(), 100);
}

#[test]
fn a_function_that_calls_itself_takes_its_time_once() {
    let mut kernel = Kernel::new();
    for depth in 0..3 {
        kernel.enter(0, 1_000 + depth * 10, 7, OUTER, depth);
    }
    for depth in (0..3).rev() {
        kernel.leave(0, 1_100 - depth * 10, 7, OUTER, depth, 1_000 + depth * 10);
    }
    let calls = kernel.calls();
    assert_eq!(numbers(named(&calls, "outer")), [3, 100, 100, 0]);
    assert_eq!(calls.tree.nodes().len(), 4);
}

#[test]
fn a_kernel_that_leaves_sleep_out_of_its_times_gives_the_same() {
    let mut kernel = Kernel::new();
    kernel.enter(0, 1_000, 7, OUTER, 0);
    kernel.switch(0, 1_200, 7, 8);
    kernel.switch(0, 9_200, 8, 7);
    // 500 ns on the CPU: the kernel shifted the start time of the call.
    kernel.measured(0, 9_500, 7, [OUTER, 0, 9_000, 9_500]);
    assert_eq!(numbers(named(&kernel.calls(), "outer")), [1, 8_500, 500, 8_000]);
}

/// Under emulation, the kernel writes the event of a return long after it read the clock.
#[test]
fn late_events_do_not_lengthen_what_the_kernel_measured() {
    let mut kernel = Kernel::new();
    kernel.enter(0, 1_000, 7, OUTER, 0);
    kernel.switch(0, 1_200, 7, 8);
    kernel.switch(0, 1_300, 8, 7);
    kernel.measured(0, 2_000, 7, [OUTER, 0, 990, 1_800]);
    assert_eq!(numbers(named(&kernel.calls(), "outer")), [1, 810, 710, 100]);
}

/// An interrupt between the tracer's clock reading and its event.
#[test]
fn interrupts_of_the_tracer_itself_are_put_where_their_time_is() {
    let mut kernel = Kernel::new();
    let last = 0x3000;
    kernel.enter(0, 1_000, 7, OUTER, 0);
    // Inside the following call, whose event comes later.
    kernel.enter(0, 1_110, 7, last, 2);
    kernel.measured(0, 1_160, 7, [last, 2, 1_110, 1_150]);
    kernel.enter(0, 1_200, 7, INNER, 1);
    // After the measured time, and before the event of its return.
    kernel.enter(0, 1_510, 7, last, 2);
    kernel.measured(0, 1_560, 7, [last, 2, 1_510, 1_550]);
    kernel.measured(0, 1_600, 7, [INNER, 1, 1_100, 1_500]);
    kernel.measured(0, 2_000, 7, [OUTER, 0, 1_000, 2_000]);
    let calls = kernel.calls();
    assert_eq!(numbers(named(&calls, "last")), [2, 80, 80, 0]);
    assert_eq!(numbers(named(&calls, "inner")), [1, 400, 360, 0]);
    assert_eq!(numbers(named(&calls, "outer")), [1, 1_000, 560, 0]);
}

#[test]
fn what_began_before_or_ends_after_is_counted_apart() {
    let mut kernel = Kernel::new();
    kernel.enter(0, 1_100, 7, INNER, 1);
    kernel.leave(0, 1_200, 7, INNER, 1, 1_100);
    kernel.leave(0, 1_300, 7, OUTER, 0, 500);
    kernel.enter(0, 1_400, 7, OUTER, 0);
    let calls = kernel.calls();
    let outer = named(&calls, "outer");
    assert_eq!((outer.count, outer.without_call, outer.without_return), (0, 1, 1));
    assert_eq!(numbers(named(&calls, "inner")), [1, 100, 100, 0]);
    assert_eq!(calls.interrupted, 0);
    assert_eq!(calls.sum(|function| function.events), 4);
}

#[test]
fn idle_threads_of_cpus_are_several() {
    let mut kernel = Kernel::new();
    kernel.enter(0, 1_000, 0, OUTER, 0);
    kernel.enter(1, 1_010, 0, OUTER, 0);
    kernel.leave(0, 1_100, 0, OUTER, 0, 1_000);
    kernel.leave(1, 1_200, 0, OUTER, 0, 1_010);
    let calls = kernel.calls();
    assert_eq!(numbers(named(&calls, "outer")), [2, 290, 290, 0]);
    let cpus: Vec<_> = calls.threads.iter().map(|thread| thread.idle_cpu).collect();
    assert_eq!(cpus, [Some(0), Some(1)]);
}

#[test]
fn entries_with_return_addresses_and_unknown_functions_count() {
    let mut kernel = Kernel::new();
    let fields = [("func", 0xabc), ("depth", 0), ("retaddr", 0x1008)];
    kernel.0.event(0, 1_000, 7, "funcgraph_retaddr_entry", &fields);
    kernel.leave(0, 1_050, 7, 0xabc, 0, 1_000);
    let calls = kernel.calls();
    assert_eq!(calls.functions[0].title(), "0xabc");
    assert_eq!(numbers(&calls.functions[0]), [1, 50, 50, 0]);
}

#[test]
fn the_function_tracer_has_counts_and_callers() {
    let mut kernel = Kernel::new();
    for (at, parent) in [0x1010_u64, 0x1020, 0x3000].into_iter().enumerate() {
        let fields = [("ip", INNER), ("parent_ip", parent)];
        kernel.0.event(0, 1_000 + at as u64, 7, "function", &fields);
    }
    let calls = kernel.calls();
    let inner = named(&calls, "inner");
    assert_eq!(numbers(inner), [3, 0, 0, 0]);
    let callers: Vec<(String, u64)> = inner
        .callers
        .iter()
        .map(|&(caller, count)| (calls.functions[caller as usize].title(), count))
        .collect();
    assert_eq!(callers, [("outer".to_owned(), 2), ("last".to_owned(), 1)]);
}

#[test]
fn stacks_beyond_the_bound_are_counted_together() {
    let mut kernel = Kernel::new();
    for at in 0..20 {
        kernel.enter(0, 1_000 + at * 10, 7, 0x9000 + at * 0x100, 0);
        kernel.leave(0, 1_005 + at * 10, 7, 0x9000 + at * 0x100, 0, 1_000 + at * 10);
    }
    let question = CallQuestion { most_stacks: 6, ..CallQuestion::default() };
    let calls = calls(&kernel.0.recording(), &question, &mut (), &|_| ());
    assert_eq!((calls.tree.nodes().len(), calls.tree.rest()), (7, 15));
    assert_eq!(calls.functions.len(), 20);
    assert_eq!(calls.sum(|function| function.self_ns), 100);
}

#[test]
fn calls_of_vcpus_that_are_left_out_are_not_read() {
    let mut kernel = Kernel::new();
    for (thread, func) in [(7, OUTER), (8, INNER)] {
        let from_ns = 1000 * thread as u64;
        kernel.enter(0, from_ns, thread, func, 0);
        kernel.leave(0, from_ns + 100, thread, func, 0, from_ns);
    }
    let mut recording = kernel.0.recording();
    recording.exclude_vcpus([7].into(), [].into());
    let calls = calls(&recording, &CallQuestion::default(), &mut (), &|_| ());
    let threads: Vec<u32> = calls.threads.iter().map(|thread| thread.thread).collect();
    assert_eq!(threads, [8]);
    assert_eq!(named(&calls, "inner").count, 1);
}
