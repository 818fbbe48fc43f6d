//! Exits of nested guests, costs and waits, in a synthetic history with known results.

use analyses::nested::{NestedRow, nested};
use testkit::Machine;

use crate::machinery::Machinery;

const VCPU: i32 = 100;
const CPUID: u64 = 0x72;
const HLT: u64 = 0x78;
const VMRUN: u64 = 0x80;
const SLEEPS: u64 = 1;

/// A host and its current time.
struct Host(Machinery, u64);

impl Host {
    fn event(&mut self, name: &str, fields: &[(&str, u64)]) -> &mut Self {
        self.1 += 10;
        self.0.event(0, self.1, VCPU, name, fields);
        self
    }

    fn exit(&mut self, reason: u64) -> &mut Self {
        self.event("kvm_exit", &[("exit_reason", reason), ("isa", 2)])
    }

    /// An exit of level 2 that level 1 handles.
    fn reflected(&mut self, reason: u64) -> &mut Self {
        let fields = [("exit_code", reason), ("isa", 2)];
        self.exit(reason).event("kvm_nested_vmexit", &[("exit_reason", reason), ("isa", 2)]);
        self.event("kvm_nested_vmexit_inject", &fields).event("kvm_entry", &[])
    }

    /// Level 1 halts, and its thread sleeps for `ns`.
    fn halts(&mut self, ns: u64) -> &mut Self {
        let away = [("prev_pid", VCPU as u64), ("prev_state", SLEEPS), ("next_pid", 0)];
        self.exit(HLT).event("sched_switch", &away);
        self.1 += ns;
        self.0.event(0, self.1, 0, "sched_waking", &[("pid", VCPU as u64)]);
        self.1 += 10;
        self.0.event(0, self.1, 0, "sched_switch", &[("prev_pid", 0), ("next_pid", VCPU as u64)]);
        self.event("kvm_entry", &[])
    }

    fn level_2_runs(&mut self) -> &mut Self {
        self.exit(VMRUN).event("kvm_nested_vmenter", &[]).event("kvm_entry", &[])
    }
}

#[test]
fn waiting_is_no_cost_and_comes_after_what_is() {
    let mut host = Host(Machinery::for_machine(Machine::X86, "local"), 1_000);
    host.event("kvm_entry", &[]).level_2_runs();
    for _ in 0..3 {
        host.reflected(CPUID).level_2_runs();
    }
    // Level 2 waits for work: meanwhile level 1 handles its own timers, and waits as well.
    host.reflected(HLT);
    for _ in 0..20 {
        host.halts(1_000_000);
    }
    host.level_2_runs();
    let found = nested(&host.0.recording(), &|_| ());
    let [cpuid, hlt] = &found.rows[..] else { panic!("{:?}", found.rows) };
    assert_eq!((cpuid.reason.as_str(), cpuid.count, cpuid.waiting), ("cpuid", 3, false));
    assert_eq!((hlt.reason.as_str(), hlt.count, hlt.waiting), ("hlt", 1, true));
    // Each has its own exit of 30 ns, and the exit that enters level 2 again, of 20 ns.
    assert_eq!(cpuid.cost().cost_ns, Some(3 * (30 + 20)));
    assert_eq!(cpuid.cost().waited_ns, Some(0));
    // Each halt of level 1 takes 10 ns before the wait and 10 ns after it.
    assert_eq!(hlt.cost().cost_ns, Some(30 + 20 + 20 * 20));
    assert_eq!(hlt.cost().waited_ns, Some(20 * 1_000_010));
    let parts = |row: &NestedRow| {
        let cost = row.cost();
        cost.cost_ns.unwrap() + cost.waited_ns.unwrap()
    };
    assert_eq!((parts(cpuid), parts(hlt)), (cpuid.time_ns(), hlt.time_ns()));
    assert!(hlt.time_ns() > 1_000 * cpuid.time_ns());
}
