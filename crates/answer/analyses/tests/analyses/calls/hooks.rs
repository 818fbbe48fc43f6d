//! A kernel whose tracer is interrupted between its clock reading and its event. For any order of events, a
//! recount from the measured times gives the same result, and no thread's calls take longer than its traced time.

use proptest::prelude::*;

use super::recount::{Span, count_again, found};
use super::{INNER, Kernel, OUTER, named, numbers};

const THREAD: i32 = 7;

/// Max nested interrupts: softirq, interrupt and NMI.
const MAX_INTERRUPTS: usize = 3;

/// A kernel whose actions are determined by a sequence of numbers.
struct Interrupted<'c> {
    kernel: Kernel,
    choices: std::slice::Iter<'c, u8>,
    now_ns: u64,
    calls: Vec<(u64, Span)>,
    off_cpu: Vec<Span>,
    first_ns: u64,
}

impl Interrupted<'_> {
    fn choice(&mut self) -> u64 {
        self.choices.next().copied().map_or(0, u64::from)
    }

    fn pass(&mut self) {
        self.now_ns += 1 + self.choice() % 90;
    }

    /// One or two calls at `depth`, or none.
    fn interrupt(&mut self, depth: u64, interrupts: usize) {
        let choice = self.choice();
        if interrupts < MAX_INTERRUPTS && choice % 4 == 1 {
            for _ in 0..1 + choice / 4 % 2 {
                self.call(depth, interrupts + 1);
            }
        }
    }

    fn call(&mut self, depth: u64, interrupts: usize) {
        let func = 0x1_0000 + self.choice() % 5 * 0x1000;
        self.pass();
        let from_ns = self.now_ns;
        self.pass();
        // The kernel has pushed the call, and has not written its event yet.
        self.interrupt(depth + 1, interrupts);
        self.kernel.enter(0, self.now_ns, THREAD, func, depth);
        self.body(depth, interrupts);
        let to_ns = self.now_ns;
        self.pass();
        // The kernel has popped the call, and has not written its return event yet.
        self.interrupt(depth, interrupts);
        self.kernel.measured(0, self.now_ns, THREAD, [func, depth, from_ns, to_ns]);
        self.calls.push((func, (from_ns, to_ns)));
    }

    fn body(&mut self, depth: u64, interrupts: usize) {
        self.pass();
        loop {
            match self.choice() % 8 {
                1..=3 if depth < 12 => self.call(depth + 1, interrupts),
                4 if interrupts == 0 => self.sleep(),
                _ => break,
            }
        }
        self.pass();
    }

    fn sleep(&mut self) {
        let from_ns = self.now_ns;
        self.kernel.switch(0, from_ns, THREAD, 1);
        self.pass();
        self.kernel.switch(0, self.now_ns, 1, THREAD);
        self.off_cpu.push((from_ns, self.now_ns));
        self.pass();
    }
}

fn run(choices: &[u8]) -> Interrupted<'_> {
    let mut run = Interrupted {
        kernel: Kernel::new(),
        choices: choices.iter(),
        now_ns: 10_000,
        calls: Vec::new(),
        off_cpu: Vec::new(),
        first_ns: 0,
    };
    while run.choices.len() > 0 {
        run.call(0, 0);
    }
    run.first_ns = run.calls.iter().map(|(_, (from_ns, _))| *from_ns).min().unwrap_or(0);
    run
}

/// Any numbers, but mostly those for which [`Interrupted::interrupt`] makes two calls.
fn choice() -> impl Strategy<Value = u8> {
    prop_oneof![any::<u8>(), (0..32_u8).prop_map(|number| number * 8 + 5)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn interrupts_of_the_tracer_take_nothing_from_anyone(
        choices in prop::collection::vec(choice(), 1..400),
    ) {
        let Interrupted { kernel, calls: made, off_cpu, first_ns, now_ns, .. } = run(&choices);
        let calls = kernel.calls();
        prop_assert_eq!(calls.sum(|function| function.without_call + function.without_return), 0);
        prop_assert_eq!(found(&calls), count_again(&made, &off_cpu));
        let thread = calls.threads.iter().find(|thread| thread.thread == THREAD as u32).unwrap();
        let known_ns = thread.self_ns + thread.off_cpu_ns;
        prop_assert_eq!(known_ns + thread.unaccounted_ns(), thread.traced_ns);
        prop_assert!(thread.traced_ns <= now_ns - first_ns, "{} {}", thread.traced_ns, now_ns - first_ns);
        // The tree's nodes have all of the time, though maybe under other callers.
        let nodes = calls.tree.nodes();
        let all_ns: u64 = nodes.iter().map(|node| node.self_ns + node.off_cpu_ns).sum();
        prop_assert_eq!(all_ns, calls.sum(|function| function.self_ns + function.off_cpu_ns));
    }
}

/// From a recording of KVM on AMD: the timer interrupt comes after `outer` has returned, and starts at its depth.
#[test]
fn a_call_stays_open_until_its_return_is_written() {
    let mut kernel = Kernel::new();
    let (last, caller) = (0x3000, 0x4000);
    kernel.enter(0, 1_000, THREAD, caller, 0);
    kernel.enter(0, 1_100, THREAD, OUTER, 1);
    kernel.enter(0, 1_200, THREAD, last, 2);
    kernel.leave(0, 1_300, THREAD, last, 2, 1_200);
    // `outer` lasted from 1,100 to 6,380; then the interrupt came.
    kernel.enter(0, 6_400, THREAD, INNER, 1);
    kernel.leave(0, 6_600, THREAD, INNER, 1, 6_400);
    kernel.measured(0, 6_700, THREAD, [OUTER, 1, 1_100, 6_380]);
    kernel.leave(0, 7_000, THREAD, caller, 0, 1_000);
    let calls = kernel.calls();
    assert_eq!(calls.sum(|function| function.without_call + function.without_return), 0);
    assert_eq!(numbers(named(&calls, "outer")), [1, 5_280, 5_180, 0]);
    assert_eq!(numbers(named(&calls, "inner")), [1, 200, 200, 0]);
    let caller = calls.functions.iter().find(|function| function.address == caller).unwrap();
    assert_eq!(numbers(caller), [1, 6_000, 520, 0]);
}

/// Time in callees of a call without a return is counted once: not also in the caller's self time.
#[test]
fn the_calls_of_one_without_a_return_are_not_its_callers_own_time() {
    let mut kernel = Kernel::new();
    kernel.enter(0, 1_000, THREAD, OUTER, 0);
    kernel.enter(0, 1_100, THREAD, INNER, 1);
    kernel.enter(0, 1_200, THREAD, 0x3000, 2);
    kernel.leave(0, 1_900, THREAD, 0x3000, 2, 1_200);
    kernel.leave(0, 2_000, THREAD, OUTER, 0, 1_000);
    let calls = kernel.calls();
    assert_eq!(named(&calls, "inner").without_return, 1);
    assert_eq!(numbers(named(&calls, "outer")), [1, 1_000, 300, 0]);
    let thread = calls.threads.iter().find(|thread| thread.thread == THREAD as u32).unwrap();
    assert_eq!((thread.self_ns, thread.traced_ns, thread.unaccounted_ns()), (1_000, 1_000, 0));
}
