//! Compares the data that a host publishes to a guest about its vCPUs with the host's own recording of the
//! same time, while another, unrelated VM runs.

use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::hangs::Machines;
use crate::recorded::{Recorded, hyperscope, json};
use crate::tool::can_run_all;

/// How long the guest watches.
const SECONDS: u64 = 8;
/// Each trace reads the clock separately: the readings are a microsecond or two apart, except for the few
/// events between which the emulated machine was preempted.
const NEAR_NS: u64 = 20_000;
/// Another VM: it boots a kernel that finds no root, and stops there.
const OTHER: &str = "qemu-system-x86_64 -nodefaults -no-user-config -display none -L /usr/share/qemu \
    -L /usr/share/seabios -name other,debug-threads=on -accel kvm -cpu host -smp 1 -m 96M \
    -kernel /lab/guest/vmlinuz -append quiet -device ivshmem-plain,memdev=shm";

#[test]
fn a_guest_learns_what_happens_to_its_own_vcpus_and_nothing_else() {
    if !can_run_all() {
        return;
    }
    let mut machines = Machines::new(|| Recorded::up("publish"));
    machines.work(2, |recorded| {
        refuse(recorded);
        kill(recorded);
        report(recorded);
    });
}

/// Guests that are not named, or whose memory is shared with others, get no data.
fn refuse(recorded: &Recorded) {
    let lab = &recorded.lab;
    lab.shell(2, "hyperscope-agent steal --for 1 2>&1 | grep 'reports nothing about its vCPUs'")
        .done();
    start_other(recorded, "/run/lab/l2/memory");
    let refused = [
        ("nobody", "no VM nobody"),
        ("l2=shm:/bin/hyperscope", "is not memory of l2"),
        ("l2", "is also memory of other"),
        ("other", "is also memory of l2"),
    ];
    for (guest, why) in refused {
        let ran = lab.shell(1, &format!("hyperscope publish --for 1 --guest {guest}"));
        assert!(ran.code == Some(1) && ran.stderr.contains(why), "{guest}: {}", ran.stderr);
    }
    lab.shell(
        1,
        "kill $(cat /tmp/other.pid); while pidof qemu-system-x86_64 | grep ' '; do :; done",
    )
    .done();
    lab.shell(2, "! hyperscope-agent steal --for 1").done();
}

/// After a kill, no probe stays active.
fn kill(recorded: &Recorded) {
    let script = "rm -f /tmp/publish.log; (hyperscope publish --guest l2 >/tmp/publish.log 2>&1 & echo $! >/tmp/publish.pid); \
        until grep -qs publishing /tmp/publish.log; do sleep 0.1; done; \
        instance=/sys/kernel/tracing/instances/hyperscope-$(cat /tmp/publish.pid); \
        [ -d $instance ] && kill -9 $(cat /tmp/publish.pid) && \
        while [ -d $instance ]; do sleep 0.1; done";
    recorded.lab.shell(1, script).done();
}

fn start_other(recorded: &Recorded, memory: &str) {
    let object = format!("memory-backend-file,id=shm,share=on,mem-path={memory},size=8M");
    let script = format!(
        "({OTHER} -object {object} >/tmp/other.log 2>&1 & echo $! >/tmp/other.pid); \
         until grep -q {memory} /proc/$(cat /tmp/other.pid)/maps; do sleep 0.1; done"
    );
    recorded.lab.shell(1, &script).done();
}

fn begin_to_record(recorded: &Recorded) -> Child {
    recorded.lab.shell(1, "rm -rf /tmp/r /tmp/end; mkfifo /tmp/end").done();
    let script = "hyperscope record --vm l2 -e kvm -e sched:sched_switch -e sched:sched_waking \
                  --clock x86-tsc -o /tmp/r -- cat /tmp/end";
    let mut recorder = recorded.lab.command(&["exec", "1", "--", "sh", "-c", script]);
    let recorder = recorder.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    recorded.lab.shell(1, "until pidof cat >/dev/null; do sleep 0.1; done").done();
    recorder
}

fn report(recorded: &Recorded) {
    let lab = &recorded.lab;
    let recorder = begin_to_record(recorded);
    start_other(recorded, "/tmp/other");
    let publish = "rm -f /tmp/publish.log; (hyperscope publish --guest l2 >/tmp/publish.log 2>&1 & echo $! >/tmp/publish.pid); \
        until grep -qs publishing /tmp/publish.log; do sleep 0.1; done; \
        instance=/sys/kernel/tracing/instances/hyperscope-$(cat /tmp/publish.pid); \
        cat $instance/set_event_pid; echo --; grep -l '^CPU [01]/KVM' \
        /proc/$(pidof qemu-system-x86_64 | xargs -n 1 | grep -v $(cat /tmp/other.pid))/task/*/comm \
        | cut -d/ -f5";
    let threads = lab.shell(1, publish).done().stdout;
    let (traced, vcpu_tids) = threads.split_once("--").unwrap();
    let vcpu_tids: Vec<u64> =
        vcpu_tids.split_whitespace().map(|tid| tid.parse().unwrap()).collect();
    let traced: Vec<u64> = traced.split_whitespace().map(|tid| tid.parse().unwrap()).collect();
    assert!(traced == vcpu_tids && vcpu_tids.len() == 2, "{threads}");
    let hog = format!(
        "taskset -p 1 {}; (timeout {} taskset 1 sh -c 'while :; do :; done' >/dev/null 2>&1 &)",
        vcpu_tids[0],
        SECONDS + 30
    );
    lab.shell(1, &hog).done();
    let look = format!(
        "(timeout {} taskset 1 sh -c 'while :; do :; done' &); (sleep 2; hyperscope-labguest exits \
         cpuid=300 hypercall=200) >/tmp/made & hyperscope-agent steal --for {SECONDS} \
         --interval {SECONDS} --format jsonl --record /tmp/steal.dat >/tmp/steal.jsonl && wait && \
         cat /tmp/steal.jsonl",
        SECONDS + 4
    );
    let shown: Value = serde_json::from_str(lab.shell(2, &look).done().stdout.trim()).unwrap();
    let (ended_well, log) = recorded.end(recorder);
    assert!(ended_well && log.contains(" 0 events lost"), "{log}");
    let end = "kill -INT $(cat /tmp/publish.pid); while [ -e /proc/$(cat /tmp/publish.pid) ]; do \
        sleep 0.1; done; cat /tmp/publish.log; ls /sys/kernel/tracing/instances; \
        cat /sys/kernel/debug/kvm/$(cat /tmp/other.pid)-*/exits; kill $(cat /tmp/other.pid)";
    let output = lab.shell(1, end).done().stdout;
    eprintln!("{output}");
    assert!(output.contains(" 0 events lost") && !output.contains("hyperscope-"), "{output}");
    let of_other: u64 = output.trim().lines().last().unwrap().parse().unwrap();
    assert!(of_other > 100, "the other VM has not run");
    lab.shell(1, "[ -z \"$(tr -d '\\0' </tmp/other | head -c 1)\" ]").done();
    check_shares(&shown);
    let folder = tempfile::tempdir().unwrap();
    let [host, steal] = ["host.dat", "steal.dat"].map(|file| folder.path().join(file));
    lab.run(&["get", "1", "/tmp/r/host.dat", host.to_str().unwrap()]).done();
    lab.run(&["get", "2", "/tmp/steal.dat", steal.to_str().unwrap()]).done();
    let losses = &json(&["exits", "--format", "json", steal.to_str().unwrap()])["losses"];
    assert_eq!(losses["events_lost"], 0, "{losses}");
    for (vcpu, tid) in vcpu_tids.into_iter().enumerate() {
        check_equal(&exits(&host, tid), &exits(&steal, 1000 + vcpu as u64), vcpu);
    }
}

/// Parts add up, and steal time equals that of the guest's kernel.
fn check_shares(shown: &Value) {
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats");
    let schema = std::fs::read_to_string(formats.join("steal.schema.json")).unwrap();
    let valid = jsonschema::validate(&serde_json::from_str(&schema).unwrap(), shown);
    assert!(valid.is_ok(), "{valid:?}");
    let vcpu = &shown["vcpus"][0];
    let ns = |key: &str| vcpu[key].as_u64().unwrap();
    let away = ["kernel", "user", "preempted", "waiting", "asleep", "unknown"];
    let away: u64 = away.iter().map(|part| ns(&format!("{part}_ns"))).sum();
    let span = ns("span_ns");
    assert!(span > SECONDS * 500_000_000, "{vcpu}");
    // Each one is rounded down separately.
    assert!(span - (ns("running_ns") + away) < 8 && ns("unknown_ns") == 0, "{vcpu}");
    let percent = |part: u64| part * 100 / span;
    let (stolen, by_kernel) = (ns("preempted_ns") + ns("waiting_ns"), ns("kernel_steal_ns"));
    eprintln!(
        "vCPU 0: {}% stolen by what its host publishes, {}% by its kernel",
        percent(stolen),
        percent(by_kernel)
    );
    // Two threads that want one CPU, and other work of level 1.
    assert!((30..75).contains(&percent(stolen)), "{vcpu}");
    assert!(percent(stolen.abs_diff(by_kernel)) <= 12, "{vcpu}");
    let by_others = vcpu["preempted_by"]["others_ns"].as_u64().unwrap();
    assert!(by_others * 2 > ns("preempted_ns"), "{vcpu}");
    let exits = vcpu["exits"].as_array().unwrap();
    assert!(exits.iter().any(|row| row["reason"] == "interrupt" || row["reason"] == "hlt"));
}

/// An exit of a thread: its code, its begin, its duration, and the preempted part.
#[derive(Clone, Copy, Debug)]
struct Exit {
    code: u64,
    at_ns: u64,
    took_ns: u64,
    preempted_ns: u64,
}

/// The complete exits of a thread in a recording.
fn exits(file: &Path, tid: u64) -> Vec<Exit> {
    let events = ["-e", "kvm:kvm_exit", "-e", "kvm:kvm_entry", "-e", "sched:sched_switch"];
    let arguments = ["events", "--format", "jsonl"].iter().chain(&events).copied();
    let arguments: Vec<&str> = arguments.chain(file.to_str()).collect();
    let (mut all, mut open, mut off) = (Vec::new(), None::<Exit>, None::<u64>);
    for line in hyperscope(&arguments).stdout.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let (at_ns, fields) = (event["ts_ns"].as_u64().unwrap(), &event["fields"]);
        match event["event"].as_str().unwrap() {
            "kvm:kvm_exit" if event["pid"] == tid => {
                let code = fields["exit_reason"].as_u64().unwrap();
                open = Some(Exit { code, at_ns, took_ns: 0, preempted_ns: 0 });
            }
            "kvm:kvm_entry" if event["pid"] == tid => {
                all.extend(open.take().map(|exit| Exit { took_ns: at_ns - exit.at_ns, ..exit }));
            }
            "sched:sched_switch" if fields["prev_pid"] == tid => {
                off = (fields["prev_state"].as_u64().unwrap() & 0xff == 0).then_some(at_ns);
            }
            "sched:sched_switch" if fields["next_pid"] == tid => {
                if let (Some(from_ns), Some(exit)) = (off.take(), &mut open) {
                    exit.preempted_ns += at_ns - from_ns.max(exit.at_ns);
                }
            }
            _ => {}
        }
    }
    all
}

/// Published exits equal the host's recorded ones, without gaps.
fn check_equal(host: &[Exit], published: &[Exit], vcpu: usize) {
    // The first exit may be cut.
    let published = &published[1..];
    assert!(published.len() > 100, "vCPU {vcpu}: {} exits", published.len());
    let codes = |exits: &[Exit]| exits.iter().map(|exit| exit.code).collect::<Vec<_>>();
    let (of_host, of_published) = (codes(host), codes(published));
    let found = of_host
        .windows(of_published.len())
        .enumerate()
        .filter(|(_, window)| *window == of_published);
    let found: Vec<usize> = found.map(|(at, _)| at).collect();
    assert_eq!(found.len(), 1, "vCPU {vcpu}: {of_published:?} is not once in {of_host:?}");
    let same: Vec<(&Exit, &Exit)> = host[found[0]..].iter().zip(published).collect();
    // The distance of the clocks; not from the first exit alone, because a single late one would affect all
    // others.
    let mut apart_ns: Vec<i64> = same
        .iter()
        .map(|(host, published)| host.at_ns.wrapping_sub(published.at_ns) as i64)
        .collect();
    apart_ns.sort_unstable();
    let apart_ns = apart_ns[apart_ns.len() / 2];
    let at = |(host, published): &(&Exit, &Exit)| {
        host.at_ns.abs_diff(published.at_ns.wrapping_add_signed(apart_ns))
    };
    let took = |(host, published): &(&Exit, &Exit)| host.took_ns.abs_diff(published.took_ns);
    let median = |distance: &dyn Fn(&(&Exit, &Exit)) -> u64| {
        let mut all: Vec<u64> = same.iter().map(distance).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    let medians = (median(&at), median(&took));
    assert!(medians.0.max(medians.1) < NEAR_NS, "vCPU {vcpu}: {medians:?}");
    let preempted = |exits: &mut dyn Iterator<Item = &Exit>| -> u64 {
        exits.map(|exit| exit.preempted_ns).sum()
    };
    let by_host = preempted(&mut same.iter().map(|(host, _)| *host));
    let by_published = preempted(&mut published.iter());
    assert!(by_host.abs_diff(by_published) <= by_host / 50 + 1_000_000, "{by_host} {by_published}");
    eprintln!(
        "vCPU {vcpu}: {} exits published are {} to {} of the host's {}; medians apart {} ns, lengths \
         {} ns; preempted {by_published} ns, by the host's recording {by_host} ns",
        published.len(),
        found[0],
        found[0] + published.len(),
        host.len(),
        medians.0,
        medians.1
    );
}
