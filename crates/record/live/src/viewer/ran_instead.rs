//! Threads that ran while a VM's vCPUs waited for a CPU.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::{RanInstead, Vcpu};

/// Threads of one name that ran while vCPUs waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Runner {
    /// A VM, a thread name, the idle CPU, or unknown.
    pub(crate) who: String,
    pub(crate) time_ns: u64,
}

/// All threads that ran while these vCPUs waited, longest first, and the length of the waits. Unknown time comes last.
pub(crate) fn runners<'v>(vcpus: impl Iterator<Item = &'v Vcpu>) -> (Vec<Runner>, u64) {
    let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
    let (mut known_ns, mut waited_ns) = (0_u64, 0_u64);
    for vcpu in vcpus {
        waited_ns = waited_ns.saturating_add(vcpu.waits.time_ns);
        for ran in &vcpu.ran_instead {
            known_ns = known_ns.saturating_add(ran.time_ns);
            let sum = by_name.entry(who(ran)).or_default();
            *sum = sum.saturating_add(ran.time_ns);
        }
    }
    let to_runner = |(who, time_ns)| Runner { who, time_ns };
    let mut runners: Vec<Runner> = by_name.into_iter().map(to_runner).collect();
    runners.sort_by_key(|runner| Reverse(runner.time_ns));
    let unknown_ns = waited_ns.saturating_sub(known_ns);
    if unknown_ns > 0 {
        runners.push(Runner { who: "not known".to_owned(), time_ns: unknown_ns });
    }
    (runners, waited_ns)
}

/// A thread of a VM has the VM's name, others have their own.
fn who(ran: &RanInstead) -> String {
    match (&ran.vm, &ran.name) {
        (Some(vm), _) => format!("VM {vm}"),
        (None, _) if ran.thread == 0 => "idle CPU".to_owned(),
        (None, Some(name)) => name.clone(),
        (None, None) => format!("thread {}", ran.thread),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{States, Sums};

    fn ran(thread: u32, name: Option<&str>, vm: Option<&str>, time_ns: u64) -> RanInstead {
        RanInstead {
            thread,
            process: thread,
            name: name.map(str::to_owned),
            vm: vm.map(str::to_owned),
            time_ns,
        }
    }

    fn vcpu(waited_ns: u64, ran_instead: Vec<RanInstead>) -> Vcpu {
        Vcpu {
            vm: "web".into(),
            process: 1,
            vcpu: Some(0),
            thread: 2,
            gone: false,
            states: States::default(),
            waits: Sums { time_ns: waited_ns, ..Sums::default() },
            ran_instead,
        }
    }

    #[test]
    fn threads_of_a_name_or_a_vm_count_together_and_the_rest_is_not_known() {
        let vcpus = [
            vcpu(1000, vec![ran(8, Some("cc1"), None, 300), ran(0, Some("swapper/1"), None, 50)]),
            vcpu(
                900,
                vec![
                    ran(9, Some("cc1"), None, 400),
                    ran(10, Some("CPU 0/KVM"), Some("db"), 500),
                    ran(11, None, None, 1),
                ],
            ),
        ];
        let (runners, waited_ns) = runners(vcpus.iter());
        let shown: Vec<_> =
            runners.iter().map(|runner| (runner.who.as_str(), runner.time_ns)).collect();
        let expected =
            [("cc1", 700), ("VM db", 500), ("idle CPU", 50), ("thread 11", 1), ("not known", 649)];
        assert_eq!((shown, waited_ns), (expected.to_vec(), 1900));
    }
}
