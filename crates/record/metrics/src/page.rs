//! All metrics of a moment, family by family: docs/serve.md has what each means.

use live::ACTIVITIES;

use crate::text::{Format, Kind, Labels, Seconds, Text};
use crate::totals::Totals;
use crate::vm::{Exits, HANDLED, PARTS, Times, Vm};

/// The metrics as text.
#[must_use]
pub fn page(totals: &Totals, format: Format) -> String {
    let mut text = Text::new(format);
    exits(totals, &mut text);
    durations(totals, &mut text);
    vcpus(totals, &mut text);
    own(totals, &mut text);
    lost(totals, &mut text);
    text.end()
}

/// Each VM with its name; the rest has none.
fn vms(totals: &Totals) -> impl Iterator<Item = (&str, &Vm)> {
    let named = totals.vms.iter().map(|(name, vm)| (name.as_str(), vm));
    named.chain([("", &totals.rest)])
}

/// Calls for the labels of each reason.
fn each_reason(totals: &Totals, mut say: impl FnMut(Labels<'_>, &Exits)) {
    for (name, vm) in vms(totals) {
        for ((level, reason), exits) in &vm.reasons {
            let level = level.to_string();
            say(&[("vm", name), ("level", &level), ("reason", reason)], exits);
        }
        say(&[("vm", name), ("level", "0"), ("reason", "other")], &vm.other);
    }
}

fn exits(totals: &Totals, text: &mut Text) {
    text.family("hyperscope_exits", Kind::Counter, "VM exits that ended.");
    each_reason(totals, |labels, exits| text.sample(labels, exits.count));
    text.family(
        "hyperscope_exit_seconds",
        Kind::Counter,
        "Where the time of VM exits went; before_exit is the host's work before the exit, all else lies between exit and entry.",
    );
    each_reason(totals, |labels, exits| {
        for (part, took_ns) in PARTS.iter().zip(exits.parts_ns) {
            text.sample(&[labels, &[("part", part)]].concat(), Seconds(took_ns));
        }
    });
    text.family(
        "hyperscope_exits_handled",
        Kind::Counter,
        "VM exits by who dealt with them: the kernel, the VMM (user), a nested hypervisor (l1).",
    );
    for (name, vm) in vms(totals) {
        for (by, count) in HANDLED.iter().zip(vm.handled) {
            text.sample(&[("vm", name), ("handled", by)], count);
        }
    }
}

fn durations(totals: &Totals, text: &mut Text) {
    text.family(
        "hyperscope_exit_duration_seconds",
        Kind::Histogram,
        "From exit to entry; waiting: after the exit the guest has nothing to do.",
    );
    for (name, vm) in vms(totals) {
        for (waiting, Times { histogram, sum_ns }) in ["false", "true"].iter().zip(&vm.durations) {
            text.histogram(&[("vm", name), ("waiting", waiting)], histogram, *sum_ns);
        }
    }
    text.family(
        "hyperscope_run_queue_wait_seconds",
        Kind::Histogram,
        "How long threads of vCPUs waited for a CPU, from being woken up or preempted to running.",
    );
    for (name, vm) in vms(totals) {
        text.histogram(&[("vm", name)], &vm.waits.histogram, vm.waits.sum_ns);
    }
}

fn vcpus(totals: &Totals, text: &mut Text) {
    text.family(
        "hyperscope_vcpu_seconds",
        Kind::Counter,
        "What threads of vCPUs did; the states of a VM add up to the time of its vCPUs.",
    );
    for (name, vm) in vms(totals) {
        for (activity, state) in ACTIVITIES {
            text.sample(&[("vm", name), ("state", state)], Seconds(vm.states.of(activity)));
        }
    }
    text.family("hyperscope_vcpus", Kind::Gauge, "vCPUs that have exited and have not ended.");
    for (name, vm) in vms(totals) {
        text.sample(&[("vm", name)], vm.vcpus);
    }
}

fn own(totals: &Totals, text: &mut Text) {
    let cost = totals.cost;
    text.family("hyperscope_self_cpu_seconds", Kind::Counter, "CPU time of hyperscope serve.");
    text.sample(&[], Seconds(cost.process_ns));
    if let Some(programs_ns) = cost.programs_ns {
        text.family(
            "hyperscope_self_bpf_seconds",
            Kind::Counter,
            "CPU time of its programs in the kernel.",
        );
        text.sample(&[], Seconds(programs_ns));
    }
    text.family("hyperscope_self_exits", Kind::Counter, "VM exits that its programs counted.");
    text.sample(&[], cost.exits);
    text.family("hyperscope_self_intervals", Kind::Counter, "Times that sums were read.");
    text.sample(&[], totals.intervals);
    text.family("hyperscope_self_series", Kind::Gauge, "Series on this page.");
    text.sample(&[], totals.series());
    text.family("hyperscope_self_series_limit", Kind::Gauge, "Series that there may be.");
    text.sample(&[], totals.most_series());
}

fn lost(totals: &Totals, text: &mut Text) {
    text.family(
        "hyperscope_lost_series",
        Kind::Gauge,
        "Series that had no room in the latest interval; their numbers are in reason other, or in the VM without a name.",
    );
    text.sample(&[], totals.left_out);
    text.family(
        "hyperscope_lost_exits",
        Kind::Counter,
        "VM exits of vCPUs that the kernel had no room for; they are in no other metric but hyperscope_self_exits_total.",
    );
    text.sample(&[], totals.lost.without_state);
    text.family("hyperscope_lost_waits", Kind::Counter, "Waits for a CPU that had no room.");
    text.sample(&[], totals.lost.waits);
    text.family(
        "hyperscope_lost_poll_pieces",
        Kind::Counter,
        "Stretches of exits in which polling was not looked for; it counts as kernel there.",
    );
    text.sample(&[], totals.lost.pieces);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::totals::tests::{interval, row, vcpu};

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
            let text = page(&totals, format);
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
        assert!(!page(&totals, Format::Text).contains("hyperscope_self_bpf_seconds"));
        let mut measured = interval(vec![], vec![]);
        measured.cost.programs_ns = Some(7);
        totals.add(&measured);
        let text = page(&totals, Format::Text);
        assert!(text.contains("\nhyperscope_self_bpf_seconds_total 0.000000007\n"));
    }

    #[test]
    fn names_can_not_add_lines_or_labels() {
        let mut totals = Totals::new(5_000);
        let evil = "a\"} 1\nhyperscope_evil 1\n\u{202e}\\";
        totals.add(&interval(vec![row(evil, "x\"", false, 1)], vec![vcpu(evil, 0)]));
        let text = page(&totals, Format::Text);
        assert!(!text.lines().any(|line| line.starts_with("hyperscope_evil")));
        assert!(text.contains(
            "hyperscope_vcpus{vm=\"a\\\"} 1\\\\nhyperscope_evil 1\\\\n\\\\u{202e}\\\\\"} 1\n"
        ));
        assert!(text.contains("reason=\"x\\\"\"} 1\n"));
    }
}
