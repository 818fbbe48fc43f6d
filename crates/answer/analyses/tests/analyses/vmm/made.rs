//! A synthetic host with one vCPU and its VMM's main thread, each on its own CPU.

use sources::Recording;

use crate::machinery::Machinery;

pub(crate) const VCPU: i32 = 100;
pub(crate) const MAIN: i32 = 90;
const IDLE: i32 = 0;
const SLEEPS: u64 = 1;

/// The machine: the vCPU runs on CPU 0, the main thread on CPU 1.
pub(crate) struct Made(Machinery);

impl Made {
    pub(crate) fn new() -> Self {
        let mut machine = Machinery::new("local").with_syscalls();
        machine.cmdlines = "100 CPU 0/KVM\n90 main\n".to_owned();
        Self(machine)
    }

    pub(crate) fn event(
        &mut self,
        cpu: u32,
        ns: u64,
        pid: i32,
        name: &str,
        fields: &[(&str, u64)],
    ) -> &mut Self {
        self.0.event(cpu, ns, pid, name, fields);
        self
    }

    pub(crate) fn recording(self) -> Recording {
        self.0.recording()
    }

    pub(crate) fn lose(&mut self) -> &mut Self {
        self.0.lose(0);
        self
    }

    pub(crate) fn entry(&mut self, ns: u64) -> &mut Self {
        self.event(0, ns, VCPU, "kvm_entry", &[("vcpu_id", 0)])
    }

    pub(crate) fn exit(&mut self, ns: u64, reason: u64) -> &mut Self {
        self.event(0, ns, VCPU, "kvm_exit", &[("exit_reason", reason), ("isa", 2)])
    }

    pub(crate) fn port(&mut self, ns: u64, port: u64) -> &mut Self {
        self.event(0, ns, VCPU, "kvm_pio", &[("rw", 1), ("port", port)])
    }

    pub(crate) fn user_exit(&mut self, ns: u64) -> &mut Self {
        self.event(0, ns, VCPU, "kvm_userspace_exit", &[("reason", 2)])
    }

    pub(crate) fn loaded(&mut self, ns: u64) -> &mut Self {
        self.event(0, ns, VCPU, "kvm_fpu", &[("load", 1)])
    }

    pub(crate) fn enters(&mut self, ns: u64, number: u64, arguments: [u64; 3]) -> &mut Self {
        self.call(0, ns, VCPU, number, arguments)
    }

    pub(crate) fn leaves(&mut self, ns: u64) -> &mut Self {
        self.event(0, ns, VCPU, "sys_exit", &[("id", 0)])
    }

    pub(crate) fn handler(&mut self, ns: u64) -> &mut Self {
        self.event(0, ns, VCPU, "signal_deliver", &[("sig", 10), ("sa_handler", 0x4000)])
    }

    pub(crate) fn preempted(&mut self, ns: u64) -> &mut Self {
        self.switch(0, ns, VCPU, 0, IDLE)
    }

    pub(crate) fn sleeps(&mut self, ns: u64) -> &mut Self {
        self.switch(0, ns, VCPU, SLEEPS, IDLE)
    }

    pub(crate) fn back(&mut self, ns: u64) -> &mut Self {
        self.switch(0, ns, IDLE, 0, VCPU)
    }

    /// The main thread wakes the vCPU's thread.
    pub(crate) fn wakes(&mut self, ns: u64) -> &mut Self {
        self.event(1, ns, MAIN, "sched_waking", &[("pid", VCPU as u64)])
    }

    /// A thread is switched in on the other CPU.
    pub(crate) fn other(&mut self, ns: u64, thread: i32) -> &mut Self {
        self.switch(1, ns, IDLE, 0, thread)
    }

    pub(crate) fn main_enters(&mut self, ns: u64, number: u64, arguments: [u64; 3]) -> &mut Self {
        self.call(1, ns, MAIN, number, arguments)
    }

    pub(crate) fn main_leaves(&mut self, ns: u64) -> &mut Self {
        self.event(1, ns, MAIN, "sys_exit", &[("id", 0)])
    }

    pub(crate) fn main_sleeps(&mut self, ns: u64) -> &mut Self {
        self.switch(1, ns, MAIN, SLEEPS, IDLE)
    }

    pub(crate) fn main_woken(&mut self, ns: u64) -> &mut Self {
        self.event(1, ns, IDLE, "sched_waking", &[("pid", MAIN as u64)])
    }

    pub(crate) fn main_back(&mut self, ns: u64) -> &mut Self {
        self.switch(1, ns, IDLE, 0, MAIN)
    }

    fn switch(&mut self, cpu: u32, ns: u64, prev: i32, state: u64, next: i32) -> &mut Self {
        let fields = [("prev_pid", prev as u64), ("prev_state", state), ("next_pid", next as u64)];
        self.event(cpu, ns, prev, "sched_switch", &fields)
    }

    fn call(
        &mut self,
        cpu: u32,
        ns: u64,
        thread: i32,
        number: u64,
        arguments: [u64; 3],
    ) -> &mut Self {
        let [first, second, third] = arguments;
        let fields = [("id", number), ("args[0]", first), ("args[1]", second), ("args[2]", third)];
        self.event(cpu, ns, thread, "sys_enter", &fields)
    }
}
