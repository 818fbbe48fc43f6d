//! Findings about time: who pays, which reasons, which outliers.

use analyses::{ExitRow, KnownParts, Nested, NestedRow, Tally};

use super::{Finding, Link, Weight};
use crate::{Source, count, share, time as duration};

/// A reason has outliers if its 99th percentile is this many times its median.
const OUTLIER: u64 = 10;
/// Fewer exits have no percentiles worth a sentence.
const ENOUGH: u64 = 100;
/// Reasons reported for each VM.
const MOST_REASONS: usize = 2;

/// What one recording shows.
pub(super) fn of(source: &Source) -> Vec<Finding> {
    source.exits.vms.iter().flat_map(|vm| OfVm::new(source, &vm.name).findings()).collect()
}

/// The exits of one VM.
struct OfVm<'s> {
    source: &'s Source,
    vm: &'s str,
    rows: Vec<&'s ExitRow>,
    /// Over all of them, and over those that don't wait for work.
    all: Tally,
    working: Tally,
}

impl<'s> OfVm<'s> {
    fn new(source: &'s Source, vm: &'s str) -> Self {
        let of_vm = |row: &&ExitRow| row.group.vm.as_deref() == Some(vm);
        let rows: Vec<&ExitRow> = source.exits.rows.iter().filter(of_vm).collect();
        let (mut all, mut working) = (Tally::default(), Tally::default());
        for row in &rows {
            all.merge(&row.tally);
            if !row.waiting {
                working.merge(&row.tally);
            }
        }
        Self { source, vm, rows, all, working }
    }

    fn findings(&self) -> Vec<Finding> {
        if self.all.count == 0 {
            return Vec::new();
        }
        let mut findings = vec![self.overall()];
        findings.extend(self.reasons());
        findings.extend(self.user());
        findings.extend(self.outliers());
        findings.extend(self.waiting_for_cpu());
        findings.extend(self.halt_poll());
        findings
    }

    fn time(&self, value: u64) -> String {
        duration(value, self.source.exits.nanoseconds)
    }

    fn link(&self, section: &'static str, row: Option<&ExitRow>) -> Link {
        Link {
            section,
            vm: Some(self.vm.to_owned()),
            level: row.and_then(|row| row.group.level),
            reason: row.and_then(|row| row.group.reason.clone()),
        }
    }

    /// How much there is, and who pays.
    fn overall(&self) -> Finding {
        let total = self.working.durations.sum();
        let idle = match self.all.durations.sum().saturating_sub(total) {
            0 => String::new(),
            idle => format!(", and {} more it waited for work", self.time(idle)),
        };
        let values = [
            self.vm,
            &count(self.all.count),
            &self.time(self.source.exits.span_ns),
            &self.time(total),
            &idle,
            &self.payers().join(", "),
        ];
        let sentence = "{} exited *{} times* in {}: handling that took *{}*{}. Who paid: {}.";
        Finding::new(Weight::Notice, sentence, &values).to(self.link("exits", None))
    }

    fn payers(&self) -> Vec<String> {
        let total = self.working.durations.sum();
        let parts = KnownParts::new(&self.working, &self.source.exits.recorded);
        [
            (Some(parts.kernel_ns), "kernel"),
            (parts.user_ns, "user space"),
            (parts.user_and_return_ns, "user space with the way back"),
            (parts.off_cpu_ns, "off the CPU"),
            (parts.halt_poll_ns, "halt polling"),
        ]
        .into_iter()
        .filter_map(|(part, name)| Some((part.filter(|&part| part > 0)?, name)))
        .map(|(part, name)| format!("{name} {}", share(part, total)))
        .collect()
    }

    /// The reasons that took longest.
    fn reasons(&self) -> Vec<Finding> {
        let working = self.rows.iter().filter(|row| !row.waiting && row.tally.paired() > 0);
        working.take(MOST_REASONS).map(|row| self.reason(row)).collect()
    }

    fn reason(&self, row: &ExitRow) -> Finding {
        let durations = &row.tally.durations;
        let [p99] = durations.percentiles([990]).map(Option::unwrap_or_default);
        let mean = durations.mean().unwrap_or_default().round() as u64;
        let values = [
            &share(durations.sum(), self.working.durations.sum()),
            self.vm,
            &reason_of(row),
            &count(row.tally.count),
            &self.time(mean),
            &self.time(p99),
        ];
        let sentence =
            "*{}* of that time of {} went to *{}*: {} exits of {} on average, 99% done within {}.";
        Finding::new(Weight::Notice, sentence, &values).to(self.link("exits", Some(row)))
    }

    /// What the VMM takes.
    fn user(&self) -> Option<Finding> {
        let user_ns = self.working.parts.user_ns;
        let working = self.rows.iter().filter(|row| !row.waiting);
        let costliest = working.max_by_key(|row| row.tally.parts.user_ns)?;
        if !self.source.exits.recorded.user || user_ns == 0 {
            return None;
        }
        let values = [
            &share(user_ns, self.working.durations.sum()),
            self.vm,
            &count(self.working.by_user),
            &share(costliest.tally.parts.user_ns, user_ns),
            &reason_of(costliest),
        ];
        let sentence =
            "*{}* of that time of {} was spent in *user space*, in {} exits; {} of it for {}.";
        let found = Finding::new(Weight::Notice, sentence, &values);
        Some(found.to(self.link("exits", Some(costliest))))
    }

    /// The reason most of whose exits are quick, and some of which are longest.
    fn outliers(&self) -> Option<Finding> {
        let enough = |row: &&&ExitRow| !row.waiting && row.tally.paired() >= ENOUGH;
        let candidates = self.rows.iter().filter(enough).filter_map(|row| {
            let [half, most] = row.tally.durations.percentiles([500, 990]);
            let (half, most) = (half?, most?);
            (most >= half.saturating_mul(OUTLIER)).then_some((most, half, row))
        });
        let (most, half, row) = candidates.max_by_key(|(most, ..)| *most)?;
        let longest = row.tally.durations.max().unwrap_or_default();
        let values =
            [&reason_of(row), self.vm, &self.time(half), &self.time(most), &self.time(longest)];
        let sentence = "*{}* of {} has outliers: half are done within {}, one in a hundred takes *over {}*, the longest {}.";
        let found = Finding::new(Weight::Notice, sentence, &values);
        Some(found.to(self.link("heat", Some(row))))
    }

    fn waiting_for_cpu(&self) -> Option<Finding> {
        let parts = KnownParts::new(&self.all, &self.source.exits.recorded);
        let runnable_ns = parts.runnable_ns.filter(|&ns| ns > 0)?;
        let total = self.all.durations.sum();
        let weight = if runnable_ns > total / 20 { Weight::Notice } else { Weight::Info };
        let values = [self.vm, &self.time(runnable_ns), &share(runnable_ns, total)];
        let sentence = "The vCPUs of {} waited *{}* in the run queue: {} of the time of all exits.";
        Some(Finding::new(weight, sentence, &values).to(self.link("timeline", None)))
    }

    fn halt_poll(&self) -> Option<Finding> {
        let parts = KnownParts::new(&self.all, &self.source.exits.recorded);
        let poll_ns = parts.halt_poll_ns.filter(|&ns| ns > 0)?;
        let values = [self.vm, &self.time(poll_ns), &share(poll_ns, self.all.durations.sum())];
        let sentence =
            "For {} the host *polled {}* before it gave up CPUs: {} of the time of all exits.";
        Some(Finding::new(Weight::Info, sentence, &values).to(self.link("timeline", None)))
    }
}

fn reason_of(row: &ExitRow) -> String {
    let reason = row.group.reason.clone().unwrap_or_default();
    match row.group.level {
        Some(2) => format!("{reason} (level 2)"),
        _ => reason,
    }
}

/// What exits of guests inside guests cost: the reason that took longest.
pub(super) fn nested(nested: &Nested) -> Option<Finding> {
    let reflected = |row: &&NestedRow| row.reflected > 0 && !row.never_returned();
    let row = nested.rows.iter().find(reflected)?;
    let per_exit = |exits: u64| exits as f64 / row.reflected as f64;
    let mean = row.round_trips.mean()?.round() as u64;
    let most = row.ancillary.iter().take(3);
    let most: Vec<String> =
        most.map(|one| format!("{} {:.1}x", one.reason, per_exit(one.count))).collect();
    let values = [
        &row.reason,
        &row.vm,
        &format!("{:.1} exits", per_exit(row.ancillary_count())),
        &most.join(", "),
        &duration(mean, nested.nanoseconds),
    ];
    let sentence = "An exit for {} of the guest inside {} brings about *{} of its parent* ({}); it runs again after {} on average.";
    let link = Link { section: "nested", vm: Some(row.vm.clone()), ..Link::default() };
    Some(Finding::new(Weight::Notice, sentence, &values).to(link))
}
