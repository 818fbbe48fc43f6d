//! What a reader of a profile must know: what samples are, how many, and what they can't say.

use analyses::Evidence;

use super::{ProfileBy, ProfileReport};
use crate::units::{count, plural, share, time};

pub(super) fn notes(report: &ProfileReport) -> Vec<String> {
    let rows = &report.profile.rows;
    let samples = rows.iter().map(|row| row.time.samples).fold(0, u64::saturating_add);
    let of_guest = |evidence: Option<Evidence>| {
        let rows = rows.iter().filter(|row| row.state.is_guest());
        let rows = rows.filter(|row| evidence.is_none_or(|one| row.evidence == one));
        rows.map(|row| row.time.ns).fold(0, u64::saturating_add)
    };
    let mut notes = Vec::new();
    let idle_ns = report.time_ns() - report.shown_ns();
    if idle_ns > 0 {
        notes.push(format!(
            "left out: {} in which guests had nothing to do; --idle shows it",
            time(idle_ns, report.profile.nanoseconds)
        ));
    }
    if report.by == ProfileBy::Symbol {
        notes.push(format!(
            "guests' code by {} that interrupts of the host caused, each for the time since the last one; {} of \
             the guests' time has none",
            plural(samples, "exit"),
            share(of_guest(Some(Evidence::None)), of_guest(None)),
        ));
        if samples > 0 {
            notes.push(
                "from, to: interval of 95% if each were drawn by itself. Timers of guest and host may line \
                 up, and then it is wider"
                    .to_owned(),
            );
        }
    }
    if report.profile.by_address && report.by != ProfileBy::Vm {
        notes.push(
            "guest_user and guest_kernel by address, where the guest's own recording doesn't say: the upper half \
             of addresses is taken for the kernel's"
                .to_owned(),
        );
    }
    let unnamed = unnamed(report);
    if report.by == ProfileBy::Symbol && !unnamed.is_empty() {
        notes.push(format!(
            "{}: functions need the guest's own recording, which has its kernel's symbols",
            unnamed.join(", ")
        ));
    }
    notes
}

/// VMs with samples in a kernel whose symbols are not known.
fn unnamed(report: &ProfileReport) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in &report.profile.rows {
        let Some(vcpu) = report.profile.vcpus.get(row.vcpu) else { continue };
        let is_unnamed = row.level == 1
            && row.frame.as_ref().is_some_and(|frame| frame.address.is_some())
            && !report.profile.named.contains(&vcpu.vm);
        let name = printable::line(&vcpu.vm).into_owned();
        if is_unnamed && !names.contains(&name) {
            names.push(name);
        }
    }
    let most = 4;
    if names.len() > most {
        let more = count((names.len() - most) as u64);
        names.truncate(most);
        names.push(format!("{more} more VMs"));
    }
    names
}
