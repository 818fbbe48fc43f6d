//! `hyperscope serve` on a host whose VMs come and go: all exits of each are counted, its series end, and nothing of it
//! remains.

use std::time::{Duration, Instant};

use crate::tool::{TestLab, can_run_all};

/// Rounds of each VM, with four writes to ports each, and one more write.
const ROUNDS: u64 = 10;
const WRITES: u64 = 4 * ROUNDS + 1;
/// How long a VM's series stay after its end, including the interval without requests.
const SERIES_STAY: Duration = Duration::from_secs(60 + 10 + 5);
/// Max growth of the exporter while the number of VMs with series is constant: a map that is never emptied takes 500
/// bytes per VM, which shows after ten minutes.
const MAX_GROWTH_KIB: u64 = 128;
/// Max growth for series of more VMs than at first, and for their pages.
const MAX_FOR_SERIES_KIB: u64 = 4096;

/// The number of VMs; `HYPERSCOPE_CHURN_VMS=600` takes ten minutes at one per second.
fn vms() -> u64 {
    let setting = std::env::var("HYPERSCOPE_CHURN_VMS");
    setting.map_or(40, |text| text.parse().unwrap())
}

/// In level 1: an exporter; prints its process id.
const SERVE: &str = "
    hyperscope-labguest host
    hyperscope serve --interval 100ms >/tmp/said 2>&1 & echo $!
    until wget -qO- http://127.0.0.1:9797/healthz >/dev/null 2>&1; do sleep 0.2; kill -0 $! || exit 1; done";

/// VMs per command: commands of the lab have a timeout.
const AT_ONCE: u64 = 60;

/// Commands until the number of VMs with series is constant.
const UNTIL_ALL_SERIES: usize = 2;

/// Runs one VM after the other, about one per second.
fn run_vms(lab: &TestLab, vms: u64) {
    let script = format!("hyperscope-labguest vmm {ROUNDS} >/dev/null || exit 1; sleep 0.5");
    lab.shell(1, &format!("for vm in $(seq {vms}); do {script}; done")).done();
}

/// As [`run_vms`]; also returns the exporter's memory after each command.
fn run_many_vms(lab: &TestLab, vms: u64, process: &str) -> Vec<u64> {
    let begins = (0..vms).step_by(AT_ONCE as usize);
    let run = |first_vm| {
        run_vms(lab, AT_ONCE.min(vms - first_vm));
        memory_kib(lab, process)
    };
    begins.map(run).collect()
}

fn metrics(lab: &TestLab) -> String {
    lab.shell(1, "wget -qO- http://127.0.0.1:9797/metrics").done().stdout
}

/// The sum of a metric's samples with these labels.
fn sum(metrics: &str, name: &str, labels: &[&str]) -> f64 {
    let has = |line: &&str| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
            && labels.iter().all(|label| line.contains(label))
    };
    let value = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap();
    metrics.lines().filter(has).map(value).sum()
}

/// Number of VMs with series.
fn vms_with_series(metrics: &str) -> usize {
    let is_of_vm = |line: &&str| line.starts_with("hyperscope_vcpus{") && !line.contains("vm=\"\"");
    metrics.lines().filter(is_of_vm).count()
}

fn memory_kib(lab: &TestLab, process: &str) -> u64 {
    let line = lab.shell(1, &format!("grep VmRSS: /proc/{process}/status")).done().stdout;
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn vms_that_come_and_go_are_counted_whole_and_leave_nothing() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("churn");
    lab.run(&["up", "--levels", "1"]).done();
    lab.put_program(1);
    let process = lab.shell(1, SERVE).done().stdout.trim().to_owned();
    run_vms(&lab, 5);
    let first = metrics(&lab);
    let io = |text: &str| sum(text, "hyperscope_exits_total", &["reason=\"io\""]);
    assert_eq!(io(&first), (5 * WRITES) as f64, "{first}");
    let first_kib = memory_kib(&lab, &process);

    let (vms, start) = (vms(), Instant::now());
    let memory_kib_after = run_many_vms(&lab, vms, &process);
    let took = start.elapsed();
    let after = metrics(&lab);
    assert_eq!(sum(&after, "hyperscope_lost_exits_total", &[]), 0.0);
    let counted = sum(&after, "hyperscope_self_exits_total", &[]);
    assert!(counted >= ((5 + vms) * WRITES) as f64, "{counted}");
    std::thread::sleep(SERIES_STAY);
    let later = metrics(&lab);
    assert_eq!(vms_with_series(&later), 0, "{later}");
    let after_kib = memory_kib(&lab, &process);
    eprintln!(
        "{vms} VMs in {took:?}: {} with series after them, none later; {first_kib} KiB, then {memory_kib_after:?}, {after_kib} KiB",
        vms_with_series(&after)
    );
    if let Some([with_all_series_kib, .., end_kib]) = memory_kib_after.get(UNTIL_ALL_SERIES - 1..) {
        assert!(*end_kib <= with_all_series_kib + MAX_GROWTH_KIB, "{memory_kib_after:?}");
    }
    assert!(after_kib <= first_kib + MAX_FOR_SERIES_KIB, "{first_kib} KiB, then {after_kib} KiB");

    // A killed exporter leaves no BPF program in the kernel: the next one starts from zero.
    lab.shell(1, &format!("kill -9 {process}; sleep 1; rm -f /tmp/said")).done();
    let names = "for fd in /proc/*/fd/*; do readlink $fd; done 2>/dev/null | grep -c bpf";
    assert_eq!(lab.shell(1, names).stdout.trim(), "0");
    lab.shell(1, SERVE).done();
    run_vms(&lab, 1);
    assert_eq!(io(&metrics(&lab)), WRITES as f64);
}
