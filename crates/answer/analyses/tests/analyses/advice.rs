//! Tests each rule of advice with a synthetic recording that triggers it, and with a similar one that does not.

use crate::machinery::Machinery;
use analyses::advice::{Advice, EvidenceOf, RULES, advise};
use analyses::cpu::{TakenCpu, cpu};
use analyses::exit_question::ask;
use analyses::nested::OfLevelTwo;
use analyses::view::View;
use sources::Recording;
use testkit::Machine;

const VCPU: i32 = 100;
const OTHER: i32 = 200;

const VMX: u64 = 1;
const HLT: u64 = 12;
const IO: u64 = 30;
const MSR_READ: u64 = 31;
const MSR_WRITE: u64 = 32;
const PAUSE: u64 = 40;
const EPT_VIOLATION: u64 = 48;
const EPT_MISCONFIG: u64 = 49;
const PREEMPTION_TIMER: u64 = 52;
const APIC_WRITE: u64 = 56;

/// A vCPU with repeated exits: it is in the guest for 100 us between two exits.
struct Guest {
    host: Machinery,
    now: u64,
}

impl Guest {
    fn new() -> Self {
        let mut guest =
            Self { host: Machinery::for_machine(Machine::X86, "local"), now: 1_000_000 };
        guest.host.cmdlines = "100 vm\n200 other\n".to_owned();
        guest.event("kvm_entry", &[]);
        guest
    }

    fn event(&mut self, name: &str, fields: &[(&str, u64)]) {
        self.by(VCPU, name, fields);
    }

    fn by(&mut self, thread: i32, name: &str, fields: &[(&str, u64)]) {
        self.host.event(0, self.now, thread, name, fields);
    }

    fn after(&mut self, ns: u64) -> &mut Self {
        self.now += ns;
        self
    }

    fn begin(&mut self, reason: u64) -> &mut Self {
        self.after(100_000).event("kvm_exit", &[("exit_reason", reason), ("isa", VMX)]);
        self
    }

    fn end(&mut self, ns: u64) {
        self.after(ns).event("kvm_entry", &[]);
    }

    /// An exit of 10 us with a detail, which the kernel handles.
    fn exit(&mut self, reason: u64, about: (&str, &str, u64)) {
        let (event, field, value) = about;
        self.begin(reason).after(100).event(event, &[(field, value)]);
        self.end(9_900);
    }

    /// An exit of 10 us with a detail, of which 8 us are in user space.
    fn exit_to_user(&mut self, reason: u64, about: (&str, &str, u64)) {
        let (event, field, value) = about;
        self.begin(reason).after(100).event(event, &[(field, value)]);
        self.after(900).event("kvm_userspace_exit", &[("reason", 6)]);
        self.after(8_000).event("kvm_fpu", &[("load", 1)]);
        self.end(1_000);
    }

    /// An exit during which another thread preempts the vCPU.
    fn preempted(&mut self, reason: u64, ns: u64) {
        self.begin(reason).after(1_000).switch(VCPU, 0, OTHER);
        self.after(ns).switch(OTHER, 1, VCPU);
        self.end(3_000);
    }

    fn switch(&mut self, from: i32, state: u64, to: i32) {
        let (prev, next) = (from as u64, to as u64);
        let fields = [("prev_pid", prev), ("prev_state", state), ("next_pid", next)];
        self.by(from, "sched_switch", &fields);
    }

    /// The guest halts: the host polls for `polled` ns, and the vCPU sleeps for `slept` ns.
    fn halt(&mut self, polled: u64, slept: u64) {
        let ns = polled + if slept > 0 { slept + 1_000 } else { 500 };
        self.begin(HLT).after(1_000 + polled);
        if slept > 0 {
            self.switch(VCPU, 1, 0);
            self.after(slept).by(0, "sched_waking", &[("pid", VCPU as u64)]);
            self.after(500).switch(0, 0, VCPU);
        }
        self.after(500).event("kvm_vcpu_wakeup", &[("ns", ns), ("waited", u64::from(slept > 0))]);
        self.end(8_000);
    }

    fn advice(self) -> Vec<Advice> {
        advice_of(&self.host.recording())
    }

    /// The advice of one rule; checks for all rules that no saving exceeds the measured time.
    fn says(self, rule: &str) -> Vec<Advice> {
        assert!(RULES.iter().any(|known_rule| known_rule.name == rule), "{rule}");
        let passed_ns = self.now;
        let all = self.advice();
        for entry in &all {
            assert!(entry.saving_at_most_ns <= passed_ns, "{entry:?}");
            assert!(entry.saving_at_least_ns <= entry.saving_at_most_ns, "{entry:?}");
            assert!(
                !entry.helps.is_empty() && !entry.why.is_empty() && !entry.evidence.is_empty(),
                "{entry:?}"
            );
        }
        all.into_iter().filter(|entry| entry.rule == rule).collect()
    }
}

fn advice_of(recording: &Recording) -> Vec<Advice> {
    let (exits, nested) = ask(recording, &(EvidenceOf, OfLevelTwo), &|_| ());
    let takers = cpu(View::on_own_clocks(std::slice::from_ref(recording)), &[], &|_| ()).takers;
    advise(&exits, &nested.rows, &takers.iter().collect::<Vec<&TakenCpu>>())
}

/// A guest after `times` repetitions of `step`.
fn after(times: u64, mut step: impl FnMut(&mut Guest, u64)) -> Guest {
    let mut guest = Guest::new();
    (0..times).for_each(|at| step(&mut guest, at));
    guest
}

#[track_caller]
fn saves(guest: Guest, rule: &str, ns: u64) {
    let advice = guest.says(rule);
    assert_eq!(advice.iter().map(|entry| entry.saving_at_most_ns).sum::<u64>(), ns, "{advice:#?}");
}

#[track_caller]
fn is_silent(guest: Guest, rule: &str) {
    let advice = guest.says(rule);
    assert!(advice.is_empty(), "{advice:#?}");
}

const EOI: (&str, &str, u64) = ("kvm_msr", "ecx", 0x80b);
const ICR: (&str, &str, u64) = ("kvm_msr", "ecx", 0x830);

#[test]
fn ends_of_interrupts_that_exit_are_the_interrupt_controllers() {
    saves(after(200, |guest, _| guest.exit(MSR_WRITE, EOI)), "interrupt-controller", 200 * 10_000);
    let eoi = ("kvm_page_fault", "fault_address", 0xfee0_00b0);
    saves(
        after(200, |guest, _| guest.exit(EPT_VIOLATION, eoi)),
        "interrupt-controller",
        200 * 10_000,
    );
    // For a level-triggered interrupt, the kernel also reads the trigger mode register.
    let level = |guest: &mut Guest, _| {
        guest.exit(MSR_WRITE, EOI);
        guest.exit(MSR_READ, ("kvm_msr", "ecx", 0x819));
    };
    let found = after(200, level).says("interrupt-controller");
    assert_eq!(found[0].saving_at_most_ns, 400 * 10_000, "{found:#?}");
    assert_eq!(found[0].saving_at_least_ns, 200 * 10_000 / 3, "a third of the ends");
    // With APICv, IPIs still exit: without end-of-interrupt exits they show nothing.
    is_silent(after(200, |guest, _| guest.exit(MSR_WRITE, ICR)), "interrupt-controller");
    let with_apicv = after(200, |guest, at| {
        guest.exit(MSR_WRITE, EOI);
        if at == 0 {
            guest.begin(APIC_WRITE).end(1_000);
        }
    });
    is_silent(with_apicv, "interrupt-controller");
    is_silent(after(99, |guest, _| guest.exit(MSR_WRITE, EOI)), "interrupt-controller");
}

#[test]
fn accesses_to_a_device_in_user_space_could_be_the_kernels() {
    let notify = ("kvm_mmio", "gpa", 0xfe00_3000);
    let fault = ("kvm_page_fault", "fault_address", 0xfe00_3000);
    saves(
        after(200, |guest, _| guest.exit_to_user(EPT_MISCONFIG, fault)),
        "device-address",
        200 * 10_000,
    );
    let least = |guest: Guest| guest.says("device-address")[0].saving_at_least_ns;
    let unknown = after(200, |guest, _| guest.exit_to_user(EPT_MISCONFIG, fault));
    assert_eq!(least(unknown), 0, "what an interrupt takes is not known");
    let with_ends = after(200, |guest, at| {
        guest.exit_to_user(EPT_MISCONFIG, fault);
        if at % 2 == 0 {
            guest.exit(MSR_WRITE, EOI);
            guest.exit_to_user(EPT_MISCONFIG, ("kvm_page_fault", "fault_address", 0xfe00_1000));
        }
    });
    // From 8 us in user space, the end of an interrupt takes 10 us, and reading its cause 10 us.
    assert_eq!(least(with_ends), 0);
    let with_ends = after(400, |guest, at| {
        guest.exit_to_user(EPT_MISCONFIG, fault);
        if at % 4 == 0 {
            guest.begin(MSR_WRITE).after(100).event(EOI.0, &[(EOI.1, EOI.2)]);
            guest.end(2_900);
        }
    });
    assert_eq!(least(with_ends), 400 * (8_000 - 3_000));
    is_silent(after(200, |guest, _| guest.exit(EPT_MISCONFIG, fault)), "device-address");
    // As many accesses, but each at a different address.
    let spread = |guest: &mut Guest, at: u64| {
        guest.exit_to_user(EPT_MISCONFIG, (notify.0, notify.1, notify.2 + 8 * at));
    };
    is_silent(after(200, spread), "device-address");
}

#[test]
fn ports_of_old_devices_have_names() {
    let port = |port: u64| ("kvm_pio", "port", port);
    let serial = after(200, |guest, _| guest.exit_to_user(IO, port(0x3f8))).says("legacy-port");
    assert_eq!(serial.len(), 1, "{serial:#?}");
    assert!(serial[0].title.contains("serial"), "{serial:#?}");
    for (number, name) in
        [(0x70, "CMOS"), (0x40, "PIT"), (0x608, "PM timer"), (0x1f0, "IDE"), (0xcf8, "PCI")]
    {
        let found = after(150, |guest, _| guest.exit_to_user(IO, port(number))).says("legacy-port");
        assert!(found.iter().any(|entry| entry.title.contains(name)), "{number:#x}: {found:#?}");
    }
    let with_ends = after(200, |guest, _| {
        guest.exit_to_user(IO, port(0x608));
        guest.exit(MSR_WRITE, EOI);
    });
    let found = with_ends.says("legacy-port");
    assert_eq!(found[0].saving_at_most_ns, 200 * 20_000, "ends of interrupts that exits made exit");
    assert_eq!(found[0].saving_at_least_ns, 200 * 10_000 / 3);
    is_silent(after(200, |guest, _| guest.exit_to_user(IO, port(0x5000))), "legacy-port");
    is_silent(after(60, |guest, _| guest.exit_to_user(IO, port(0x3f8))), "legacy-port");
}

#[test]
fn timers_are_their_registers_and_their_ends() {
    let deadline = ("kvm_msr", "ecx", 0x6e0);
    let both = |guest: &mut Guest, _| {
        guest.exit(MSR_WRITE, deadline);
        guest.begin(PREEMPTION_TIMER).end(5_000);
    };
    saves(after(150, both), "guest-timers", 150 * 15_000);
    // Too small a share of the VM's time: one timer per 40 ms of guest time.
    let rare = |guest: &mut Guest, _| {
        guest.after(40_000_000).exit(MSR_WRITE, deadline);
    };
    is_silent(after(150, rare), "guest-timers");
}

#[test]
fn faults_are_of_the_beginning_or_go_on() {
    let fault = |guest: &mut Guest, at: u64| {
        guest.exit(EPT_VIOLATION, ("kvm_page_fault", "fault_address", 0x10_0000 + 4096 * at));
    };
    let mut early = after(400, fault);
    (0..100).for_each(|_| early.after(10_000_000).exit(MSR_WRITE, ("kvm_msr", "ecx", 0x10)));
    // Most of the VM's time has no faults: 4 ms of 1.05 s are less than a percent.
    is_silent(early, "memory-faults");
    let mut early = after(400, fault);
    (0..100).for_each(|_| early.after(3_000_000).exit(MSR_WRITE, ("kvm_msr", "ecx", 0x10)));
    let early = early.says("memory-faults");
    assert!(early.len() == 1 && early[0].title.contains("while the guest starts"), "{early:#?}");
    let all_along = after(400, fault).says("memory-faults");
    assert!(
        all_along.len() == 1 && all_along[0].title.contains("keeps faulting"),
        "{all_along:#?}"
    );
    assert_eq!(all_along[0].saving_at_most_ns, 400 * 10_000);
    // Repeated exits at the same address are no memory faults.
    is_silent(after(400, |guest, _| fault(guest, 0)), "memory-faults");
}

#[test]
fn pauses_with_waits_in_the_run_queue_are_overcommitment() {
    let spins = |guest: &mut Guest, _| guest.begin(PAUSE).end(5_000);
    let overcommitted = after(200, |guest, at| {
        spins(guest, at);
        if at % 10 == 0 {
            guest.preempted(PREEMPTION_TIMER, 1_000_000);
        }
    });
    saves(overcommitted, "pause-overcommit", 200 * 5_000);
    is_silent(after(200, spins), "pause-overcommit");
}

#[test]
fn waits_are_of_those_that_had_the_cpu() {
    let mut guest = after(20, |guest, _| guest.preempted(PREEMPTION_TIMER, 1_000_000));
    guest.switch(VCPU, 1, OTHER);
    saves(guest, "preempted-vcpus", 20 * 1_000_000);
    let least_saving = |name: &str| {
        let mut guest = after(20, |guest, _| guest.preempted(PREEMPTION_TIMER, 1_000_000));
        guest.host.cmdlines = format!("100 vm\n200 {name}\n");
        guest.switch(VCPU, 1, OTHER);
        guest.says("preempted-vcpus").iter().map(|entry| entry.saving_at_least_ns).sum::<u64>()
    };
    assert_eq!(
        (least_saving("other"), least_saving("vhost-100")),
        (20_000_000 / 3, 0),
        "its own vhost goes with it"
    );
    // A wait of 0.1% of the vCPU's running time.
    let mut guest = Guest::new();
    guest.preempted(PREEMPTION_TIMER, 100_000);
    (0..100).for_each(|_| guest.after(1_000_000).exit(MSR_WRITE, ("kvm_msr", "ecx", 0x10)));
    guest.switch(VCPU, 1, OTHER);
    is_silent(guest, "preempted-vcpus");
}

#[test]
fn short_idles_want_polling_only_where_there_is_none() {
    let found = after(200, |guest, _| guest.halt(0, 50_000)).says("short-idles");
    assert_eq!(found.len(), 1, "{found:#?}");
    is_silent(after(200, |guest, _| guest.halt(0, 5_000_000)), "short-idles");
    is_silent(after(200, |guest, _| guest.halt(50_000, 0)), "short-idles");
    is_silent(after(200, |guest, _| guest.halt(20_000, 30_000)), "short-idles");
    let found = after(200, |guest, _| guest.halt(3_000, 50_000)).says("short-idles");
    assert_eq!(found.len(), 1, "3 us before a sleep are no polling: {found:#?}");
    // With half of the idles long, short ones are no majority.
    is_silent(after(200, |guest, at| guest.halt(0, 50_000 + at % 2 * 1_000_000)), "short-idles");
}

#[test]
fn polling_that_ends_in_sleep_is_for_nothing() {
    let found = after(200, |guest, _| guest.halt(100_000, 5_000_000)).says("halt-polling");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].saving_at_most_ns, 200 * 100_000, "{found:#?}");
    let most_lose =
        after(200, |guest, at| guest.halt(100_000, if at % 4 == 0 { 0 } else { 5_000_000 }));
    let found = most_lose.says("halt-polling");
    assert_eq!(found[0].saving_at_least_ns, 150 * 100_000 / 3, "{found:#?}");
    let at_most = found[0].saving_at_most_ns;
    assert!(
        (200 * 100_000..=200 * 101_000).contains(&at_most),
        "polls that win stop, too: {at_most}"
    );
    is_silent(after(200, |guest, _| guest.halt(100_000, 0)), "halt-polling");
    is_silent(after(200, |guest, _| guest.halt(0, 5_000_000)), "halt-polling");
    // The time before each sleep, with or without polling.
    is_silent(after(200, |guest, _| guest.halt(9_000, 500_000)), "halt-polling");
}

/// An exit of level 2 that is reflected to level 1, which exits `times` times before level 2 runs again.
fn nested(guest: &mut Guest, times: u64) {
    let reason = [("exit_reason", 10), ("isa", VMX)];
    guest.begin(10).event("kvm_nested_vmexit", &reason);
    guest.after(500).event("kvm_nested_vmexit_inject", &[("exit_code", 10), ("isa", VMX)]);
    guest.end(500);
    (0..times).for_each(|_| guest.begin(23).end(10_000));
    guest.begin(24).after(500).event("kvm_nested_vmenter", &[]);
    guest.end(500);
}

#[test]
fn nested_exits_are_what_they_bring_about() {
    let begin = |guest: &mut Guest, _| nested(guest, 4);
    let found = after(200, begin).says("nested-exits");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].helps[0].contains("shadow"), "{found:#?}");
    is_silent(after(50, begin), "nested-exits");
}

#[test]
fn ticks_of_an_unknown_clock_are_no_evidence() {
    let mut guest = Guest::new();
    guest.host.clock = "x86-tsc";
    (0..200).for_each(|_| guest.exit(MSR_WRITE, EOI));
    assert!(guest.advice().is_empty());
}
