//! Cost of nested guests' exits: which hypervisor handled them, and the exits of level 1 until the nested guest
//! ran again.
//!
//! ```text
//!  L2 ──┐ exit                                   ┌── runs again
//!  L0   └─ kvm_nested_vmexit_inject ─┐  ancillary│ kvm_nested_vmenter
//!  L1                                └─VMREAD─VMWRITE─VMRESUME
//! ```

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::arch::Isa;
use timeline::reasons::{Code, ReasonNames};
use timeline::{ExitSink, ExitSpan, Losses, Outcome, Parts, Vm};

use crate::distribution::Distribution;
use crate::exit_question::{ExitQuestion, FoundExits, ask};
use crate::known_parts::KnownParts;
use crate::nested_steps::{Follower, RawReason, Step};
use crate::nested_touches::{Touches, VmcbWrites};
use crate::recorded::RecordedParts;

/// Exits of one reason of level 2 on one vCPU.
#[derive(Clone, Debug, Default)]
struct Level2 {
    count: u64,
    reflected: u64,
    injected_as: BTreeMap<RawReason, u64>,
    /// Exit to entry, of paired exits.
    durations: Distribution,
    spent: Spent,
    /// Times of reflected exits from the exit until level 2 runs again, without losses.
    round_trips: Distribution,
    ancillary: BTreeMap<RawReason, Ancillary>,
    /// Time in level 1 between the ancillary exits.
    level1_ns: u64,
    /// Reflected exits after which level 2 did not run again.
    unfinished: u64,
}

/// Exits of level 1 caused by exits of level 2.
#[derive(Clone, Debug, Default)]
struct Ancillary {
    count: u64,
    durations: Distribution,
    spent: Spent,
    touches: Touches,
}

/// Time of paired exits by part.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    parts: Parts,
    before_exit_ns: u64,
    /// Some exits halted, and the end of polling was not recorded.
    poll_unknown: bool,
}

impl Spent {
    fn add(&mut self, span: &ExitSpan) {
        let of_span = Self {
            parts: span.parts,
            before_exit_ns: span.before_exit_ns,
            poll_unknown: span.poll_unknown,
        };
        self.merge(&of_span);
    }

    fn merge(&mut self, other: &Self) {
        self.parts.add(&other.parts);
        self.before_exit_ns = self.before_exit_ns.saturating_add(other.before_exit_ns);
        self.poll_unknown |= other.poll_unknown;
    }

    fn known(&self, recorded: &RecordedParts) -> ExitCost {
        let doubt = (false, self.poll_unknown);
        let known = KnownParts::from_parts(&self.parts, self.before_exit_ns, doubt, recorded);
        let polled_ns = known.halt_poll_ns.unwrap_or(0);
        let waited_ns = known.off_cpu_ns.map(|off_cpu_ns| off_cpu_ns.saturating_add(polled_ns));
        ExitCost { cost_ns: known.cost_ns, waited_ns }
    }
}

/// Cost and wait time of exits; `None` if the recording doesn't separate them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitCost {
    /// CPU time, including the work before the exit event.
    pub cost_ns: Option<u64>,
    /// Off-CPU time and halt polling.
    pub waited_ns: Option<u64>,
}

impl ExitCost {
    fn with(self, other: Self) -> Self {
        let sum = |ns: Option<u64>, other: Option<u64>| Some(ns?.saturating_add(other?));
        Self {
            cost_ns: sum(self.cost_ns, other.cost_ns),
            waited_ns: sum(self.waited_ns, other.waited_ns),
        }
    }
}

#[derive(Debug, Default)]
struct OneVcpu {
    reasons: BTreeMap<RawReason, Level2>,
    follower: Follower,
    level1_count: u64,
    dropped: u64,
}

#[derive(Debug, Default)]
/// Follows level-2 exits, vCPU by vCPU.
pub struct NestedExits {
    vcpus: FxHashMap<usize, OneVcpu>,
}

impl ExitSink for NestedExits {
    fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
        self.vcpus.entry(vcpu).or_default().exit(span);
    }
}

impl OneVcpu {
    fn exit(&mut self, span: &ExitSpan) {
        self.level1_count += u64::from(span.level != 2);
        self.dropped += u64::from(span.outcome == Outcome::LostIn);
        let reasons = &mut self.reasons;
        self.follower.exit(span, |step| take(reasons, span, step));
    }

    fn finish(&mut self) {
        let reasons = &mut self.reasons;
        self.follower.abandon(|step| {
            if let Step::Unfinished { level2_reason } = step {
                reasons.entry(level2_reason).or_default().unfinished += 1;
            }
        });
    }
}

/// Adds an exit to the sums of its reason.
fn take(reasons: &mut BTreeMap<RawReason, Level2>, span: &ExitSpan, step: Step) {
    let raw_reason = (span.isa, span.code);
    let paired = span.outcome == Outcome::Paired;
    match step {
        Step::Level1 => {}
        Step::Level2 { reflected } => {
            let level2 = reasons.entry(raw_reason).or_default();
            level2.count += 1;
            if paired {
                level2.durations.add(span.duration_ns());
                level2.spent.add(span);
            }
            if reflected {
                level2.reflected += 1;
                *level2.injected_as.entry((span.isa, span.injected_as)).or_default() += 1;
            }
        }
        Step::Ancillary { level2_reason, .. } => {
            let ancillary =
                reasons.entry(level2_reason).or_default().ancillary.entry(raw_reason).or_default();
            ancillary.count += 1;
            if paired {
                ancillary.durations.add(span.duration_ns());
                ancillary.spent.add(span);
            }
            ancillary.touches.add(span.detail);
        }
        Step::Back { level2_reason, since_ns, level1_ns } => {
            let level2 = reasons.entry(level2_reason).or_default();
            level2.round_trips.add(span.end_ns.saturating_sub(since_ns));
            level2.level1_ns = level2.level1_ns.saturating_add(level1_ns);
        }
        Step::Unfinished { level2_reason } => {
            reasons.entry(level2_reason).or_default().unfinished += 1
        }
    }
}

/// The nested exits of one recording.
#[derive(Debug)]
pub struct Nested {
    /// One row per VM and level-2 reason, the costliest first. Waiting exits follow, then reasons after which
    /// level 2 never ran again.
    pub rows: Vec<NestedRow>,
    /// Exits per VM and level.
    pub levels: Vec<LevelCount>,
    pub losses: Losses,
    /// Buffers whose exits were skipped because another buffer has them too.
    pub repeated_buffers: Vec<String>,
    /// Exits of both levels during which events were lost.
    pub dropped: u64,
    /// Whether times are nanoseconds; else they are ticks of the recording's clock.
    pub nanoseconds: bool,
}

/// Exits of one VM by level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelCount {
    pub vm: String,
    /// Exits of level 1.
    pub level1: u64,
    /// Exits of nested guests.
    pub level2: u64,
}

/// Exits of level 2 of one reason.
#[derive(Clone, Debug)]
pub struct NestedRow {
    /// The VM with nested guests.
    pub vm: String,
    /// Instruction set.
    pub isa: Isa,
    /// The kernel's name of the hardware's reason.
    pub reason: String,
    /// Its raw code.
    pub code: Code,
    pub count: u64,
    /// Exits injected into level 1.
    pub reflected: u64,
    /// The reasons that level 1 sees, most frequent first.
    pub injected_as: Vec<(String, Code, u64)>,
    /// Whether these exits mean waiting for work: their time is idle time of level 1 and the host, not a cost.
    pub waiting: bool,
    /// Cost of the level-2 exits alone.
    pub own_cost: ExitCost,
    /// Durations of the level-2 exits, from exit to entry.
    pub durations: Distribution,
    /// Durations of reflected exits, from the exit until level 2 runs again.
    pub round_trips: Distribution,
    /// Level-1 exits during the round trips, most frequent first.
    pub ancillary: Vec<AncillaryRow>,
    /// Time in level 1 during the round trips.
    pub level1_ns: u64,
    /// Reflected exits after which level 2 did not run again. The level-1 exits up to the end or the next loss
    /// count as theirs.
    pub unfinished: u64,
}

/// Level-1 exits caused by level-2 exits of one reason.
#[derive(Clone, Debug)]
pub struct AncillaryRow {
    /// The kernel's name of the reason.
    pub reason: String,
    /// Its raw code.
    pub code: Code,
    pub count: u64,
    pub durations: Distribution,
    pub cost: ExitCost,
    /// Model-specific registers that they accessed, with numbers of exits, most frequent first. Needs `kvm_msr`;
    /// limited to the first 256 registers.
    pub msrs: Vec<(u64, u64)>,
    /// Changes of level 1 to its guest's control block before it entered the guest. Needs a probe on
    /// `enter_svm_guest_mode`.
    pub vmcb: VmcbWrites,
}

impl NestedRow {
    /// Whether level 2 never ran again after a reflected exit.
    #[must_use]
    pub fn never_returned(&self) -> bool {
        self.unfinished > 0 && self.unfinished == self.reflected
    }

    /// Number of ancillary exits.
    #[must_use]
    pub fn ancillary_count(&self) -> u64 {
        self.ancillary.iter().map(|row| row.count).sum()
    }

    /// Exits of the recorded host per level-2 exit, including that exit.
    #[must_use]
    pub fn factor(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.count + self.ancillary_count()) as f64 / self.count as f64)
    }

    /// Cost of the level-2 exits and their ancillary exits.
    #[must_use]
    pub fn cost(&self) -> ExitCost {
        self.ancillary.iter().fold(self.own_cost, |sum, row| sum.with(row.cost))
    }

    /// Sort key: the cost, or the time if the recording doesn't separate cost from waiting.
    fn rank_ns(&self) -> u64 {
        self.cost().cost_ns.unwrap_or_else(|| self.time_ns())
    }

    /// Time of the level-2 exits and their ancillary exits.
    #[must_use]
    pub fn time_ns(&self) -> u64 {
        let ancillary = self.ancillary.iter().map(|row| row.durations.sum());
        ancillary.fold(self.durations.sum(), u64::saturating_add)
    }
}

/// Follows every level-2 exit of `recording` until level 2 runs again.
#[must_use]
pub fn nested(recording: &Recording, progress: &(dyn Fn(u64) + Sync)) -> Nested {
    ask(recording, &OfLevelTwo, progress)
}

/// The question of [`nested`].
#[derive(Clone, Copy, Debug)]
pub struct OfLevelTwo;

impl ExitQuestion for OfLevelTwo {
    type Sink = NestedExits;
    type Answer = Nested;

    /// Without events of nested guests, all exits are of level 1.
    fn needs_details(&self, recording: &Recording) -> bool {
        recording.formats().iter().any(|(_, format)| format.name().starts_with("kvm_nested"))
    }

    fn sink(&self) -> NestedExits {
        NestedExits::default()
    }

    fn answer(&self, found: &FoundExits<'_>, mut exits: NestedExits) -> Nested {
        let FoundExits { recording, vms, pass } = found;
        exits.vcpus.values_mut().for_each(OneVcpu::finish);
        let mut names = ReasonNames::new(recording);
        let recorded = RecordedParts::new(recording, pass.seen);
        let mut rows = Vec::new();
        let mut levels = Vec::new();
        for vm in vms {
            let (reasons, level1) = of_vm(vm, &exits);
            let level2 = reasons.values().map(|reason| reason.count).sum();
            levels.push(LevelCount { vm: vm.name.clone(), level1, level2 });
            let row_of = |(raw, sums)| row((vm, &recorded), raw, sums, &mut names);
            rows.extend(reasons.into_iter().map(row_of));
        }
        // A reason after which level 2 never ran again ended the nested guest. Later exits of level 1 are not its
        // cost, so these rows come last.
        rows.sort_by_key(|row| {
            (row.never_returned(), row.waiting, std::cmp::Reverse(row.rank_ns()))
        });
        Nested {
            rows,
            levels,
            losses: pass.losses.clone(),
            repeated_buffers: pass.repeated_buffers.clone(),
            dropped: exits.vcpus.values().map(|vcpu| vcpu.dropped).sum(),
            nanoseconds: recording.is_nanoseconds(),
        }
    }
}

/// Sums of a VM's vCPUs.
fn of_vm(vm: &Vm, gathered: &NestedExits) -> (BTreeMap<RawReason, Level2>, u64) {
    let mut sums: BTreeMap<RawReason, Level2> = BTreeMap::new();
    let mut level1 = 0;
    for vcpu in vm.vcpus.iter().filter_map(|vcpu| gathered.vcpus.get(&vcpu.index)) {
        level1 += vcpu.level1_count;
        for (raw, level2) in &vcpu.reasons {
            sums.entry(*raw).or_default().merge(level2);
        }
    }
    (sums, level1)
}

impl Level2 {
    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.reflected += other.reflected;
        self.durations.merge(&other.durations);
        self.spent.merge(&other.spent);
        self.round_trips.merge(&other.round_trips);
        self.unfinished += other.unfinished;
        self.level1_ns = self.level1_ns.saturating_add(other.level1_ns);
        for (raw, count) in &other.injected_as {
            *self.injected_as.entry(*raw).or_default() += count;
        }
        for (raw, ancillary) in &other.ancillary {
            let mine = self.ancillary.entry(*raw).or_default();
            mine.count += ancillary.count;
            mine.durations.merge(&ancillary.durations);
            mine.spent.merge(&ancillary.spent);
            mine.touches.merge(&ancillary.touches);
        }
    }
}

fn row(
    (vm, recorded): (&Vm, &RecordedParts),
    (isa, code): RawReason,
    sums: Level2,
    names: &mut ReasonNames,
) -> NestedRow {
    let mut named =
        |(isa, code): RawReason| (names.name(isa, code), Code::new(names.isa(isa), code));
    let (reason, shown) = named((isa, code));
    let mut injected_as: Vec<_> = sums
        .injected_as
        .into_iter()
        .map(|(raw, count)| {
            let (name, code) = named(raw);
            (name, code, count)
        })
        .collect();
    injected_as.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
    let mut ancillary: Vec<_> = sums
        .ancillary
        .into_iter()
        .map(|(raw, ancillary)| {
            let (reason, code) = named(raw);
            let (msrs, vmcb) = ancillary.touches.into_parts();
            let (durations, cost) = (ancillary.durations, ancillary.spent.known(recorded));
            AncillaryRow { reason, code, count: ancillary.count, durations, cost, msrs, vmcb }
        })
        .collect();
    ancillary.sort_by_key(|row| std::cmp::Reverse(row.count));
    NestedRow {
        vm: vm.name.clone(),
        isa: names.isa(isa),
        reason,
        code: shown,
        count: sums.count,
        reflected: sums.reflected,
        injected_as,
        waiting: names.isa(isa).waits(code),
        own_cost: sums.spent.known(recorded),
        durations: sums.durations,
        round_trips: sums.round_trips,
        ancillary,
        level1_ns: sums.level1_ns,
        unfinished: sums.unfinished,
    }
}
