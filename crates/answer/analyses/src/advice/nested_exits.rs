//! Exits of nested guests, each of which causes many exits of the VM itself.

use super::measured::{Measured, texts};
use super::thresholds::{MAX_NAMED, MIN_EXITS, matters};
use super::{About, Advice, Amount, Fact, SavingOf};
use crate::nested::{AncillaryRow, NestedRow};

/// Ancillary exits that hardware can avoid, and the setting for that.
struct Spared {
    reasons: &'static [&'static str],
    what: &'static str,
    how: &'static str,
}

static SPARED: [Spared; 3] = [
    Spared {
        reasons: &["VMREAD", "VMWRITE"],
        what: "exits for reads and writes of the VMCS",
        how: "Use VMCS shadowing: kvm_intel's enable_shadow_vmcs=1 on the host (the default on processors that support it)",
    },
    Spared {
        reasons: &["vmload", "vmsave"],
        what: "exits for VMLOAD and VMSAVE",
        how: "Use virtual VMLOAD and VMSAVE: kvm_amd's vls=1 on the host (the default on processors that support it)",
    },
    Spared {
        reasons: &["stgi", "clgi"],
        what: "exits for STGI and CLGI",
        how: "Use a virtual global interrupt flag: kvm_amd's vgif=1 on the host (the default on processors that support it)",
    },
];

/// The saving is at most the time of all ancillary exits.
pub(super) fn advise(measured: &Measured<'_>) -> Vec<Advice> {
    // Ancillary exits while a nested guest waits for work have no cost.
    let reflected = |row: &&&NestedRow| row.reflected > 0 && !row.never_returned() && !row.waiting;
    let rows: Vec<&NestedRow> = measured.nested.iter().filter(reflected).copied().collect();
    let brought: Vec<&AncillaryRow> = rows.iter().flat_map(|row| &row.ancillary).collect();
    let time = |all: &mut dyn Iterator<Item = &AncillaryRow>| {
        all.map(|row| row.durations.sum()).fold(0, u64::saturating_add)
    };
    let exits: u64 = rows.iter().map(|row| row.reflected).sum();
    let brought_ns = time(&mut brought.iter().copied());
    if exits < MIN_EXITS || !matters(brought_ns, measured.running_ns) {
        return Vec::new();
    }
    let per_exit = |number: u64, exit_count: u64| number as f64 / exit_count.max(1) as f64;
    let count = brought.iter().map(|row| row.count).sum();
    let mut evidence = vec![
        Fact::new("reflected exits of nested guests", Amount::Count(exits)),
        Fact::new("ancillary exits for each of them", Amount::Ratio(per_exit(count, exits))),
        Fact::new("time of the ancillary exits", Amount::Time(brought_ns)),
    ];
    evidence.extend(rows.iter().take(MAX_NAMED).map(|row| {
        let ratio = per_exit(row.ancillary_count(), row.reflected);
        Fact::new(format!("for each {}", row.reason), Amount::Ratio(ratio))
    }));
    let mut helps = Vec::new();
    for spared in &SPARED {
        let is_spared = |row: &&AncillaryRow| spared.reasons.contains(&row.reason.as_str());
        let spared_ns = time(&mut brought.iter().copied().filter(is_spared));
        if matters(spared_ns, measured.running_ns) {
            evidence.push(Fact::new(spared.what, Amount::Time(spared_ns)));
            helps.push(spared.how.to_owned());
        }
    }
    helps.extend(texts(&[
        "Reduce exits of the nested guest: virtio with ioeventfd and vhost inside the VM, huge pages for the nested guest, fewer timers",
        "Avoid nesting for I/O-heavy workloads: pass a host device through, or run the guest at level 1",
    ]));
    vec![Advice {
        title: "Each exit of a nested guest causes several exits of its parent".to_owned(),
        why: "When a nested guest exits and its own hypervisor has to handle it, the host hands the exit to that hypervisor. \
              Until the nested guest runs again, the hypervisor itself exits for each privileged instruction that the hardware \
              does not virtualise."
            .to_owned(),
        helps,
        evidence,
        saving_at_most_ns: brought_ns,
        saving_of: SavingOf::Time,
        ..measured.about(About::Nested)
    }]
}
