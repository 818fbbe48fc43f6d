//! All current metrics, family by family: docs/serve.md defines them.

use crate::ACTIVITIES;

use crate::metrics::exposition::{Exposition, Format, Kind, Labels, Value};
use crate::metrics::protobuf::Protobuf;
use crate::metrics::text::Text;
use crate::metrics::totals::Totals;
use crate::metrics::vm::{Exits, HANDLED, PARTS, Times, Vm};

/// Writes the metrics in a format.
#[must_use]
pub fn page(totals: &Totals, format: Format) -> Vec<u8> {
    if format == Format::Protobuf {
        let mut protobuf = Protobuf::default();
        write(totals, &mut protobuf);
        return protobuf.end();
    }
    let mut text = Text::new(format);
    write(totals, &mut text);
    text.end().into_bytes()
}

fn write(totals: &Totals, out: &mut dyn Exposition) {
    exits(totals, out);
    durations(totals, out);
    vcpus(totals, out);
    own_cost(totals, out);
    lost(totals, out);
}

/// Each VM with its name; the sum of the others has an empty name.
fn vms(totals: &Totals) -> impl Iterator<Item = (&str, &Vm)> {
    let named = totals.vms.iter().map(|(name, vm)| (name.as_str(), vm));
    named.chain([("", &totals.rest)])
}

/// Calls `say` with the labels of each reason.
fn each_reason(totals: &Totals, mut say: impl FnMut(Labels<'_>, &Exits)) {
    for (name, vm) in vms(totals) {
        for ((level, reason), exits) in &vm.reasons {
            let level = level.to_string();
            say(&[("vm", name), ("level", &level), ("reason", reason)], exits);
        }
        say(&[("vm", name), ("level", "0"), ("reason", "other")], &vm.other);
    }
}

fn exits(totals: &Totals, out: &mut dyn Exposition) {
    out.family("hyperscope_exits", Kind::Counter, "VM exits that ended.");
    each_reason(totals, |labels, exits| out.sample(labels, Value::Count(exits.count)));
    out.family(
        "hyperscope_exit_seconds",
        Kind::Counter,
        "Time of VM exits by part; before_exit is the host's work before the exit, all other parts lie between exit and entry.",
    );
    each_reason(totals, |labels, exits| {
        for (part, took_ns) in PARTS.iter().zip(exits.parts_ns) {
            out.sample(&[labels, &[("part", part)]].concat(), Value::Seconds(took_ns));
        }
    });
    out.family(
        "hyperscope_exits_handled",
        Kind::Counter,
        "VM exits by handler: the kernel, the VMM (user), a nested hypervisor (l1).",
    );
    for (name, vm) in vms(totals) {
        for (by, count) in HANDLED.iter().zip(vm.handled) {
            out.sample(&[("vm", name), ("handled", by)], Value::Count(count));
        }
    }
}

fn durations(totals: &Totals, out: &mut dyn Exposition) {
    out.family(
        "hyperscope_exit_duration_seconds",
        Kind::Histogram,
        "Time from exit to entry; waiting: after the exit, the guest is idle.",
    );
    for (name, vm) in vms(totals) {
        for (waiting, Times { histogram, sum_ns }) in ["false", "true"].iter().zip(&vm.durations) {
            out.histogram(&[("vm", name), ("waiting", waiting)], histogram, *sum_ns);
        }
    }
    out.family(
        "hyperscope_run_queue_wait_seconds",
        Kind::Histogram,
        "Time that vCPU threads waited for a CPU, from wake-up or preemption to running.",
    );
    for (name, vm) in vms(totals) {
        out.histogram(&[("vm", name)], &vm.waits.histogram, vm.waits.sum_ns);
    }
}

fn vcpus(totals: &Totals, out: &mut dyn Exposition) {
    out.family(
        "hyperscope_vcpu_seconds",
        Kind::Counter,
        "Time of vCPU threads by state; the states of a VM add up to the time of its vCPUs.",
    );
    for (name, vm) in vms(totals) {
        for (activity, state) in ACTIVITIES {
            out.sample(
                &[("vm", name), ("state", state)],
                Value::Seconds(vm.states.time_ns(activity)),
            );
        }
    }
    out.family(
        "hyperscope_nested_guest_seconds",
        Kind::Counter,
        "The part of hyperscope_vcpu_seconds in the state guest in which nested guests ran.",
    );
    for (name, vm) in vms(totals) {
        out.sample(&[("vm", name)], Value::Seconds(vm.states.nested_ns()));
    }
    out.family(
        "hyperscope_vcpus",
        Kind::Gauge,
        "vCPUs that have exited at least once and still exist.",
    );
    for (name, vm) in vms(totals) {
        out.sample(&[("vm", name)], Value::Count(vm.vcpus));
    }
}

fn own_cost(totals: &Totals, out: &mut dyn Exposition) {
    let cost = totals.cost;
    out.family("hyperscope_self_cpu_seconds", Kind::Counter, "CPU time of hyperscope serve.");
    out.sample(&[], Value::Seconds(cost.process_ns));
    if let Some(programs_ns) = cost.programs_ns {
        out.family(
            "hyperscope_self_bpf_seconds",
            Kind::Counter,
            "CPU time of its BPF programs in the kernel.",
        );
        out.sample(&[], Value::Seconds(programs_ns));
    }
    out.family("hyperscope_self_exits", Kind::Counter, "VM exits that its BPF programs counted.");
    out.sample(&[], Value::Count(cost.exits));
    out.family("hyperscope_self_intervals", Kind::Counter, "Number of times that sums were read.");
    out.sample(&[], Value::Count(totals.intervals));
    out.family("hyperscope_self_series", Kind::Gauge, "Series on this page.");
    out.sample(&[], Value::Count(totals.series() as u64));
    out.family("hyperscope_self_series_limit", Kind::Gauge, "Maximum number of series.");
    out.sample(&[], Value::Count(totals.most_series() as u64));
}

fn lost(totals: &Totals, out: &mut dyn Exposition) {
    out.family(
        "hyperscope_lost_series",
        Kind::Gauge,
        "Series beyond the limit in the latest interval; their numbers are in the reason other, or in the VM without a name.",
    );
    out.sample(&[], Value::Count(totals.left_out as u64));
    out.family(
        "hyperscope_lost_exits",
        Kind::Counter,
        "VM exits of vCPUs beyond the kernel's capacity; only hyperscope_self_exits_total includes them.",
    );
    out.sample(&[], Value::Count(totals.lost.without_state));
    out.family(
        "hyperscope_lost_waits",
        Kind::Counter,
        "Waits for a CPU beyond the kernel's capacity.",
    );
    out.sample(&[], Value::Count(totals.lost.waits));
    out.family(
        "hyperscope_lost_poll_pieces",
        Kind::Counter,
        "Parts of exits without a check for halt polling, which counts as kernel there.",
    );
    out.sample(&[], Value::Count(totals.lost.pieces));
    out.family(
        "hyperscope_lost_sched_events",
        Kind::Counter,
        "Switches and wake-ups of vCPUs that the kernel did not trace; time around them may count as another state.",
    );
    out.sample(&[], Value::Count(totals.lost.sched_events));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::totals::tests::{interval, row, vcpu};

    fn text(totals: &Totals) -> String {
        String::from_utf8(page(totals, Format::Text)).unwrap()
    }

    #[test]
    fn there_are_as_many_samples_as_are_promised() {
        let mut totals = Totals::new(5_000);
        let mut measured = interval(
            vec![
                row("web", "hlt", true, 3),
                row("web", "msr", false, 2),
                row("db", "msr", false, 1),
            ],
            vec![vcpu("web", 0), vcpu("web", 1), vcpu("db", 0)],
        );
        measured.cost.programs_ns = Some(7);
        totals.add(&measured);
        for format in [Format::Text, Format::OpenMetrics] {
            let text = String::from_utf8(page(&totals, format)).unwrap();
            let samples = text.lines().filter(|line| !line.starts_with('#')).count();
            assert_eq!(samples, totals.series());
            assert!(
                text.contains("hyperscope_exits_total{vm=\"web\",level=\"1\",reason=\"msr\"} 2\n")
            );
            assert!(text.contains("hyperscope_vcpus{vm=\"web\"} 2\n"));
        }
    }

    #[test]
    fn what_was_not_measured_is_not_there() {
        let mut totals = Totals::new(0);
        assert!(!text(&totals).contains("hyperscope_self_bpf_seconds"));
        let mut measured = interval(vec![], vec![]);
        measured.cost.programs_ns = Some(7);
        totals.add(&measured);
        let text = text(&totals);
        assert!(text.contains("\nhyperscope_self_bpf_seconds_total 0.000000007\n"));
    }

    #[test]
    fn names_can_not_add_lines_or_labels() {
        let mut totals = Totals::new(5_000);
        let evil = "a\"} 1\nhyperscope_evil 1\n\u{202e}\\";
        totals.add(&interval(vec![row(evil, "x\"", false, 1)], vec![vcpu(evil, 0)]));
        let text = text(&totals);
        assert!(!text.lines().any(|line| line.starts_with("hyperscope_evil")));
        assert!(text.contains(
            "hyperscope_vcpus{vm=\"a\\\"} 1\\\\nhyperscope_evil 1\\\\n\\\\u{202e}\\\\\"} 1\n"
        ));
        assert!(text.contains("reason=\"x\\\"\"} 1\n"));
    }
}
