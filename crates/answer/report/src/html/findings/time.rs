//! Findings about time: where it goes, which reasons take it, which exits are outliers.

use analyses::advice::About;
use analyses::cpu::TakenCpu;
use analyses::distribution::Distribution;
use analyses::exits::ExitRow;
use analyses::known_parts::KnownParts;
use analyses::nested::{Nested, NestedRow};
use analyses::recorded::RecordedParts;
use analyses::tally::Tally;

use super::vms::{ListedVms, RowsOfVm};
use super::{Finding, Link, Weight};
use crate::cpu::named;
use crate::{Source, counted, plural, share, time as duration};

/// A reason has outliers if its 99th percentile is this many times its median.
const OUTLIER: u64 = 10;
/// Min exits for percentiles to be mentioned.
const ENOUGH: u64 = 100;
/// Max threads that are named as users of the CPU.
const MAX_TAKERS: usize = 3;
/// Max reasons per VM.
const MAX_REASONS: usize = 2;

/// The findings of one recording.
pub(super) fn findings_of(source: &Source, takers: &[&TakenCpu]) -> Vec<Finding> {
    let exits = &source.exits;
    let mut working = Tally::default();
    exits.rows.iter().filter(|row| !row.waiting).for_each(|row| working.merge(&row.tally));
    let totals = Amounts::new(&working, &exits.recorded);
    let ListedVms { vms, others } = ListedVms::new(source, takers);
    let findings_of_vm = |vm| OfVm::new(source, vm, totals).findings();
    let mut findings: Vec<Finding> = vms.into_iter().flat_map(findings_of_vm).collect();
    findings.extend(others.finding(totals));
    findings
}

/// The totals of shares: the cost of exits if it is known, otherwise their time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amounts {
    cost_ns: Option<u64>,
    time_ns: u64,
}

impl Amounts {
    pub(super) fn new(tally: &Tally, recorded: &RecordedParts) -> Self {
        let cost_ns = KnownParts::new(tally, recorded).cost_ns;
        Self { cost_ns, time_ns: tally.durations.sum() }
    }

    pub(super) fn value(self) -> u64 {
        self.cost_ns.unwrap_or(self.time_ns)
    }

    pub(super) const fn name(self) -> &'static str {
        if self.cost_ns.is_some() { "cost" } else { "time" }
    }
}

/// The exits of one VM.
struct OfVm<'s> {
    source: &'s Source,
    vm: &'s str,
    rows: Vec<&'s ExitRow>,
    /// Sums over all exits, and over those that don't wait.
    all: Tally,
    working: Tally,
    /// Totals over all exits of the recording that don't wait, as in the table of exits.
    totals: Amounts,
    takers: Vec<&'s TakenCpu>,
}

impl<'s> OfVm<'s> {
    fn new(
        source: &'s Source,
        RowsOfVm { vm, rows, takers }: RowsOfVm<'s>,
        totals: Amounts,
    ) -> Self {
        let (mut all, mut working) = (Tally::default(), Tally::default());
        for row in &rows {
            all.merge(&row.tally);
            if !row.waiting {
                working.merge(&row.tally);
            }
        }
        Self { source, vm, rows, all, working, totals, takers }
    }

    fn findings(&self) -> Vec<Finding> {
        let mut findings = vec![self.overall()];
        findings.extend(self.reasons());
        findings.extend(self.user());
        findings.extend(self.outliers());
        findings.extend(self.run_queue());
        findings.extend(self.halt_poll());
        findings
    }

    /// The cost of exits if it is known, otherwise their time.
    fn times<'r>(&self, row: &'r ExitRow) -> &'r Distribution {
        if self.totals.cost_ns.is_some() { &row.tally.costs } else { &row.tally.durations }
    }

    fn amounts(&self, tally: &Tally) -> Amounts {
        Amounts::new(tally, &self.source.exits.recorded)
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

    /// The total, and its parts.
    fn overall(&self) -> Finding {
        let handling = self.amounts(&self.working);
        let idle_ns = self.all.durations.sum().saturating_sub(handling.time_ns);
        let mut rest = Vec::new();
        let waited_ns = KnownParts::new(&self.working, &self.source.exits.recorded).off_cpu_ns;
        if let Some(waited_ns) = waited_ns.filter(|&ns| ns > 0) {
            rest.push(format!("{} off the CPU in exits", self.time(waited_ns)));
        }
        if idle_ns > 0 {
            rest.push(format!("{} waiting for work", self.time(idle_ns)));
        }
        let rest = match rest.join(", and ") {
            rest if rest.is_empty() => rest,
            rest => format!(", besides {rest}"),
        };
        let values = [
            self.vm,
            &counted(self.all.count, "time", "times"),
            &self.time(self.source.exits.span_ns),
            &self.time(handling.value()),
            if handling.cost_ns.is_some() { " on CPUs" } else { "" },
            &rest,
            &self.payers(handling).join(", "),
        ];
        let sentence = "{} exited *{}* in {}. Handling these exits took *{}*{}{}. Split: {}.";
        Finding::new(Weight::Notice, sentence, &values).to(self.link("exits", None))
    }

    /// The parts of the cost or, if it is unknown, of the time.
    fn payers(&self, handling: Amounts) -> Vec<String> {
        let parts = KnownParts::new(&self.working, &self.source.exits.recorded);
        let of_time = |part_ns: Option<u64>| part_ns.filter(|_| handling.cost_ns.is_none());
        let of_cost = |part_ns: Option<u64>| part_ns.filter(|_| handling.cost_ns.is_some());
        [
            (of_cost(parts.before_exit_ns), "before exit"),
            (parts.kernel_ns, "kernel"),
            (parts.user_ns, "user space"),
            (parts.user_and_return_ns, "user space and the return"),
            (Some(parts.not_split_ns), "not split"),
            (of_time(parts.halt_poll_ns), "halt polling"),
        ]
        .into_iter()
        .filter_map(|(part, name)| Some((part.filter(|&part| part > 0)?, name)))
        .map(|(part, name)| format!("{name} {}", share(part, handling.value())))
        .collect()
    }

    /// The reasons with the highest cost or, if it is unknown, the longest time.
    fn reasons(&self) -> Vec<Finding> {
        let working = self.rows.iter().filter(|row| !row.waiting && row.tally.paired() > 0);
        working.take(MAX_REASONS).map(|row| self.reason(row)).collect()
    }

    fn reason(&self, row: &ExitRow) -> Finding {
        let amounts = self.amounts(&row.tally);
        let times = self.times(row);
        let [p99] = times.percentiles([990]).map(Option::unwrap_or_default);
        let values = [
            &share(amounts.value(), self.totals.value()),
            amounts.name(),
            &reason_of(row),
            self.vm,
            &plural(row.tally.count, "exit"),
            amounts.name(),
            &self.time(times.mean().unwrap_or_default().round() as u64),
            &self.time(p99),
        ];
        let sentence = "*{}* of the {} of all exits went to *{}* of {}: {} with a {} of {} on average, and at most {} for 99% of them.";
        let found = Finding::new(Weight::Notice, sentence, &values);
        found.to(self.link("exits", Some(row))).about(about(row))
    }

    /// The share of the VMM.
    fn user(&self) -> Option<Finding> {
        let user_ns = self.working.parts.user_ns;
        let working = self.rows.iter().filter(|row| !row.waiting);
        let costliest = working.max_by_key(|row| row.tally.parts.user_ns)?;
        if !self.source.exits.recorded.user || user_ns == 0 {
            return None;
        }
        let values = [
            &share(user_ns, self.totals.value()),
            self.totals.name(),
            self.vm,
            &plural(self.working.by_user, "exit"),
            &share(costliest.tally.parts.user_ns, user_ns),
            &reason_of(costliest),
        ];
        let sentence = "*{}* of the {} of all exits was spent in *user space* of {}, in {}; {} of that for {}.";
        let found = Finding::new(Weight::Notice, sentence, &values);
        Some(found.to(self.link("exits", Some(costliest))).about(about(costliest)))
    }

    /// A reason with mostly short exits, some of which are the longest.
    fn outliers(&self) -> Option<Finding> {
        let enough = |row: &&&ExitRow| !row.waiting && row.tally.paired() >= ENOUGH;
        let candidates = self.rows.iter().filter(enough).filter_map(|row| {
            let [half, max] = self.times(row).percentiles([500, 990]);
            let (half, max) = (half?, max?);
            (max >= half.saturating_mul(OUTLIER)).then_some((max, half, row))
        });
        let (max, half, row) = candidates.max_by_key(|(max, ..)| *max)?;
        let verb = if self.totals.cost_ns.is_some() { "cost" } else { "take" };
        let longest = self.times(row).max().unwrap_or_default();
        let values = [
            &reason_of(row),
            self.vm,
            verb,
            &self.time(half),
            &self.time(max),
            &self.time(longest),
        ];
        let sentence = "*{}* of {} has outliers: half {} at most {}, one in a hundred *more than {}*, and the maximum is {}.";
        let found = Finding::new(Weight::Notice, sentence, &values);
        Some(found.to(self.link("heat", Some(row))).about(about(row)))
    }

    /// Threads that had the CPU while its vCPUs waited for one.
    fn run_queue(&self) -> Option<Finding> {
        let parts = KnownParts::new(&self.all, &self.source.exits.recorded);
        let runnable_ns = parts.runnable_ns.filter(|&ns| ns > 0)?;
        let weight =
            if runnable_ns > self.all.durations.sum() / 20 { Weight::Notice } else { Weight::Info };
        let most = self.takers.iter().take(MAX_TAKERS);
        let shown = |taker: &&TakenCpu| {
            let itself = if taker.is_recorder() { " (the recording itself)" } else { "" };
            format!(
                "{}{itself} {}",
                named(taker.name.as_deref(), taker.thread),
                self.time(taker.ns)
            )
        };
        let takers: Vec<String> = most.map(shown).collect();
        let who = match takers.join(", ") {
            who if who.is_empty() => who,
            who => format!(" The CPU ran instead: {who}."),
        };
        let values = [self.vm, &self.time(runnable_ns), &who];
        let sentence =
            "Exits of {} waited *{}* in the run queue; this wait is not part of their cost.{}";
        let found = Finding::new(weight, sentence, &values);
        Some(found.to(self.link("timeline", None)).about(About::RunQueue))
    }

    fn halt_poll(&self) -> Option<Finding> {
        let parts = KnownParts::new(&self.all, &self.source.exits.recorded);
        let poll_ns = parts.halt_poll_ns.filter(|&ns| ns > 0)?;
        let values = [self.vm, &self.time(poll_ns)];
        let sentence = "For {}, the host *polled for {}* before it released the CPUs.";
        let found = Finding::new(Weight::Info, sentence, &values);
        Some(found.to(self.link("timeline", None)).about(About::HaltPolling))
    }
}

fn about(row: &ExitRow) -> About {
    let reason = row.group.reason.clone().unwrap_or_default();
    About::Reason { level: row.group.level.unwrap_or(1), reason }
}

fn reason_of(row: &ExitRow) -> String {
    let reason = row.group.reason.clone().unwrap_or_default();
    match row.group.level {
        Some(2) => format!("{reason} (level 2)"),
        _ => reason,
    }
}

/// The cost of nested guests' exits: the reason with the longest time.
pub(super) fn nested(nested: &Nested) -> Option<Finding> {
    let reflected = |row: &&NestedRow| row.reflected > 0 && !row.never_returned();
    let row = nested.rows.iter().find(reflected)?;
    let per_exit = |exits: u64| exits as f64 / row.reflected as f64;
    let mean = row.round_trips.mean()?.round() as u64;
    let most = row.ancillary.iter().take(3);
    let most: Vec<String> = most
        .map(|ancillary| format!("{} {:.1}x", ancillary.reason, per_exit(ancillary.count)))
        .collect();
    let values = [
        &row.reason,
        &row.vm,
        &format!("{:.1} exits", per_exit(row.ancillary_count())),
        &most.join(", "),
        &duration(mean, nested.nanoseconds),
    ];
    let sentence = "An exit for {} of the guest inside {} causes *{} of its parent* ({}); the guest runs again after {} on average.";
    let link = Link { section: "nested", vm: Some(row.vm.clone()), ..Link::default() };
    Some(Finding::new(Weight::Notice, sentence, &values).to(link).about(About::Nested))
}
