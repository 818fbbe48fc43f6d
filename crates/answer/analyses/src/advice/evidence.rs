//! Evidence for rules: exits by reason and detail, and idle times.

use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::arch::Isa;
use timeline::reasons::ReasonNames;
use timeline::{Detail, ExitSink, ExitSpan, Outcome};

use super::sums::ExitSums;
use super::thresholds::{MIN_POLL_NS, SHORT_IDLE_NS};
use crate::exit_question::{ExitQuestion, FoundExits};
use crate::recorded::RecordedParts;

/// Max places: registers, ports and addresses of a recording. Exits at further ones are summed by reason only.
const MAX_PLACES: usize = 1 << 14;

/// Exits of one VM with the same reason and detail.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) level: u8,
    pub(crate) reason: String,
    /// Whether these exits mean waiting for work.
    pub(crate) waiting: bool,
    /// Their detail; also `None` for exits beyond [`MAX_PLACES`].
    pub(crate) detail: Option<(Detail, u64)>,
    pub(crate) sums: ExitSums,
}

/// Idle times of a vCPU by how they ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Idles {
    /// Paired waiting exits.
    pub(crate) count: u64,
    /// Idles in which work arrived within [`SHORT_IDLE_NS`].
    pub(crate) short: u64,
    /// Cost and run-queue wait of short idles, without halt polling.
    pub(crate) short_cost_ns: u64,
    /// Polls that found work (`won`), and polls after which the vCPU slept (`lost`).
    pub(crate) polls_won: u64,
    pub(crate) polls_lost: u64,
    /// Time of these polls.
    pub(crate) won_ns: u64,
    pub(crate) lost_ns: u64,
    /// Idles whose halt polling could not be separated.
    pub(crate) unknown: u64,
}

impl Idles {
    fn add(&mut self, span: &ExitSpan) {
        let parts = &span.parts;
        self.count += 1;
        self.unknown += u64::from(span.poll_unknown);
        if parts.blocked_ns.saturating_add(parts.halt_poll_ns) < SHORT_IDLE_NS {
            self.short += 1;
            let cost_ns = parts.kernel_ns.saturating_add(span.before_exit_ns);
            self.short_cost_ns = self.short_cost_ns.saturating_add(cost_ns);
        }
        if parts.halt_poll_ns >= MIN_POLL_NS && parts.blocked_ns > 0 {
            self.polls_lost += 1;
            self.lost_ns = self.lost_ns.saturating_add(parts.halt_poll_ns);
        } else if parts.halt_poll_ns > 0 && parts.blocked_ns == 0 {
            self.polls_won += 1;
            self.won_ns = self.won_ns.saturating_add(parts.halt_poll_ns);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.short += other.short;
        self.short_cost_ns = self.short_cost_ns.saturating_add(other.short_cost_ns);
        self.polls_won += other.polls_won;
        self.polls_lost += other.polls_lost;
        self.won_ns = self.won_ns.saturating_add(other.won_ns);
        self.lost_ns = self.lost_ns.saturating_add(other.lost_ns);
        self.unknown += other.unknown;
    }
}

/// Measurements of one VM.
#[derive(Clone, Debug, Default)]
pub struct VmEvidence {
    pub vm: String,
    /// First exit and end of the last one.
    pub(crate) range_ns: Option<(u64, u64)>,
    /// Instruction set of the exits; `None` without exits.
    pub(crate) isa: Option<Isa>,
    pub(crate) places: Vec<Place>,
    pub(crate) idles: Idles,
}

/// Measurements of the exits of a recording.
#[derive(Debug)]
pub struct ExitEvidence {
    /// One per VM.
    pub vms: Vec<VmEvidence>,
    /// Parts of an exit that the recording has events for.
    pub recorded: RecordedParts,
    /// Whether times are nanoseconds.
    pub nanoseconds: bool,
}

/// CPU time of a VM's vCPUs on its host, and their run-queue wait: advice reduces these times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub exits: u64,
    /// CPU time outside the guest: cost of exits, including waiting exits, and halt polling.
    pub outside_ns: u64,
    /// Run-queue wait during exits.
    pub waited_ns: u64,
    /// The total of all shares: time in the guest and cost of exits.
    pub running_ns: u64,
}

impl ExitEvidence {
    /// Sums over all VMs.
    #[must_use]
    pub fn spent(&self) -> Spent {
        let sums =
            ExitSums::of_all(self.vms.iter().flat_map(|vm| &vm.places).map(|place| &place.sums));
        let taken_ns = sums.taken_ns(&self.recorded);
        Spent {
            exits: sums.count,
            outside_ns: taken_ns.saturating_add(sums.parts.halt_poll_ns),
            waited_ns: sums.parts.runnable_ns,
            running_ns: sums.guest_ns.saturating_add(taken_ns),
        }
    }

    #[must_use]
    pub fn has_exits(&self) -> bool {
        self.vms.iter().any(|vm| !vm.places.is_empty())
    }

    /// Whether any exit has a register, port or address as detail: most rules need details.
    #[must_use]
    pub fn has_details(&self) -> bool {
        let mut places = self.vms.iter().flat_map(|vm| &vm.places);
        places.any(|place| place.msr().or(place.port()).or(place.gpa()).is_some())
    }
}

/// The question whose answer is the evidence for all rules.
#[derive(Clone, Copy, Debug)]
pub struct EvidenceOf;

impl ExitQuestion for EvidenceOf {
    type Sink = EvidenceSink;
    type Answer = ExitEvidence;

    fn needs_details(&self, _: &Recording) -> bool {
        true
    }

    fn sink(&self) -> EvidenceSink {
        EvidenceSink::default()
    }

    fn answer(&self, found: &FoundExits<'_>, sink: EvidenceSink) -> ExitEvidence {
        let mut names = ReasonNames::new(found.recording);
        let of_vm = |vm: &timeline::Vm| {
            let mut all = OfVcpu::default();
            for vcpu in &vm.vcpus {
                if let Some(vcpu_exits) = sink.vcpus.get(&vcpu.index) {
                    all.merge(vcpu_exits);
                }
            }
            all.evidence(vm.name.clone(), &mut names)
        };
        ExitEvidence {
            vms: found.vms.iter().map(of_vm).collect(),
            recorded: RecordedParts::new(found.recording, found.pass.seen),
            nanoseconds: found.recording.is_nanoseconds(),
        }
    }
}

/// Exits with equal keys share their sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    level: u8,
    isa: u8,
    code: u64,
    detail: Option<(Detail, u64)>,
}

/// Exits of one vCPU, or of a whole VM.
#[derive(Clone, Debug, Default)]
struct OfVcpu {
    range_ns: Option<(u64, u64)>,
    places: FxHashMap<Key, ExitSums>,
    /// Idle times by instruction set and code. Reason names decide at the end which of these exits wait.
    idles: FxHashMap<(u8, u64), Idles>,
}

/// Sums exits for rules.
#[derive(Debug, Default)]
pub struct EvidenceSink {
    vcpus: FxHashMap<usize, OfVcpu>,
    places: usize,
}

impl ExitSink for EvidenceSink {
    fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
        let vcpu_exits = self.vcpus.entry(vcpu).or_default();
        vcpu_exits.extend(span.start_ns, span.end_ns);
        let (level, isa, code) = (span.level, span.isa, span.code);
        let without_detail = Key { level, isa, code, detail: None };
        let key = Key { detail: span.detail, ..without_detail };
        match vcpu_exits.places.get_mut(&key) {
            Some(sums) => sums.add(span),
            None if key.detail.is_none() || self.places < MAX_PLACES => {
                self.places += 1;
                vcpu_exits.places.entry(key).or_default().add(span);
            }
            None => vcpu_exits.places.entry(without_detail).or_default().add(span),
        }
        if span.outcome == Outcome::Paired {
            vcpu_exits.idles.entry((isa, code)).or_default().add(span);
        }
    }
}

impl OfVcpu {
    fn extend(&mut self, from_ns: u64, to_ns: u64) {
        let (first, last) = self.range_ns.unwrap_or((from_ns, to_ns));
        self.range_ns = Some((first.min(from_ns), last.max(to_ns)));
    }

    fn merge(&mut self, other: &Self) {
        if let Some((from_ns, to_ns)) = other.range_ns {
            self.extend(from_ns, to_ns);
        }
        for (key, sums) in &other.places {
            self.places.entry(*key).or_default().merge(sums);
        }
        for (reason, idles) in &other.idles {
            self.idles.entry(*reason).or_default().merge(idles);
        }
    }

    fn evidence(self, vm: String, names: &mut ReasonNames) -> VmEvidence {
        let mut idles = Idles::default();
        for ((isa, code), reason_idles) in &self.idles {
            if names.isa(*isa).waits(*code) {
                idles.merge(reason_idles);
            }
        }
        let mut all: Vec<(Key, ExitSums)> = self.places.into_iter().collect();
        all.sort_by_key(|(key, _)| *key);
        let isa = all.first().map(|(key, _)| names.isa(key.isa));
        let place = |(key, sums): (Key, ExitSums)| Place {
            level: key.level,
            reason: names.name(key.isa, key.code),
            waiting: names.isa(key.isa).waits(key.code),
            detail: key.detail,
            sums,
        };
        let places = all.into_iter().map(place).collect();
        VmEvidence { vm, range_ns: self.range_ns, isa, places, idles }
    }
}
