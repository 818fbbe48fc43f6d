//! An interval as a text table, cut to the terminal's width.

use std::collections::BTreeMap;
use std::fmt::Write;

use raw_bytes::counted;
use shmring::spans::{Activity, By};

use crate::absences::Absence;
use crate::exits::{ExitKey, Exits};
use crate::rate::Rate;
use crate::shares::{Interval, VcpuShares};

/// Names of exits by `isa` and code.
pub(crate) type Names = BTreeMap<(u8, u32), String>;

/// Max reasons in the table.
const MAX_REASONS: usize = 12;

/// The kernel's name of an exit, or its code; `-` for an absence that no exit began.
pub(crate) fn reason(names: &Names, key: Option<ExitKey>) -> String {
    let Some((level, isa, code)) = key else { return "-".into() };
    let name = names.get(&(isa, code)).filter(|name| !name.is_empty());
    let name = name.cloned().unwrap_or_else(|| format!("{code:#x}"));
    if level > 1 { format!("{name} (level {level})") } else { name }
}

/// Additional data of the table.
#[derive(Debug)]
pub(crate) struct TableContext<'a> {
    pub(crate) rate: Rate,
    pub(crate) names: &'a Names,
    /// Nanoseconds of steal in the interval according to this kernel, by CPU.
    pub(crate) own_steal_ns: &'a BTreeMap<u32, u64>,
    /// A problem of the host, if any.
    pub(crate) warning: Option<&'a str>,
}

/// The table's lines.
pub(crate) fn lines(interval: &Interval, context: &TableContext<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(context.warning.map(str::to_owned));
    let seconds =
        interval.vcpus.iter().map(|shares| context.rate.ns(shares.ticks())).max().unwrap_or(0);
    lines.push(format!("last {} on this machine's clock, by its host", time(seconds)));
    lines.push(String::new());
    lines.push(
        "vCPU  running  stolen  kernel    user  asleep  unknown    exits/s  this kernel's steal"
            .to_owned(),
    );
    lines.extend(interval.vcpus.iter().map(|shares| vcpu(shares, context)));
    lines.extend(reasons(interval, context));
    lines.extend(replaced(interval, context));
    lines.extend(longest(interval, context));
    lines
}

fn vcpu(shares: &VcpuShares, context: &TableContext<'_>) -> String {
    let ticks = shares.ticks();
    if ticks == 0 {
        return format!("{:>4}  not published by the host", shares.vcpu);
    }
    let share = |part: u64| percent(part, ticks);
    let share_of = |activity| share(shares.away.ticks_of(activity));
    let ns = context.rate.ns(ticks);
    let own_steal = context
        .own_steal_ns
        .get(&shares.vcpu)
        .map_or("-".into(), |steal_ns| percent(*steal_ns, ns));
    let mut line = format!(
        "{:>4}  {:>7} {:>7} {:>7} {:>7} {:>7}  {:>7} {:>10}  {own_steal:>19}",
        shares.vcpu,
        share(shares.running()),
        share(shares.stolen()),
        share_of(Activity::Kernel),
        share_of(Activity::User),
        share_of(Activity::Asleep),
        share_of(Activity::Unknown),
        per_second(shares.away.count, ns),
    );
    let (lost, missed) = (shares.lost_events, shares.missed.saturating_add(shares.damage));
    if lost > 0 || missed > 0 {
        let (lost, missed) = (counted(lost, "event", "events"), counted(missed, "span", "spans"));
        let _ = write!(line, "  {lost} lost by the host, {missed} missed");
    }
    line
}

/// All vCPUs' exits by reason, sorted by descending time without sleep.
fn reasons(interval: &Interval, context: &TableContext<'_>) -> Vec<String> {
    let mut all: BTreeMap<ExitKey, Exits> = BTreeMap::new();
    for (key, exits) in interval.vcpus.iter().flat_map(|shares| &shares.exits) {
        let sum = all.entry(*key).or_default();
        sum.count = sum.count.saturating_add(exits.count);
        for (to, from) in sum.ticks.iter_mut().zip(exits.ticks) {
            *to = to.saturating_add(from);
        }
    }
    let mut all: Vec<(ExitKey, Exits)> = all.into_iter().collect();
    all.sort_by_key(|(key, exits)| {
        (std::cmp::Reverse(exits.total().saturating_sub(exits.ticks_of(Activity::Asleep))), *key)
    });
    if all.is_empty() {
        return Vec::new();
    }
    let longest = interval.vcpus.iter().map(VcpuShares::ticks).max().unwrap_or(0);
    let ns = context.rate.ns(longest);
    let row = |(key, exits): &(ExitKey, Exits)| {
        let stolen =
            exits.ticks_of(Activity::Preempted).saturating_add(exits.ticks_of(Activity::Waiting));
        format!(
            "{:<24} {:>9} {:>10} {:>10} {:>10} {:>10}",
            reason(context.names, Some(*key)),
            per_second(exits.count, ns),
            time(context.rate.ns(exits.ticks_of(Activity::Kernel))),
            time(context.rate.ns(exits.ticks_of(Activity::User))),
            time(context.rate.ns(stolen)),
            time(context.rate.ns(exits.ticks_of(Activity::Asleep))),
        )
    };
    let head = "exit                       count/s     kernel       user     stolen     asleep";
    let mut lines = vec![String::new(), head.to_owned()];
    lines.extend(all.iter().take(MAX_REASONS).map(row));
    let more = all.len().saturating_sub(MAX_REASONS);
    if more > 0 {
        lines.push("and ".to_owned() + &counted(more, "more reason", "more reasons"));
    }
    lines
}

/// A line with what ran instead of vCPUs.
fn replaced(interval: &Interval, context: &TableContext<'_>) -> Option<String> {
    let sum = |by: By| -> u64 {
        let ticks = interval.vcpus.iter().filter_map(|shares| shares.preempted_by.get(by as usize));
        ticks.fold(0, |sum, ticks| sum.saturating_add(*ticks))
    };
    let parts =
        [(By::Others, "others"), (By::OwnVmm, "this VM's VMM"), (By::OwnVcpu, "this VM's vCPUs")];
    let shares: Vec<String> = parts
        .into_iter()
        .map(|(by, name)| (name, sum(by)))
        .filter(|(_, ticks)| *ticks > 0)
        .map(|(name, ticks)| format!("{name} {}", time(context.rate.ns(ticks))))
        .collect();
    (!shares.is_empty()).then(|| format!("\npreempted by: {}", shares.join(", ")))
}

fn longest(interval: &Interval, context: &TableContext<'_>) -> Vec<String> {
    let ns = |ticks| context.rate.ns(ticks);
    let worth = interval.longest.iter().filter(|absence| absence.missed() > 0);
    let row = |absence: &Absence| {
        let stolen = absence
            .parts
            .ticks_of(Activity::Preempted)
            .saturating_add(absence.parts.ticks_of(Activity::Waiting));
        format!(
            "vCPU {:<3} {:>10} away, {:>9} of it stolen  {:<22} from {:.6} s",
            absence.vcpu,
            time(ns(absence.parts.total())),
            time(ns(stolen)),
            reason(context.names, absence.exit),
            seconds(ns(absence.start_tsc)),
        )
    };
    let rows: Vec<String> = worth.map(row).collect();
    if rows.is_empty() {
        return rows;
    }
    [vec![String::new(), "longest absences (times of the TSC)".to_owned()], rows].concat()
}

#[allow(clippy::cast_precision_loss, reason = "shown with six decimals")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[allow(clippy::cast_precision_loss, reason = "shown with one decimal")]
fn percent(part: u64, total: u64) -> String {
    if total == 0 {
        return "-".into();
    }
    format!("{:.1}%", 100.0 * part as f64 / total as f64)
}

fn per_second(count: u64, ns: u64) -> String {
    if ns == 0 {
        return "-".into();
    }
    let rate = u128::from(count) * 1_000_000_000 / u128::from(ns);
    rate.to_string()
}

/// A time with about three digits.
#[allow(clippy::cast_precision_loss, reason = "shown with one decimal")]
fn time(ns: u64) -> String {
    match ns {
        0 => "-".into(),
        1..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use shmring::spans::Span;

    use super::*;

    #[test]
    fn a_table_of_one_vcpu() {
        let mut shares =
            VcpuShares { vcpu: 3, from_tsc: 0, to_tsc: 1_000_000_000, ..VcpuShares::default() };
        let span = |activity, ticks, begins_exit| Span {
            start_tsc: 0,
            ticks,
            activity,
            by: By::Others,
            begins_exit,
            code: Some(0x60),
            isa: 2,
            level: 1,
        };
        shares.add(&span(Activity::Kernel, 10_000_000, true));
        shares.add(&span(Activity::Preempted, 400_000_000, false));
        let interval = Interval { vcpus: vec![shares, VcpuShares::default()], longest: Vec::new() };
        let names = Names::from([((2, 0x60), "interrupt".to_owned())]);
        let own_steal_ns = BTreeMap::from([(3, 390_000_000)]);
        let rate = Rate::new(Some(1_000_000_000)).unwrap();
        let context =
            TableContext { rate, names: &names, own_steal_ns: &own_steal_ns, warning: None };
        let text = lines(&interval, &context).join("\n");
        let wanted = "\
last 1.00 s on this machine's clock, by its host

vCPU  running  stolen  kernel    user  asleep  unknown    exits/s  this kernel's steal
   3    59.0%   40.0%    1.0%    0.0%    0.0%     0.0%          1                39.0%
   0  not published by the host

exit                       count/s     kernel       user     stolen     asleep
interrupt                        1    10.0 ms          -   400.0 ms          -

preempted by: others 400.0 ms";
        assert_eq!(text, wanted);
    }
}
