//! What does an exit of a nested guest cost: who dealt with it, and the exits of its parent that
//! it took before the nested guest ran again.
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
    /// Reflected exits whose way back into level 2 was seen whole.
    round_trips: Distribution,
    ancillary: BTreeMap<RawReason, Ancillary>,
    /// Guest time of level 1 between the ancillary exits.
    level1_ns: u64,
    /// Reflected exits after which level 2 was not seen to run again.
    unfinished: u64,
}

/// Exits of level 1 that exits of level 2 brought about.
#[derive(Clone, Debug, Default)]
struct Ancillary {
    count: u64,
    durations: Distribution,
    spent: Spent,
    touches: Touches,
}

/// What paired exits spent their time on.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    parts: Parts,
    before_exit_ns: u64,
    /// Some halted, and when they stopped polling was not recorded.
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

/// What exits cost and what they waited; `None`: the recording doesn't separate the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitCost {
    /// Time in which the CPU worked on them, the work before the exit event included.
    pub cost_ns: Option<u64>,
    /// Time in which nothing ran for them: off the CPU, and polling before that.
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

/// Adds what an exit is to the reason that it belongs to.
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
    /// One per VM and level-2 reason, the costliest first; after them those that mean waiting for work, and last reasons that
    /// ended level 2.
    pub rows: Vec<NestedRow>,
    /// Exits per VM and level.
    pub levels: Vec<LevelCount>,
    /// What was lost.
    pub losses: Losses,
    /// Names of buffers of which exits were left out because another buffer has them too.
    pub repeated_buffers: Vec<String>,
    /// Exits of either level that lasted over a loss.
    pub dropped: u64,
    /// Whether times are nanoseconds; else they are ticks of the recording's clock.
    pub nanoseconds: bool,
}

/// Exits of one VM by level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelCount {
    pub vm: String,
    /// Its own exits.
    pub level1: u64,
    /// Exits of guests inside it.
    pub level2: u64,
}

/// Exits of level 2 of one reason.
#[derive(Clone, Debug)]
pub struct NestedRow {
    /// The VM that has guests of its own.
    pub vm: String,
    /// Instruction set.
    pub isa: Isa,
    /// The kernel's name of the hardware's reason.
    pub reason: String,
    /// Its raw code.
    pub code: Code,
    /// Exits.
    pub count: u64,
    /// Those injected into level 1.
    pub reflected: u64,
    /// What they were injected as, most frequent first.
    pub injected_as: Vec<(String, Code, u64)>,
    /// Its exits mean waiting for work: what they take is how long level 1 and the host idle, and no cost.
    pub waiting: bool,
    /// What the level-2 exits themselves cost.
    pub own_cost: ExitCost,
    /// Exit to entry of the level-2 exits themselves.
    pub durations: Distribution,
    /// Reflected exits from the exit until level 2 runs again.
    pub round_trips: Distribution,
    /// Level-1 exits in those, most frequent first.
    pub ancillary: Vec<AncillaryRow>,
    /// Time level 1 itself ran in those.
    pub level1_ns: u64,
    /// Reflected exits after which level 2 was not seen to run again: the level-1 exits up to the
    /// end, or to a loss, are counted as theirs.
    pub unfinished: u64,
}

/// Level-1 exits brought about by level-2 exits of one reason.
#[derive(Clone, Debug)]
pub struct AncillaryRow {
    /// The kernel's name of the reason.
    pub reason: String,
    /// Its raw code.
    pub code: Code,
    /// Exits.
    pub count: u64,
    pub durations: Distribution,
    /// What they cost.
    pub cost: ExitCost,
    /// Numbers of the model-specific registers that they read or wrote, with how many exits each,
    /// most frequent first; as far as `kvm_msr` was recorded, and the first 256 that were seen.
    pub msrs: Vec<(u64, u64)>,
    /// What level 1 had changed in its guest's control block, of exits by which it had that run; as
    /// far as a probe on `enter_svm_guest_mode` was recorded.
    pub vmcb: VmcbWrites,
}

impl NestedRow {
    /// Some exits went to level 1, and after none of them level 2 was seen to run again.
    #[must_use]
    pub fn never_returned(&self) -> bool {
        self.unfinished > 0 && self.unfinished == self.reflected
    }

    /// Level-1 exits brought about.
    #[must_use]
    pub fn ancillary_count(&self) -> u64 {
        self.ancillary.iter().map(|row| row.count).sum()
    }

    /// Exits the recorded host took for each exit of level 2, that exit included.
    #[must_use]
    pub fn factor(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.count + self.ancillary_count()) as f64 / self.count as f64)
    }

    /// What the level-2 exits cost together with the level-1 exits they brought about.
    #[must_use]
    pub fn cost(&self) -> ExitCost {
        self.ancillary.iter().fold(self.own_cost, |sum, row| sum.with(row.cost))
    }

    /// What rows are ranked by: their cost, or their time where the recording doesn't separate it from waiting.
    fn rank_ns(&self) -> u64 {
        self.cost().cost_ns.unwrap_or_else(|| self.time_ns())
    }

    /// Time of the level-2 exits and of the level-1 exits they brought about.
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

/// What [`nested`] asks.
#[derive(Clone, Copy, Debug)]
pub struct OfLevelTwo;

impl ExitQuestion for OfLevelTwo {
    type Sink = NestedExits;
    type Answer = Nested;

    /// Without the events of nested guests all exits are of level 1.
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
        // A reason after which level 2 never ran again was its end: what level 1 did from then on is no
        // cost of an exit, so such rows come last.
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

/// Adds up the vCPUs of a VM.
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
