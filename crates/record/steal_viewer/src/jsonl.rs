//! An interval as one line of JSON: docs/formats/steal.schema.json. Names have only letters, digits and a few
//! punctuation characters (`shmring::spans` filters all others), so nothing needs escaping.

use std::fmt::Write;

use shmring::spans::{Activity, By};

use crate::absences::Absence;
use crate::exits::Exits;
use crate::shares::{Interval, VcpuShares};
use crate::table::{TableContext, reason};

/// The line, without a newline.
pub(crate) fn line(interval: &Interval, context: &TableContext<'_>) -> String {
    let mut out = String::from("{\"schema\":\"hyperscope.steal/1\",\"vcpus\":[");
    joined(&mut out, &interval.vcpus, |out, shares| vcpu(out, shares, context));
    out.push_str("],\"longest\":[");
    joined(&mut out, &interval.longest, |out, entry| absence(out, entry, context));
    out.push_str("],\"warning\":");
    match context.warning {
        Some(warning) => {
            let _ = write!(out, "\"{warning}\"}}");
        }
        None => out.push_str("null}"),
    }
    out
}

fn joined<T>(out: &mut String, all: &[T], write_entry: impl Fn(&mut String, &T)) {
    for (index, item) in all.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_entry(out, item);
    }
}

/// Writes the parts of a time. Together with the guest's time they add up to the interval, in nanoseconds as in ticks.
fn parts(out: &mut String, exits: &Exits, context: &TableContext<'_>) {
    for activity in Activity::ALL {
        let _ = write!(
            out,
            "\"{}_ns\":{},",
            activity.name(),
            context.rate.ns(exits.ticks_of(activity))
        );
    }
}

fn vcpu(out: &mut String, shares: &VcpuShares, context: &TableContext<'_>) {
    let ns = |ticks| context.rate.ns(ticks);
    let _ = write!(
        out,
        "{{\"vcpu\":{},\"from_tsc\":{},\"to_tsc\":{},\"span_ns\":{},\"running_ns\":{},",
        shares.vcpu,
        shares.from_tsc,
        shares.to_tsc,
        ns(shares.ticks()),
        ns(shares.running()),
    );
    parts(out, &shares.away, context);
    out.push_str("\"preempted_by\":{");
    joined(out, &By::ALL, |out, by| {
        let ticks = shares.preempted_by.get(*by as usize).copied().unwrap_or(0);
        let _ = write!(out, "\"{}_ns\":{}", by.name(), ns(ticks));
    });
    let own_steal = context.own_steal_ns.get(&shares.vcpu);
    let own_steal = own_steal.map_or("null".to_owned(), u64::to_string);
    let _ = write!(
        out,
        "}},\"kernel_steal_ns\":{own_steal},\"events_lost\":{},\"spans_missed\":{},\"exits\":[",
        shares.lost_events,
        shares.missed.saturating_add(shares.damage),
    );
    let exits: Vec<_> = shares.exits.iter().collect();
    joined(out, &exits, |out, (key, exits)| {
        let (level, isa, code) = **key;
        let name = context.names.get(&(isa, code)).filter(|name| !name.is_empty());
        let name = name.map_or("null".to_owned(), |name| format!("\"{name}\""));
        let isa = match isa {
            1 => "\"vmx\"",
            2 => "\"svm\"",
            _ => "null",
        };
        let _ = write!(out, "{{\"level\":{level},\"isa\":{isa},\"reason\":{name},\"code\":{code},");
        parts(out, exits, context);
        let _ = write!(out, "\"count\":{}}}", exits.count);
    });
    out.push_str("]}");
}

fn absence(out: &mut String, entry: &Absence, context: &TableContext<'_>) {
    let ns = |ticks| context.rate.ns(ticks);
    let _ = write!(
        out,
        "{{\"vcpu\":{},\"start_tsc\":{},\"start_ns\":{},\"length_ns\":{},",
        entry.vcpu,
        entry.start_tsc,
        ns(entry.start_tsc),
        ns(entry.parts.total()),
    );
    parts(out, &entry.parts, context);
    let name = entry.exit.map(|exit| format!("\"{}\"", reason(context.names, Some(exit))));
    let _ = write!(out, "\"reason\":{}}}", name.unwrap_or_else(|| "null".into()));
}
