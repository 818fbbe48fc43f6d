//! The result of a profile in one sentence: how much time there was, and what had most of it.

use analyses::profile::{CodeFrame, SampledMachine};
use printable::line;

use super::lines::{self, Line};
use super::{ProfileBy, ProfileReport};
use crate::greatest::greatest;
use crate::units::{count, plural, share, time};

pub(super) fn headline(report: &ProfileReport) -> String {
    let sources = line(&report.sources.join(", ")).into_owned();
    if report.is_empty() {
        return format!(
            "{sources}: no vCPUs and no samples: record kvm_entry and kvm_exit, or use record --sample."
        );
    }
    let shown_time =
        if report.profile.vcpus.is_empty() { of_machines(report) } else { of_vcpus(report) };
    let lines = lines::shown(report);
    let most = greatest(lines.iter().map(|row| (row.time.ns, row)));
    let most =
        most.filter(|(ns, _)| *ns > 0 && lines.len() > 1).map_or_else(String::new, |(_, row)| {
            let part = share(row.time.ns, row.whole_ns);
            format!("; {} had most ({part})", name(report, row))
        });
    format!("{sources}: {shown_time}{most}.")
}

/// What vCPUs' time the table is of.
fn of_vcpus(report: &ProfileReport) -> String {
    let profile = &report.profile;
    let ns = |time_ns| time(time_ns, profile.nanoseconds);
    let mut out =
        format!("{} of {}", ns(report.time_ns()), plural(profile.vcpus.len() as u64, "vCPU"));
    if report.busy_ns() != report.time_ns() {
        out += &format!(", {} without idling", ns(report.busy_ns()));
    }
    if report.threads {
        out += &format!(
            ", and {} of {} that work for VMs",
            ns(report.threads_ns()),
            plural(profile.threads.len() as u64, "other thread")
        );
    }
    out
}

/// The same where samples alone say how long anything ran.
fn of_machines(report: &ProfileReport) -> String {
    let machines = &report.profile.machines;
    let threads: usize = machines.iter().map(|machine| machine.threads.len()).sum();
    let samples = |machine: &SampledMachine| {
        let stacks = machine.threads.iter().flat_map(|thread| &thread.stacks);
        stacks.map(|(_, time)| time.samples).fold(0, u64::saturating_add)
    };
    let by: Vec<String> = machines
        .iter()
        .map(|machine| {
            format!("{} of {}", plural(samples(machine), "sample"), line(&machine.unit.event))
        })
        .collect();
    format!(
        "{} of {}, by {}; no vCPU exits were recorded",
        amount(report, report.shown_ns()),
        plural(threads as u64, "thread"),
        by.join(" and ")
    )
}

/// Time, or events where samples stand for these.
fn amount(report: &ProfileReport, amount: u64) -> String {
    let profile = &report.profile;
    let is_time =
        profile.nanoseconds && profile.machines.iter().all(|machine| machine.unit.nanoseconds);
    match profile.vcpus.as_slice() {
        [] if is_time => format!("{} of CPU time", time(amount, true)),
        [] => format!("{} events", count(amount)),
        _ => time(amount, profile.nanoseconds),
    }
}

/// A line above the table: what shares are of.
pub(super) fn of_shares(report: &ProfileReport, shown: &[Line<'_>]) -> String {
    let whole_ns = shown.first().map_or_else(|| report.shown_ns(), |line| line.whole_ns);
    let what = match &report.symbol {
        Some(name) => format!(" in {}", line(name)),
        None if report.threads => " of vCPUs and other threads".to_owned(),
        None if report.profile.vcpus.is_empty() => String::new(),
        None if report.busy_ns() != report.time_ns() => " without idling".to_owned(),
        None => " of vCPUs".to_owned(),
    };
    format!("\nShares of {}{what}\n", amount(report, whole_ns))
}

/// A row in words, by what rows are told apart by.
fn name(report: &ProfileReport, row: &Line<'_>) -> String {
    let vms = &report.profile.vcpus;
    let has_several = vms.iter().any(|vcpu| vcpu.vm != row.key.vm);
    let vm = (has_several || report.by == ProfileBy::Vm).then(|| row.key.vm.to_owned());
    let state = row.key.state.map(|state| state.name().to_owned());
    let state = state.or_else(|| row.key.part.map(|_| "host".to_owned()));
    let words = [
        vm.filter(|vm| !vm.is_empty()),
        state,
        row.key.reason.map(str::to_owned),
        row.key.comm.map(str::to_owned),
        row.function().map(CodeFrame::name),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    let unknown = if report.by == ProfileBy::Comm { "unknown threads" } else { "unknown code" };
    if words.is_empty() { unknown.to_owned() } else { line(&words.join(" ")).into_owned() }
}
