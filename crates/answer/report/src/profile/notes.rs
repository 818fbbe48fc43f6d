//! Notes on a profile: the kind of samples, their number, and their limits.

use analyses::profile::{CodeFrame, Evidence, SampledMachine};
use ftrace::eventfmt::Coverage;
use sources::WeightUnit;

use super::{ProfileBy, ProfileReport};
use crate::units::{count, plural, share, time};

/// Sentences, in the order of a report.
pub(crate) fn notes(report: &ProfileReport) -> Vec<String> {
    let mut notes = Vec::new();
    let idle_ns = report.time_ns().saturating_sub(report.busy_ns());
    if idle_ns > 0 {
        notes.push(format!(
            "left out: {} of guest idle time; --idle shows it",
            time(idle_ns, report.profile.nanoseconds)
        ));
    }
    let is_of_code = matches!(report.by, ProfileBy::Symbol | ProfileBy::Instruction);
    if !report.profile.vcpus.is_empty() && is_of_code {
        notes.extend(evidence_notes(report));
    }
    notes.extend(report.profile.machines.iter().flat_map(weight_notes));
    if report.by == ProfileBy::Instruction {
        notes.extend(instruction_notes(report));
    }
    if report.profile.by_address && report.by != ProfileBy::Vm {
        notes.push(
            "if the guest's own recording does not show guest_user and guest_kernel, addresses decide: the upper half counts as \
             kernel"
                .to_owned(),
        );
    }
    if report.by == ProfileBy::Symbol {
        notes.extend(unnamed_notes(report));
        notes.extend(place_notes(report));
    }
    notes
}

/// The weight of samples, if nothing else shows how long code ran.
fn weight_notes(machine: &SampledMachine) -> Vec<String> {
    let WeightUnit { event, nanoseconds, hz, others } = &machine.unit;
    let event = printable::line(event);
    let mut notes = vec![match (hz, nanoseconds) {
        (Some(hz), _) => format!(
            "each sample of {event} stands for 1/{} of a second, according to its rate",
            count(*hz)
        ),
        (None, true) => format!("each sample stands for its own period of {event}"),
        (None, false) => {
            format!("each sample stands for its own period of {event}: the values are not times")
        }
    }];
    if machine.idle_samples > 0 {
        let idle = plural(machine.idle_samples, "sample");
        notes.push(format!("left out: {idle} of idle CPUs"));
    }
    if *others > 0 {
        notes.push(format!("left out: {} of other events", plural(*others, "sample")));
    }
    notes
}

/// The evidence for the code, and its precision.
fn evidence_notes(report: &ProfileReport) -> Vec<String> {
    let rows = &report.profile.rows;
    let samples = |evidence| {
        let rows = rows.iter().filter(|row| row.evidence == evidence);
        rows.map(|row| row.time.samples).fold(0, u64::saturating_add)
    };
    let of_guest = |evidence: Option<Evidence>| {
        let rows = rows.iter().filter(|row| row.state.is_guest());
        let rows = rows.filter(|row| evidence.is_none_or(|evidence| row.evidence == evidence));
        rows.map(|row| row.time.ns).fold(0, u64::saturating_add)
    };
    let unseen = share(of_guest(Some(Evidence::None)), of_guest(None));
    let (sampled, exits) = (samples(Evidence::Host), samples(Evidence::Exits));
    let agent_samples = samples(Evidence::Agent);
    let by_exits = format!("{} caused by host interrupts", plural(exits, "exit"));
    let mut notes = vec![match (sampled, exits) {
        (0, 0) if agent_samples > 0 => format!("{unseen} of the guests' time has no sample"),
        (0, _) => format!(
            "guest code by {by_exits}, each for the time since the previous one; {unseen} of the guests' time has none"
        ),
        (_, 0) => format!(
            "code by {} of the host, each for the time since the previous one; {unseen} of the guests' time has none",
            plural(sampled, "sample")
        ),
        _ => format!(
            "code by {} of the host, or by {by_exits} if there are many more of them, each for the time since the previous one; \
             {unseen} of the guests' time has none",
            plural(sampled, "sample")
        ),
    }];
    notes.extend((agent_samples > 0).then(|| {
        format!("guest stacks by {} that guests took themselves", plural(agent_samples, "sample"))
    }));
    notes.extend(difference_notes(report));
    if sampled + exits + agent_samples > 0 {
        notes.push(
            "intervals assume independent samples: if timers of guest and host are in step, the true interval is wider"
                .to_owned(),
        );
    }
    notes
}

/// The difference between guests' own samples and those of their hosts, and its consequence.
fn difference_notes(report: &ProfileReport) -> impl Iterator<Item = String> {
    let raw = report.raw;
    report.profile.differences.iter().map(move |(vm, difference)| {
        let share = share(difference.moved_ns, difference.time_ns);
        let vm = printable::line(vm);
        let what = if raw {
            "the rows show the guest's samples (--raw)"
        } else {
            "the rows use the host's functions with the guest's stacks above them (--raw shows the guest's samples unchanged)"
        };
        format!(
            "{vm}: the guest's own samples assign {share} of its time to other functions than the host saw, because guest timers \
             cannot interrupt all code; {what}"
        )
    })
}

/// The limits of samples of instructions, and why some have no text.
fn instruction_notes(report: &ProfileReport) -> impl Iterator<Item = String> {
    let leaves =
        || report.profile.rows.iter().filter_map(|row| row.stack.last()?.instruction.as_ref());
    let (all, unread) =
        (leaves().count(), leaves().filter(|instruction| instruction.text.is_none()).count());
    let after = leaves().any(|instruction| instruction.is_after_guest);
    let skid = (all > 0).then(|| {
        "a sample shows the instruction that was about to run: most of its time belongs to the instructions before it"
            .to_owned()
    });
    let guest = after.then(|| {
        "after the guest: the previous instruction ran the guest or enabled interrupts; samples land there regardless of what \
         took the time"
            .to_owned()
    });
    let unread = (unread > 0).then(|| {
        format!(
            "{} of {} places have no instruction: record --sample saves the host kernel's code, --guest-sample the guest \
             kernel's code, and programs must be on this machine with the recorded build ids",
            count(unread as u64),
            count(all as u64)
        )
    });
    [skid, guest, unread].into_iter().flatten()
}

/// A note on code of programs without a known file.
fn place_notes(report: &ProfileReport) -> Option<String> {
    let in_guest = report.profile.rows.iter().filter(|row| row.state.is_guest());
    let mut leaves = in_guest.filter_map(|row| row.stack.last());
    leaves.any(CodeFrame::is_user_address).then(|| {
        "[user]+address: guest programs whose file is unknown (record --guest-sample records files); [user] combines all such \
         places with less than 1% each; csv and json show them"
            .to_owned()
    })
}

/// Why functions of VMs have no names.
fn unnamed_notes(report: &ProfileReport) -> impl Iterator<Item = String> {
    let reasons = [
        (
            Coverage::Missing,
            "to see functions, add the guest's own recording, which contains its kernel's symbols, or --guest-kallsyms",
        ),
        (
            Coverage::Hidden,
            "no function names: the guest's kernel hid the addresses of its symbols from the recorder (kernel.kptr_restrict)",
        ),
        (
            Coverage::Partial,
            "the guest's recording contains only some of its kernel's symbols, so other functions would get wrong names",
        ),
    ];
    reasons.into_iter().filter_map(|(coverage, why)| {
        let names = unnamed(report, coverage);
        (!names.is_empty()).then(|| format!("{}: {why}", names.join(", ")))
    })
}

/// VMs with samples in a kernel whose symbols are known to this extent.
fn unnamed(report: &ProfileReport, coverage: Coverage) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in &report.profile.rows {
        let Some(vcpu) = report.profile.vcpus.get(row.vcpu) else { continue };
        let is_unnamed = row.level == 1
            && !row.host_code
            && row.stack.last().is_some_and(|frame| frame.address.is_some() && !frame.user_space)
            && report.profile.symbols.get(&vcpu.vm).copied().unwrap_or_default() == coverage;
        let name = printable::line(&vcpu.vm).into_owned();
        if is_unnamed && !names.contains(&name) {
            names.push(name);
        }
    }
    let max = 4;
    if names.len() > max {
        let more = plural((names.len() - max) as u64, "more VM");
        names.truncate(max);
        names.push(more);
    }
    names
}
