//! Paths of synthetic requests with known steps.

use crate::machinery::Machinery;
use analyses::path::{Actor, ExampleOf, NoSuchEvent, Path, PathEnds, Paths, paths};
use analyses::view::View;

const VCPU: i32 = 100;
const OTHER_VCPU: i32 = 101;
const IOTHREAD: i32 = 90;
const SERVER: i32 = 50;
const IDLE: i32 = 0;
/// `TASK_INTERRUPTIBLE`, `TASK_UNINTERRUPTIBLE`.
const SLEEPS: u64 = 1;
const WAITS: u64 = 2;
/// `TRACE_FLAG_HARDIRQ`.
const HARDIRQ: u64 = 8;
const DOORBELL: u64 = 0xfe00_0010;
const HLT: u64 = 0x78;
const NPF: u64 = 0x400;

/// A synthetic host with a VM of two vCPUs and an I/O thread.
struct Host(Machinery);

impl Host {
    fn new() -> Self {
        let mut machine = Machinery::new("local");
        machine.cmdlines = "100 qemu\n101 qemu\n90 qemu\n50 server\n".to_owned();
        let mut host = Self(machine);
        // Both vCPUs have entered, so that the VM has both of them; the second one sleeps.
        host.entry(0, 10, VCPU).entry(1, 20, OTHER_VCPU);
        host.exit(1, 30, OTHER_VCPU, HLT).switch(1, 40, OTHER_VCPU, SLEEPS, IDLE);
        host
    }

    fn event(
        &mut self,
        cpu: u32,
        ns: u64,
        thread: i32,
        name: &str,
        fields: &[(&str, u64)],
    ) -> &mut Self {
        self.0.event(cpu, ns, thread, name, fields);
        self
    }

    fn exit(&mut self, cpu: u32, ns: u64, thread: i32, reason: u64) -> &mut Self {
        self.event(cpu, ns, thread, "kvm_exit", &[("exit_reason", reason), ("isa", 2)])
    }

    fn entry(&mut self, cpu: u32, ns: u64, thread: i32) -> &mut Self {
        let id = u64::from(thread == OTHER_VCPU);
        self.event(cpu, ns, thread, "kvm_entry", &[("vcpu_id", id)])
    }

    /// The guest writes to its device.
    fn kick(&mut self, cpu: u32, ns: u64, thread: i32) -> &mut Self {
        self.exit(cpu, ns - 5, thread, NPF);
        self.event(cpu, ns, thread, "kvm_mmio", &[("type", 2), ("gpa", DOORBELL)])
    }

    fn wake(&mut self, cpu: u32, ns: u64, waker: i32, woken: i32) -> &mut Self {
        self.event(cpu, ns, waker, "sched_waking", &[("pid", woken as u64)])
    }

    fn switch(&mut self, cpu: u32, ns: u64, prev: i32, state: u64, next: i32) -> &mut Self {
        let fields = [("prev_pid", prev as u64), ("prev_state", state), ("next_pid", next as u64)];
        self.event(cpu, ns, prev, "sched_switch", &fields)
    }

    /// The thread raises an interrupt for a vCPU.
    fn inject(&mut self, cpu: u32, ns: u64, thread: i32, vcpu: u64) -> &mut Self {
        self.event(cpu, ns, thread, "kvm_set_irq", &[("gsi", 5), ("level", 1)]);
        self.event(cpu, ns + 1, thread, "kvm_apic_accept_irq", &[("apicid", vcpu), ("vec", 33)])
    }

    fn found_between(self, start: Option<&str>, end: Option<&str>) -> Result<Paths, NoSuchEvent> {
        let ends = PathEnds { start: start.map(str::to_owned), end: end.map(str::to_owned) };
        paths(View::on_own_clocks(&[self.0.recording()]), &ends, &|_| ())
    }

    fn found(self) -> Paths {
        self.found_between(None, None).unwrap()
    }
}

/// Steps of a path with their times; each has only one request.
fn steps(path: &Path) -> Vec<(&str, Actor, u64)> {
    path.hops.iter().map(|hop| (hop.to.as_str(), hop.on, hop.times.sum())).collect()
}

fn only(found: &Paths) -> &Path {
    let names: Vec<&String> = found.paths.iter().map(|path| &path.name).collect();
    assert_eq!(found.paths.len(), 1, "{names:?}");
    &found.paths[0]
}

const TO_THREAD: [(&str, Actor, u64); 2] =
    [("wakes iothread", Actor::Vcpu, 10), ("iothread runs", Actor::Iothread, 30)];

/// A kick wakes the I/O thread, which raises an interrupt and wakes the sleeping vCPU.
#[test]
fn a_request_is_followed_until_its_guest_goes_on() {
    let mut host = Host::new();
    host.switch(1, 50, IOTHREAD, SLEEPS, IDLE);
    host.kick(0, 1_000, VCPU).wake(0, 1_010, VCPU, IOTHREAD).entry(0, 1_020, VCPU);
    host.switch(1, 1_040, IDLE, 0, IOTHREAD);
    host.exit(0, 1_100, VCPU, HLT).switch(0, 1_110, VCPU, SLEEPS, IDLE);
    host.inject(1, 1_200, IOTHREAD, 0).wake(1, 1_210, IOTHREAD, VCPU);
    host.switch(0, 1_250, IDLE, 0, VCPU).entry(0, 1_300, VCPU);
    host.exit(0, 1_390, VCPU, HLT);
    let found = host.found();
    let path = only(&found);
    assert_eq!(path.name, "mmio write 0xfe000010: vcpu → iothread → vcpu");
    let rest = [
        ("kvm_set_irq", Actor::Iothread, 160),
        ("wakes vcpu", Actor::Iothread, 10),
        ("vcpu runs", Actor::Vcpu, 40),
        ("kvm_entry", Actor::Vcpu, 50),
    ];
    assert_eq!(steps(path), [&TO_THREAD[..], &rest].concat());
    assert_eq!((path.total.count(), path.total.sum()), (1, 300));
    assert_eq!((found.unfinished, found.interrupted), (0, 0));
    assert_eq!(path.vm.as_deref(), Some("vm-100"));
}

/// While the guest runs, the interrupt's exit returns the request. The next access to the same device is the
/// guest's response; an access to another device is not.
#[test]
fn the_next_access_to_the_device_ends_a_request() {
    for (address, last) in
        [(DOORBELL + 0x10, "mmio read 0xfe000020"), (DOORBELL + 0x4000, "kvm_entry")]
    {
        let mut host = Host::new();
        host.switch(1, 50, IOTHREAD, SLEEPS, IDLE);
        host.kick(0, 1_000, VCPU).wake(0, 1_010, VCPU, IOTHREAD).entry(0, 1_020, VCPU);
        host.switch(1, 1_040, IDLE, 0, IOTHREAD).inject(1, 1_200, IOTHREAD, 0);
        host.exit(0, 1_220, VCPU, 0x60).entry(0, 1_230, VCPU).exit(0, 1_300, VCPU, NPF);
        host.event(0, 1_310, VCPU, "kvm_mmio", &[("type", 0), ("gpa", address)]);
        let found = host.found();
        let path = only(&found);
        assert_eq!(path.hops.last().unwrap().to, last);
        assert_eq!(
            steps(path)[3..5],
            [("kvm_exit", Actor::Vcpu, 20), ("kvm_entry", Actor::Vcpu, 10)]
        );
    }
}

/// While the thread is awake, kicks cause no wake-ups: it takes them up at its next action. This is the same path
/// with two optional steps, and its steps still add up to its time.
#[test]
fn a_thread_that_is_awake_takes_up_what_it_was_not_woken_for() {
    let mut host = Host::new();
    host.switch(1, 50, IOTHREAD, SLEEPS, IDLE);
    host.kick(0, 1_000, VCPU).wake(0, 1_010, VCPU, IOTHREAD).entry(0, 1_020, VCPU);
    host.switch(1, 1_040, IDLE, 0, IOTHREAD);
    host.kick(0, 1_100, VCPU).entry(0, 1_120, VCPU);
    host.inject(1, 1_200, IOTHREAD, 0).exit(0, 1_220, VCPU, 0x60).entry(0, 1_230, VCPU);
    host.exit(0, 1_390, VCPU, HLT);
    let found = host.found();
    let path = only(&found);
    let rest = [
        ("kvm_set_irq", Actor::Iothread, 160 + 100),
        ("kvm_exit", Actor::Vcpu, 20 + 20),
        ("kvm_entry", Actor::Vcpu, 10 + 10),
    ];
    assert_eq!(steps(path), [&TO_THREAD[..], &rest].concat());
    let counts: Vec<u64> = path.hops.iter().map(|hop| hop.times.count()).collect();
    assert_eq!((counts, path.variants), (vec![1, 1, 2, 2, 2], 2));
    assert_eq!((path.total.count(), path.total.sum(), found.requests), (2, 230 + 130, 2));
    let median = path.example(ExampleOf::Median).unwrap();
    assert_eq!((median.steps.len(), &median.hops[..]), (6, &[0, 1, 2, 3, 4][..]));
    let worst = path.example(ExampleOf::Worst).unwrap();
    assert_eq!(worst.total_ns(), 230);
    // Each step has a place: a wake-up that of the waker, a run that of the thread.
    let threads: Vec<u32> = worst.steps.iter().map(|step| step.place.thread).collect();
    let expected = [VCPU, VCPU, IOTHREAD, IOTHREAD, VCPU, VCPU];
    assert_eq!(threads, expected.map(i32::cast_unsigned));
}

/// A different step at the same position is not an optional step.
#[test]
fn ways_with_other_steps_are_other_paths() {
    let mut host = Host::new();
    host.switch(1, 50, IOTHREAD, SLEEPS, IDLE);
    for (begin_ns, raises) in [(1_000, true), (3_000, false)] {
        host.kick(0, begin_ns, VCPU).wake(0, begin_ns + 10, VCPU, IOTHREAD);
        host.entry(0, begin_ns + 20, VCPU).switch(1, begin_ns + 40, IDLE, 0, IOTHREAD);
        if raises {
            host.inject(1, begin_ns + 200, IOTHREAD, 0).exit(0, begin_ns + 220, VCPU, 0x60);
        } else {
            host.exit(0, begin_ns + 100, VCPU, HLT).switch(0, begin_ns + 110, VCPU, SLEEPS, IDLE);
            host.wake(1, begin_ns + 210, IOTHREAD, VCPU).switch(0, begin_ns + 225, IDLE, 0, VCPU);
        }
        host.entry(0, begin_ns + 230, VCPU).exit(0, begin_ns + 390, VCPU, HLT);
        host.switch(1, begin_ns + 400, IOTHREAD, SLEEPS, IDLE);
    }
    let found = host.found();
    assert_eq!(found.paths.iter().map(|path| path.variants).collect::<Vec<_>>(), [1, 1]);
}

/// An interrupt of the I/O thread wakes another vCPU: the I/O thread's request does not cause that.
#[test]
fn interrupts_are_not_the_thread_they_hit() {
    let mut host = Host::new();
    host.switch(1, 50, IOTHREAD, SLEEPS, IDLE);
    host.kick(0, 1_000, VCPU).wake(0, 1_010, VCPU, IOTHREAD).entry(0, 1_020, VCPU);
    host.switch(1, 1_040, IDLE, 0, IOTHREAD);
    let fields = [("pid", OTHER_VCPU as u64), ("common_flags", HARDIRQ)];
    host.event(1, 1_050, IOTHREAD, "sched_waking", &fields);
    host.switch(1, 1_060, IOTHREAD, SLEEPS, OTHER_VCPU).entry(1, 1_070, OTHER_VCPU);
    host.exit(1, 1_080, OTHER_VCPU, HLT);
    let found = host.found();
    let names: Vec<&str> = found.paths.iter().map(|path| path.name.as_str()).collect();
    let expected = [
        "mmio write 0xfe000010: vcpu → iothread, one way",
        "interrupt wakes vcpu: interrupt → vcpu",
    ];
    assert_eq!(names, expected);
    assert_eq!(steps(&found.paths[0]), TO_THREAD);
}

#[test]
fn one_vcpu_interrupts_another() {
    let mut host = Host::new();
    host.exit(0, 1_000, VCPU, 0x7c).event(0, 1_010, VCPU, "kvm_apic_ipi", &[("dest_id", 1)]);
    host.event(0, 1_020, VCPU, "kvm_apic_accept_irq", &[("apicid", 1), ("vec", 251)]);
    host.wake(0, 1_030, VCPU, OTHER_VCPU).entry(0, 1_040, VCPU);
    host.switch(1, 1_050, IDLE, 0, OTHER_VCPU).entry(1, 1_060, OTHER_VCPU);
    host.exit(1, 1_090, OTHER_VCPU, HLT);
    let found = host.found();
    let path = only(&found);
    assert_eq!(path.start, "interrupt to a vCPU");
    let to: Vec<&str> = path.hops.iter().map(|hop| hop.to.as_str()).collect();
    assert_eq!(to, ["kvm_apic_accept_irq", "wakes vcpu", "vcpu runs", "kvm_entry"]);
    assert_eq!(path.total.sum(), 50);
}

/// A thread in the middle of a system call is still working on its request; the disk's interrupt wakes it for
/// that.
#[test]
fn a_disk_is_waited_for() {
    for (state, over_disk) in [(WAITS, false), (SLEEPS, true)] {
        let mut host = Host::new();
        host.switch(1, 50, IOTHREAD, SLEEPS, IDLE);
        host.kick(0, 1_000, VCPU).wake(0, 1_010, VCPU, IOTHREAD).entry(0, 1_020, VCPU);
        host.switch(1, 1_040, IDLE, 0, IOTHREAD);
        let request = [("dev", 8), ("sector", 2048)];
        host.event(1, 1_050, IOTHREAD, "block_rq_issue", &request);
        host.switch(1, 1_060, IOTHREAD, state, IDLE);
        if over_disk {
            let done = [("dev", 8), ("sector", 2048), ("common_flags", HARDIRQ)];
            host.event(1, 1_500, IDLE, "block_rq_complete", &done);
        }
        host.wake(1, 1_510, IDLE, IOTHREAD).switch(1, 1_520, IDLE, 0, IOTHREAD);
        host.inject(1, 1_600, IOTHREAD, 0).exit(0, 1_620, VCPU, 0x60).entry(0, 1_630, VCPU);
        host.exit(0, 1_700, VCPU, HLT);
        let found = host.found();
        let path = only(&found);
        let to: Vec<&str> = path.hops.iter().map(|hop| hop.to.as_str()).collect();
        let beginning = ["wakes iothread", "iothread runs", "block_rq_issue"];
        let end = ["kvm_set_irq", "kvm_exit", "kvm_entry"];
        let disk: &[&str] =
            if over_disk { &["block_rq_complete", "wakes iothread", "iothread runs"] } else { &[] };
        assert_eq!(to, [&beginning, disk, &end].concat());
        assert_eq!(path.total.sum(), 630);
    }
}

/// An external event that wakes a thread of the VM begins a request.
#[test]
fn requests_come_in_from_outside() {
    let mut host = Host::new();
    host.switch(1, 50, IOTHREAD, SLEEPS, SERVER);
    host.kick(0, 1_000, VCPU).wake(0, 1_010, VCPU, IOTHREAD).entry(0, 1_020, VCPU);
    host.switch(1, 1_040, SERVER, 0, IOTHREAD).switch(1, 1_050, IOTHREAD, SLEEPS, SERVER);
    host.wake(1, 2_000, SERVER, IOTHREAD).switch(1, 2_010, SERVER, 0, IOTHREAD);
    host.inject(1, 2_100, IOTHREAD, 0).exit(0, 2_120, VCPU, 0x60).entry(0, 2_130, VCPU);
    host.exit(0, 2_200, VCPU, HLT);
    let found = host.found();
    assert_eq!(found.paths[0].name, "server wakes iothread: host → iothread → vcpu");
    assert_eq!(found.paths[0].total.sum(), 130);
}

/// Nothing is followed across a loss on any CPU.
#[test]
fn losses_interrupt() {
    for cpu in [0, 1] {
        let mut host = Host::new();
        host.switch(1, 50, IOTHREAD, SLEEPS, IDLE);
        host.kick(0, 1_000, VCPU).wake(0, 1_010, VCPU, IOTHREAD).entry(0, 1_020, VCPU);
        host.switch(1, 1_040, IDLE, 0, IOTHREAD);
        host.0.lose(cpu);
        host.inject(1, 1_200, IOTHREAD, 0).exit(0, 1_220, VCPU, 0x60).entry(0, 1_230, VCPU);
        host.exit(0, 1_300, VCPU, HLT);
        let found = host.found();
        assert_eq!((found.paths.len(), found.interrupted, found.unfinished), (0, 1, 0), "{cpu}");
    }
}

#[test]
fn users_say_where_paths_begin_and_end() {
    let story = || {
        let mut host = Host::new();
        host.switch(1, 50, IOTHREAD, SLEEPS, IDLE);
        host.kick(0, 1_000, VCPU).wake(0, 1_010, VCPU, IOTHREAD).entry(0, 1_020, VCPU);
        host.switch(1, 1_040, IDLE, 0, IOTHREAD).inject(1, 1_200, IOTHREAD, 0);
        host
    };
    let found = story().found_between(Some("kvm:kvm_mmio"), Some("kvm_set_*")).unwrap();
    let path = only(&found);
    assert_eq!(path.start, "kvm_mmio");
    assert_eq!(path.total.sum(), 200);
    assert_eq!(steps(path).last(), Some(&("kvm_set_irq", Actor::Iothread, 160)));
    let missing = story().found_between(Some("kvm_mmio"), Some("kvm_nothing"));
    assert_eq!(missing.err(), Some(NoSuchEvent("kvm_nothing".to_owned())));
}
