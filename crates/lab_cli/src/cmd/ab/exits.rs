//! Exits of this host's VMs while a workload runs, accumulated in the kernel as in `top`.

use std::io;

use experiment::{Count, RunOf, Watch};
use live::{Accounting, By, Interval, Limits, Row};
use timeline::VcpuActivity;

use super::exit_metrics::{ReasonSums, exit_metrics};

/// Counts the exits of all VMs or of one.
#[derive(Debug)]
pub(super) struct Exits {
    accounting: Accounting,
    vm: Option<String>,
}

impl Exits {
    pub(super) fn begin(vm: Option<&str>) -> live::Result<Self> {
        // The programs' CPU time is part of the workload's time on both sides; measuring it would increase it.
        let limits = Limits { own_cost: false, ..Limits::default() };
        Ok(Self { accounting: Accounting::begin(limits)?, vm: vm.map(str::to_owned) })
    }

    fn interval(&mut self) -> io::Result<Interval> {
        self.accounting.interval(By::Vm).map_err(io::Error::other)
    }
}

impl Watch for Exits {
    fn begin(&mut self, _: RunOf) -> io::Result<()> {
        // Discards the exits before the workload.
        self.interval().map(drop)
    }

    fn end(&mut self) -> io::Result<Vec<Count>> {
        let interval = self.interval()?;
        Ok(counts(&interval, self.vm.as_deref()))
    }
}

fn counts(interval: &Interval, vm: Option<&str>) -> Vec<Count> {
    let is_asked_for = |name: &str| vm.is_none_or(|vm| vm == name);
    let belongs_to_vm = |row: &&Row| row.vm.as_deref().is_none_or(is_asked_for);
    let vcpus = || interval.vcpus.iter().filter(|vcpu| is_asked_for(&vcpu.vm));
    let states = |wanted: &[VcpuActivity]| {
        let time_in_states =
            |vcpu: &live::Vcpu| wanted.iter().map(|state| vcpu.states.time_ns(*state)).sum::<u64>();
        vcpus().map(time_in_states).sum::<u64>()
    };
    let sums = interval.rows.iter().filter(belongs_to_vm).map(|row| ReasonSums {
        level: row.level,
        reason: &row.reason,
        waiting: row.waiting,
        count: row.sums.count,
        cost_ns: row.sums.cost_ns(),
    });
    let sums: Vec<ReasonSums<'_>> = sums.collect();
    let run_queue_ns = states(&[VcpuActivity::Preempted, VcpuActivity::Waiting]);
    exit_metrics(&sums, states(&[VcpuActivity::Guest]), run_queue_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use live::{States, Sums, Vcpu};
    use timeline::Parts;
    use timeline::arch::Isa;

    fn row(vm: &str, level: u8, reason: &str, waiting: bool, kernel_ns: u64) -> Row {
        let parts = Parts { kernel_ns, ..Parts::default() };
        Row {
            vm: Some(vm.to_owned()),
            vcpu: None,
            level,
            isa: Isa::Vmx,
            code: None,
            reason: reason.to_owned(),
            waiting,
            sums: Sums { count: 3, paired: 3, time_ns: kernel_ns, parts, ..Sums::default() },
        }
    }

    #[test]
    fn exits_of_the_vm_asked_for_are_metrics_by_reason() {
        let mut states = States::default();
        states.give(VcpuActivity::Guest, 50);
        states.give(VcpuActivity::Preempted, 7);
        let vcpu = |vm: &str| Vcpu {
            vm: vm.to_owned(),
            process: 1,
            vcpu: Some(0),
            thread: 2,
            states,
            ..Vcpu::default()
        };
        let interval = Interval {
            rows: vec![
                row("web", 1, "MSR_WRITE", false, 40),
                row("web", 2, "0x7b", false, 30),
                row("web", 1, "HLT", true, 900),
                row("db", 1, "MSR_WRITE", false, 5),
            ],
            vcpus: vec![vcpu("web"), vcpu("db")],
            ..Interval::default()
        };
        let values_of = |vm: Option<&str>| {
            let counts = counts(&interval, vm).into_iter();
            counts.map(|count| (count.name, count.value)).collect::<Vec<_>>()
        };
        let expected = [
            ("exits", 9.0),
            ("exit_cost_ns", 70.0),
            ("guest_ns", 50.0),
            ("run_queue_ns", 7.0),
            ("exits_msr_write", 3.0),
            ("exit_cost_msr_write_ns", 40.0),
            ("exits_l2_0x7b", 3.0),
            ("exit_cost_l2_0x7b_ns", 30.0),
            ("exits_hlt", 3.0),
        ];
        assert_eq!(values_of(Some("web")), expected.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(
            values_of(None)[..2],
            [("exits".to_owned(), 12.0), ("exit_cost_ns".to_owned(), 75.0)]
        );
    }
}
