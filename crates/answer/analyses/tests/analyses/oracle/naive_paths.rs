//! Compares paths with a naive reading of the same events: each step of a path must have happened.

use analyses::align::align;
use analyses::path::{Actor, Example, ExampleOf, ExampleStep, Hop, Path, PathEnds, Paths, paths};
use analyses::view::View;
use sources::Recording;

use super::flat::{Event, events};
use super::open;

fn found(recordings: &mut [Recording]) -> Paths {
    let guests = match recordings.len() {
        1 => Vec::new(),
        _ => align(recordings, None, &|_| ()),
    };
    guests.iter().for_each(|guest| guest.apply(&mut recordings[guest.guest]));
    paths(View::new(recordings, &guests), &PathEnds::default(), &|_| ()).unwrap()
}

fn of_host(name: &str) -> Paths {
    found(&mut [open(name)])
}

const HOSTS: [&str; 6] = [
    "x86-svm/host-guest.dat",
    "x86-svm/tsc.dat",
    "x86-vmx/smp.dat",
    "arm64/A.dat",
    "arm64/B-vhost-off.dat",
    "arm64/B-vhost-on.dat",
];

/// The hops of a path add up to its time, for each request and so in total.
#[test]
fn hops_add_up() {
    for name in HOSTS {
        let found = of_host(name);
        assert!(found.paths.len() > 5, "{name}");
        for path in &found.paths {
            let hops: u64 = path.hops.iter().map(|hop| hop.times.sum()).sum();
            assert_eq!(hops, path.total.sum(), "{name} {}", path.name);
            for example in &path.examples {
                assert!(example.steps.len() <= path.hops.len() + 1, "{name} {}", path.name);
            }
            // Each hop starts at the end of an earlier one.
            let comes_from = |(at, hop): (usize, &Hop)| {
                hop.from == path.start
                    || path.hops[..at].iter().any(|previous| previous.to == hop.from)
            };
            assert!(path.hops.iter().enumerate().all(comes_from), "{name} {}", path.name);
            assert_eq!(path.hops[0].from, path.start, "{name} {}", path.name);
        }
    }
}

/// Whether an event matches a step.
fn is_step(event: &Event<'_>, step: &ExampleStep) -> bool {
    let words: Vec<&str> = step.what.split(' ').collect();
    let address = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    match words.as_slice() {
        ["mmio", "write", gpa] => {
            event.is("kvm_mmio")
                && event.get("gpa") == Some(address(gpa))
                && event.get("type") == Some(2)
        }
        ["mmio", "read", gpa] => event.is("kvm_mmio") && event.get("gpa") == Some(address(gpa)),
        ["port", _, port] => event.is("kvm_pio") && event.get("port") == Some(address(port)),
        ["msr", _, msr] => event.is("kvm_msr") && event.get("ecx") == Some(address(msr)),
        ["hypercall", _] => event.is("kvm_hypercall") || event.is("kvm_hvc_arm64"),
        ["interrupt", "to", ..] => event.is("kvm_apic_ipi"),
        ["exit", _] => event.is("kvm_exit"),
        [.., "wakes", _] => event.is("sched_waking") || event.is("sched_wakeup"),
        ["wakes", ..] => event.is("sched_waking") || event.is("sched_wakeup"),
        [.., "runs"] => event.is("sched_switch"),
        [name] => event.is(name),
        _ => false,
    }
}

/// Each step of each example is an event at exactly that time, of the vCPU's thread if the step is a vCPU's.
#[test]
fn examples_have_happened() {
    for name in HOSTS {
        let recording = open(name);
        let all = events(&recording);
        let vcpu_threads: Vec<u64> =
            all.iter().filter(|event| event.is("kvm_exit")).map(Event::ran).collect();
        for path in of_host(name).paths {
            for step in path.examples.iter().flat_map(|example| &example.steps) {
                let from = all.partition_point(|event| event.ns < step.ts_ns);
                let at = all[from..].iter().take_while(|event| event.ns == step.ts_ns);
                let fits = |event: &&Event<'_>| {
                    let by_vcpu = vcpu_threads.contains(&event.ran()) || event.is("sched_switch");
                    let ran = if event.is("sched_switch") {
                        event.get("next_pid")
                    } else {
                        Some(event.ran())
                    };
                    let is_there = ran == Some(u64::from(step.place.thread));
                    is_step(event, step) && is_there && (step.on != Actor::Vcpu || by_vcpu)
                };
                assert!(at.filter(fits).count() > 0, "{name} {}: {step:?}", path.name);
            }
        }
    }
}

/// Number and total time of accesses that user space handled.
fn naive_answers(all: &[Event<'_>], thread: u64) -> (u64, u64) {
    let (mut accessed, mut asks_user) = (None, false);
    let (mut count, mut sum_ns) = (0, 0);
    for event in all.iter().filter(|event| event.ran() == thread) {
        match event.format.name() {
            "kvm_exit" => (accessed, asks_user) = (None, false),
            "kvm_mmio" | "kvm_pio" | "kvm_msr" | "kvm_hypercall" | "kvm_hvc_arm64" => {
                accessed = accessed.or(Some(event.ns));
            }
            "kvm_userspace_exit" => asks_user |= accessed.is_some(),
            "kvm_entry" => {
                if let Some(from_ns) = accessed.filter(|_| asks_user) {
                    count += 1;
                    sum_ns += event.ns - from_ns;
                }
                (accessed, asks_user) = (None, false);
            }
            _ => {}
        }
    }
    (count, sum_ns)
}

/// The VMM emulates the console of an Arm guest: each access goes to user space and back.
#[test]
fn answers_of_user_space_are_all_found() {
    for name in ["arm64/B-vhost-off.dat", "arm64/B-vhost-on.dat"] {
        let recording = open(name);
        let all = events(&recording);
        let thread = all.iter().find(|event| event.is("kvm_exit")).unwrap().ran();
        let of_vcpu = |path: &&Path| {
            path.start.contains("0x9000")
                && path.returns
                && path.hops.iter().any(|hop| hop.to == "kvm_userspace_exit")
        };
        let found = of_host(name);
        let answered: Vec<&Path> = found.paths.iter().filter(of_vcpu).collect();
        let count: u64 = answered.iter().map(|path| path.total.count()).sum();
        let sum_ns: u64 = answered.iter().map(|path| path.total.sum()).sum();
        assert_eq!((count, sum_ns), naive_answers(&all, thread), "{name}");
    }
}

/// The address of the kick of a guest's network driver.
const DOORBELL: u64 = 0x80_0000_3004;

/// Kicks that woke a worker which then ran, with the times until the wake-up and until the run.
fn naive_kicks(all: &[Event<'_>], vcpu: u64, worker: u64) -> Vec<(u64, u64)> {
    let mut kicks = Vec::new();
    let mut rung = None;
    for (at, event) in all.iter().enumerate() {
        if event.ran() == vcpu && event.is("kvm_mmio") && event.get("gpa") == Some(DOORBELL) {
            rung = Some(event.ns);
        } else if event.ran() == vcpu && event.is("kvm_entry") {
            rung = None;
        } else if event.ran() == vcpu
            && event.is("sched_waking")
            && event.get("pid") == Some(worker)
        {
            let runs = all[at..].iter().find(|event| event.resumes(worker));
            if let (Some(rung), Some(runs)) = (rung.take(), runs) {
                kicks.push((event.ns - rung, runs.ns - event.ns));
            }
        }
    }
    kicks
}

/// Every kick with a wake-up is on a path, with the times that were counted here. With vhost the worker is a
/// kernel thread, otherwise the VMM's main thread.
#[test]
fn doorbells_are_followed_to_who_sends() {
    for (name, on) in
        [("arm64/B-vhost-on.dat", Actor::Vhost), ("arm64/B-vhost-off.dat", Actor::Iothread)]
    {
        let recording = open(name);
        let all = events(&recording);
        let vcpu = all.iter().find(|event| event.is("kvm_exit")).unwrap().ran();
        let worker = all.iter().find(|event| event.is("kp_tun_get_user")).unwrap().ran();
        let kicks = naive_kicks(&all, vcpu, worker);
        let found = of_host(name);
        let woken = format!("wakes {}", on.name());
        let direct = found.paths.iter().filter(|path| {
            path.start == format!("mmio write {DOORBELL:#x}")
                && path.hops[0].to == woken
                && path.hops.get(1).is_some_and(|hop| hop.on == on)
        });
        let direct: Vec<&Path> = direct.collect();
        // Hops of optional steps have fewer times than the path has requests.
        let count: u64 = direct.iter().map(|path| path.hops[0].times.count()).sum();
        let missing = kicks.len() as u64 - count;
        assert!(kicks.len() > 100 && missing <= found.unfinished, "{name}: {missing} missing");
        // Requests on paths have the times counted here; unfinished ones are excluded.
        let sums =
            [0, 1].map(|hop| direct.iter().map(|path| path.hops[hop].times.sum()).sum::<u64>());
        let all_of =
            [kicks.iter().map(|kick| kick.0).sum::<u64>(), kicks.iter().map(|kick| kick.1).sum()];
        let longest = [
            kicks.iter().map(|kick| kick.0).max().unwrap(),
            kicks.iter().map(|kick| kick.1).max().unwrap(),
        ];
        for hop in [0, 1] {
            let missing_ns = all_of[hop] - sums[hop];
            assert!(
                missing_ns <= missing * longest[hop],
                "{name} hop {hop}: {missing_ns} ns missing"
            );
        }
    }
}

/// Each request is on exactly one path, and each nanosecond of it in exactly one hop, however paths are merged.
#[test]
fn hops_of_a_path_add_up_to_its_time_with_optional_steps() {
    for (name, max) in [
        ("x86-svm/host-guest.dat", 35),
        ("x86-svm/tsc.dat", 44),
        ("arm64/A.dat", 58),
        ("arm64/B-vhost-on.dat", 34),
        ("arm64/B-vhost-off.dat", 23),
        ("arm64/D.dat", 32),
    ] {
        let found = of_host(name);
        let sum = |value_of: fn(&Path) -> u64| found.paths.iter().map(value_of).sum::<u64>();
        assert_eq!(sum(|path| path.total.count()) + found.others, found.requests, "{name}");
        let variants = sum(|path| path.variants);
        assert!(found.paths.len() <= max, "{name}: {} of {variants}", found.paths.len());
        for path in &found.paths {
            let hops_ns: u64 = path.hops.iter().map(|hop| hop.times.sum()).sum();
            assert_eq!(hops_ns, path.total.sum(), "{name}: {}", path.name);
            let is_taken = |hop: &Hop| (1..=path.total.count()).contains(&hop.times.count());
            assert!(path.hops.iter().all(is_taken), "{name}: {}", path.name);
            assert_eq!(path.hops.last().unwrap().times.count(), path.total.count());
            let optional = path.hops.iter().any(|hop| hop.times.count() < path.total.count());
            assert_eq!(optional, path.variants > 1, "{name}: {}", path.name);
            for example in &path.examples {
                assert!(example.hops.is_sorted(), "{name}: {}", path.name);
                assert!(example.steps.is_sorted_by_key(|step| step.ts_ns), "{name}: {}", path.name);
                assert_eq!(example.hops.len() + 1, example.steps.len(), "{name}: {}", path.name);
            }
            let total_ns = |kind| path.example(kind).map(Example::total_ns);
            assert_eq!(total_ns(ExampleOf::Worst), path.total.max(), "{name}: {}", path.name);
            assert!(total_ns(ExampleOf::Median).is_some(), "{name}: {}", path.name);
            let [p99] = path.total.percentiles([990]);
            let (p99, shown) = (p99.unwrap(), total_ns(ExampleOf::P99).unwrap());
            assert!(shown.abs_diff(p99) <= p99 / 8 + 1, "{name}: {} {shown} {p99}", path.name);
        }
    }
}

/// A request of an AMD guest: the driver's write, the vhost worker, QEMU, which raises the interrupt, and the
/// guest's handler, which reads the device's status.
#[test]
fn a_request_goes_over_vhost_and_qemu_and_comes_back() {
    let found = found(&mut [open("x86-svm/host-guest.dat"), open("x86-svm/host-guest.guest.dat")]);
    let expected = [
        ("wakes vhost", Actor::Vcpu),
        ("vhost runs", Actor::Vhost),
        ("wakes iothread", Actor::Vhost),
        ("iothread runs", Actor::Iothread),
        ("kvm_set_irq", Actor::Iothread),
        ("kvm_exit", Actor::Vcpu),
        ("kvm_entry", Actor::Vcpu),
        ("mmio read 0xfeb02e60", Actor::Vcpu),
    ];
    let path = found.paths.iter().find(|path| {
        let steps = path.hops.iter().filter(|hop| 10 * hop.times.count() > path.total.count());
        let mut steps = steps.map(|hop| (hop.to.as_str(), hop.on));
        expected.iter().all(|step| steps.any(|hop| hop == *step))
    });
    let path = path.unwrap();
    assert_eq!(path.start, "mmio write 0xfeb02e50");
    assert!(path.returns && path.total.count() > 100, "{}", path.total.count());
}
