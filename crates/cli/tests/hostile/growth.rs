//! Recordings that grow: eight times as much of anything takes at most twelve times the work. A quadratic loop would
//! take sixty-four times as much.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::extent::extent;

/// The growth of a shape, and the max growth of the work.
const GROWTH: usize = 8;
const MAX_WORK: f64 = 12.0;
/// Shorter times are too imprecise: they include the program's start and the clock's ticks.
const MIN_SECONDS: f64 = 0.1;
/// Other work on the machine makes processes look slower: one good run is enough.
const ATTEMPTS: usize = 4;

/// A text, written line by line.
#[derive(Default)]
struct Text {
    lines: String,
    micros: u64,
}

impl Text {
    /// Adds an event at the next time.
    fn event(&mut self, thread: (&str, usize), cpu: usize, event: &str) {
        self.micros += 3;
        let (seconds, micros) = (100 + self.micros / 1_000_000, self.micros % 1_000_000);
        let (comm, pid) = thread;
        writeln!(self.lines, "{comm}-{pid} [{cpu:03}] {seconds}.{micros:06}: {event}").unwrap();
    }

    fn exit(&mut self, thread: (&str, usize), cpu: usize, vcpu: usize, reason: &str) {
        self.event(thread, cpu, &format!("kvm_exit: vcpu {vcpu} reason {reason} rip 0x1000"));
        self.event(thread, cpu, &format!("kvm_entry: vcpu {vcpu}, rip 0x1000"));
    }
}

/// A shape: its name, its small size, and the function that writes it.
type Shape = (&'static str, usize, fn(&mut Text, usize));

/// Shapes with their small sizes. All have exits, so that verbs have work.
const SHAPES: [Shape; 16] = [
    ("events", 2000, |text, count| {
        (0..count).for_each(|_| text.exit(("CPU 0/KVM", 10), 0, 0, "HLT"));
    }),
    ("VMs", 1000, |text, count| {
        (0..count).for_each(|at| text.exit(("CPU 0/KVM", 10 + at), at % 4, 0, "HLT"));
    }),
    ("VMs, one vCPU after the other", 500, |text, count| {
        for vcpu in 0..2 {
            let comm = format!("CPU {vcpu}/KVM");
            (0..count).for_each(|at| text.exit((&comm, 10 + 2 * at + vcpu), at % 4, vcpu, "MSR"));
        }
    }),
    ("vCPUs", 1000, |text, count| {
        for vcpu in 0..count {
            text.exit((&format!("CPU {vcpu}/KVM"), 10 + vcpu), vcpu % 4, vcpu, "HLT");
        }
    }),
    ("threads", 2000, |text, count| {
        text.exit(("CPU 0/KVM", 10), 0, 0, "HLT");
        for at in 0..count {
            let (pid, next) = (100 + at, 101 + at);
            let switch = format!(
                "sched_switch: prev_comm=t{pid} prev_pid={pid} prev_prio=120 prev_state=S ==> \
                 next_comm=t{next} next_pid={next} next_prio=120"
            );
            text.event((&format!("t{pid}"), pid), 1, &switch);
        }
    }),
    ("wake-ups", 2000, |text, count| {
        text.exit(("CPU 0/KVM", 10), 0, 0, "HLT");
        for at in 0..count {
            let woken = 100 + (at * 7919) % count;
            let waking = format!("sched_waking: comm=t{woken} pid={woken} prio=120 target_cpu=001");
            text.event((&format!("t{}", 100 + at), 100 + at), at % 4, &waking);
        }
    }),
    ("losses", 1000, |text, count| {
        for at in 0..count {
            text.exit(("CPU 0/KVM", 10 + at % 50), at % 4, 0, "HLT");
            writeln!(text.lines, "CPU:{} [LOST 5 EVENTS]", at % 4).unwrap();
        }
    }),
    ("VMs and losses", 500, |text, count| {
        for at in 0..count {
            text.exit(("CPU 0/KVM", 10 + at), at % 4, 0, "HLT");
            writeln!(text.lines, "CPU:{} [LOST 5 EVENTS]", at % 4).unwrap();
        }
    }),
    ("CPUs", 60, |text, count| {
        (0..8 * count).for_each(|at| text.exit(("CPU 0/KVM", 10), at % count, 0, "HLT"));
    }),
    ("reasons and names", 1000, |text, count| {
        for at in 0..count {
            text.exit((&format!("vmm{at}x"), 10 + at % 8), 0, 0, &format!("R{at}"));
        }
    }),
    ("vCPUs that others interrupt", 500, |text, count| {
        for vcpu in 0..count {
            text.exit((&format!("CPU {vcpu}/KVM"), 10 + vcpu), vcpu % 4, vcpu, "HLT");
        }
        for vcpu in 0..count {
            let accepts = format!("kvm_apic_accept_irq: apicid {vcpu} vec 33 (Fixed|edge)");
            text.event(("vhost-9", 9), vcpu % 4, &accepts);
        }
    }),
    ("interrupts", 1000, |text, count| {
        text.exit(("CPU 0/KVM", 10), 0, 0, "HLT");
        for at in 0..count {
            let thread = ("CPU 0/KVM", 10);
            text.event(thread, 0, &format!("irq_handler_entry: irq={at} name=dev{at}"));
            text.event(thread, 0, &format!("irq_handler_exit: irq={at} ret=handled"));
        }
    }),
    ("threads and losses", 1000, |text, count| {
        text.exit(("CPU 0/KVM", 10), 0, 0, "HLT");
        for at in 0..count {
            let (pid, next) = (100 + at, 101 + at);
            let switch = format!(
                "sched_switch: prev_comm=t{pid} prev_pid={pid} prev_prio=120 prev_state=S ==> \
                 next_comm=t{next} next_pid={next} next_prio=120"
            );
            text.event((&format!("t{pid}"), pid), 1, &switch);
            writeln!(text.lines, "CPU:{} [LOST 5 EVENTS]", at % 4).unwrap();
        }
    }),
    ("queues and losses", 1000, |text, count| {
        text.exit(("CPU 0/KVM", 10), 0, 0, "HLT");
        for at in 0..count {
            let (thread, queue) = (("t", 100 + at), 0x1000 + at);
            text.event(thread, 1, &format!("vring_interrupt: (ffffffff81000000) vq={queue:#x}"));
            text.event(thread, 1, "vring_interrupt_return: (ffffffff81000000) handled=1");
            writeln!(text.lines, "CPU:{} [LOST 5 EVENTS]", at % 4).unwrap();
        }
    }),
    ("calls of a thread that was a vCPU", 1000, |text, count| {
        for vcpu in 0..count {
            text.exit((&format!("CPU {vcpu}/KVM"), 100 + vcpu), vcpu % 4, vcpu, "HLT");
        }
        let thread = ("CPU 0/KVM", 10);
        text.exit(thread, 0, 0, "HLT");
        text.event(thread, 0, "sched_process_exit: comm=CPU 0/KVM pid=10 prio=120");
        // More than are kept for one cycle.
        (0..16_500 + count)
            .for_each(|_| text.event(thread, 0, "sys_enter: NR 0 (0, 0, 0, 0, 0, 0)"));
    }),
    ("calls of functions", 1000, |text, count| {
        text.exit(("CPU 0/KVM", 10), 0, 0, "HLT");
        for at in 0..count {
            let thread = ("t", 100 + at);
            text.event(thread, 1, &format!("funcgraph_entry:              |  f{at}() {{"));
            text.event(thread, 1, "funcgraph_entry:  0.250 us    |    g();");
            text.event(thread, 1, "funcgraph_exit:   5.000 us    |  }");
            writeln!(text.lines, "CPU:{} [LOST 5 EVENTS]", at % 4).unwrap();
        }
    }),
];

/// Verbs that read recordings, with their arguments; `{}` is the file, `{copy}` a copy of it, `{out}` and `{page}` are
/// files to write.
const VERBS: [&str; 17] = [
    "info {}",
    "exits {}",
    "exits --by reason,task --format json {}",
    "cpu {}",
    "path {}",
    "events --format jsonl {}",
    "diff {} {copy}",
    "nested {}",
    "vmm {}",
    "irqs {}",
    "critical --task t101 {}",
    "advice {}",
    "profile {}",
    "virtio {}",
    "report -o {page} {}",
    "export --to perfetto -o {out} {}",
    "why {}",
];

fn program() -> PathBuf {
    let other = std::env::var_os("HYPERSCOPE_UNDER_TEST");
    other.map_or_else(|| env!("CARGO_BIN_EXE_hyperscope").into(), PathBuf::from)
}

/// The work of a verb: seconds of CPU time, which depends on other work of the machine much less than elapsed time
/// does.
fn work(verb: &str, folder: &Path) -> f64 {
    let file = |name: &str| folder.join(name);
    let arguments = verb.split(' ').map(|word| match word {
        "{}" => file("text.txt"),
        "{copy}" => file("copy.txt"),
        "{guest}" => file("guest.txt"),
        "{page}" => file("out.html"),
        "{out}" => file("out.trace"),
        word => PathBuf::from(word),
    });
    let script = "TIMEFORMAT='%3U %3S'; time \"$0\" \"$@\" > /dev/null 2> messages";
    let output = Command::new("bash")
        .args(["-c", script])
        .arg(program())
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let messages = fs::read_to_string(file("messages")).unwrap();
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 1)) && !messages.contains("Usage:"),
        "{verb}: {code:?} {messages}"
    );
    assert!(!messages.contains("memory"), "{verb}: {messages}");
    let times = String::from_utf8_lossy(&output.stderr).into_owned();
    times.split_whitespace().map(|seconds| seconds.parse::<f64>().unwrap()).sum()
}

fn write(shape: Shape, count: usize, folder: &Path) {
    let mut text = Text::default();
    shape.2(&mut text, count);
    fs::write(folder.join("text.txt"), &text.lines).unwrap();
    fs::write(folder.join("copy.txt"), &text.lines).unwrap();
}

/// Describes excessive growth of a verb's work, if any.
fn fault(shape: Shape, verb: &str, folders: (&Path, &Path)) -> Option<String> {
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let (little, much) = (work(verb, folders.0), work(verb, folders.1));
        if much <= MAX_WORK * little.max(MIN_SECONDS) {
            return None;
        }
        seen.push(format!("{little:.2} s to {much:.2} s"));
    }
    Some(format!("{}: {verb}: {}", shape.0, seen.join(", ")))
}

#[test]
fn eight_times_as_much_takes_at_most_twelve_times_the_work() {
    let (little, much) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut faults = Vec::new();
    for (number, shape) in SHAPES.into_iter().enumerate() {
        let count = shape.1 * extent(1, 4);
        write(shape, count, little.path());
        write(shape, GROWTH * count, much.path());
        for (at, verb) in VERBS.into_iter().enumerate() {
            // A sample reads each shape with one verb, mostly a different one.
            if extent((5 * number + 1) % 13 == at, true) {
                faults.extend(fault(shape, verb, (little.path(), much.path())));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Verbs that once looked at all VMs, threads or queues for each of them, or for each loss: a sample of these shapes.
#[test]
fn pages_of_many_vms_and_what_follows_many_vms_through_many_losses_grow_no_faster() {
    const READ: [(&str, usize, &str); 9] = [
        ("VMs", 400, "report -o {page} {}"),
        ("VMs and losses", 1000, "vmm {}"),
        ("VMs and losses", 1000, "path {}"),
        ("threads and losses", 2000, "critical --task t101 {}"),
        ("queues and losses", 2000, "virtio {}"),
        ("calls of a thread that was a vCPU", 1000, "vmm {}"),
        ("calls of functions", 2000, "calls {}"),
        ("VMs and losses", 1000, "why {}"),
        ("threads and losses", 2000, "why {}"),
    ];
    let (little, much) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut faults = Vec::new();
    for (name, count, verb) in READ {
        let shape = SHAPES.into_iter().find(|shape| shape.0 == name).unwrap();
        write(shape, count, little.path());
        write(shape, GROWTH * count, much.path());
        faults.extend(fault(shape, verb, (little.path(), much.path())));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A comparison has some rows per VM: each VM takes little memory, on both sides together.
#[test]
fn a_comparison_of_4000_vms_takes_less_than_24_mb() {
    let folder = TempDir::new().unwrap();
    let vms = SHAPES.into_iter().find(|shape| shape.0 == "VMs").unwrap();
    write(vms, 4000, folder.path());
    work("diff --max-memory 24M {} {copy}", folder.path());
}

/// A guest's recording with the recording of an unrelated host with many VMs: the search for its offset ends in bounded
/// time, and reports that it was stopped.
#[test]
fn a_guest_that_fits_none_of_many_vms_is_not_aligned_in_time() {
    let folder = TempDir::new().unwrap();
    let (mut host, mut guest) = (Text::default(), Text::default());
    // The complete test takes as many steps as a command may.
    let (vms, rounds, interrupts) = extent((8, 20, 100), (200, 400, 5000));
    for _ in 0..rounds {
        for vm in 0..vms {
            host.exit(("CPU 0/KVM", 10 + vm), vm % 4, 0, "HLT");
        }
    }
    for at in 0..interrupts {
        guest.event(("task", 7), 0, &format!("irq_handler_entry: irq={} name=dev", at % 9));
        guest.event(("task", 7), 0, &format!("irq_handler_exit: irq={} ret=handled", at % 9));
    }
    fs::write(folder.path().join("text.txt"), &host.lines).unwrap();
    fs::write(folder.path().join("guest.txt"), &guest.lines).unwrap();
    let seconds = work("align {} {guest}", folder.path());
    assert!(seconds < 120.0, "{seconds}");
    let table = Command::new(program())
        .arg("align")
        .args(["text.txt", "guest.txt"])
        .current_dir(folder.path())
        .output();
    let table = String::from_utf8(table.unwrap().stdout).unwrap();
    assert!(
        table.contains(extent("windows: ", "the search for an offset reached the step limit")),
        "{table}"
    );
}
