//! Random stacks of threads on two CPUs: parts add up, and totals equal a naive count.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::Kernel;

/// An action of a thread: call one of a few functions, return, or leave the CPU to another thread.
#[derive(Clone, Copy, Debug)]
enum Step {
    Call(u64),
    Return,
    Away(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u64..5).prop_map(Step::Call),
        4 => Just(Step::Return),
        1 => (1_u64..5_000).prop_map(Step::Away),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn parts_add_up(steps in prop::collection::vec((step(), 1_u64..300), 1..200)) {
        let mut kernel = Kernel::new();
        let (mut now_ns, mut cpu, mut off_ns) = (10_000, 0, 0);
        let mut stack: Vec<(u64, u64)> = Vec::new();
        // By function: number of calls, and the total time of outermost calls.
        let mut naive: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut roots_ns = 0;
        kernel.switch(0, now_ns, 1, 7);
        for (step, pause_ns) in steps {
            now_ns += pause_ns;
            match step {
                Step::Call(which) if stack.len() < 30 => {
                    let func = 0x1_0000 + which * 0x1000;
                    kernel.enter(cpu, now_ns, 7, func, stack.len() as u64);
                    stack.push((func, now_ns));
                }
                Step::Return if !stack.is_empty() => {
                    let (func, from_ns) = stack.pop().unwrap();
                    kernel.leave(cpu, now_ns, 7, func, stack.len() as u64, from_ns);
                    let (count, total_ns) = naive.entry(func).or_default();
                    *count += 1;
                    if stack.iter().all(|(other, _)| *other != func) {
                        *total_ns += now_ns - from_ns;
                    }
                    if stack.is_empty() {
                        roots_ns += now_ns - from_ns;
                    }
                }
                Step::Away(length_ns) => {
                    kernel.switch(cpu, now_ns, 7, 1);
                    cpu = 1 - cpu;
                    now_ns += length_ns;
                    off_ns += length_ns;
                    kernel.switch(cpu, now_ns, 1, 7);
                }
                _ => {}
            }
        }
        let open = stack.len() as u64;
        let calls = kernel.calls();
        let found: BTreeMap<u64, (u64, u64)> = calls
            .functions
            .iter()
            .filter(|function| function.count > 0)
            .map(|function| (function.address, (function.count, function.total_ns)))
            .collect();
        prop_assert_eq!(found, naive);
        prop_assert_eq!(calls.sum(|function| function.without_return), open);
        let thread = calls.threads.iter().find(|thread| thread.thread == 7).unwrap();
        prop_assert_eq!(thread.off_cpu_ns, off_ns);
        prop_assert_eq!(thread.self_ns, calls.sum(|function| function.self_ns));
        if open == 0 {
            let in_calls_ns = calls.sum(|function| function.self_ns + function.off_cpu_ns);
            prop_assert_eq!(in_calls_ns, roots_ns);
        }
        // The time of each tree node includes its callees.
        let nodes = calls.tree.nodes();
        let mut inside_ns: Vec<u64> =
            nodes.iter().map(|node| node.self_ns + node.off_cpu_ns).collect();
        for node in nodes {
            if let Some(parent) = node.parent {
                inside_ns[parent as usize] += node.total_ns;
            }
        }
        for (node, inside_ns) in nodes.iter().zip(inside_ns) {
            prop_assert!(node.count == 0 || open > 0 || node.total_ns == inside_ns);
        }
    }
}
