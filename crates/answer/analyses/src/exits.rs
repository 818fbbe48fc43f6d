//! Time of VM exits: counts, durations and parts, by group.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::reasons::{Code, ReasonNames};
use timeline::{Detail, ExitSink, ExitSpan, Losses, VcpuInfo, Vm};

use crate::exit_question::{ExitQuestion, FoundExits, ask};
use crate::group::{By, Group};
use crate::known_parts::KnownParts;
use crate::recorded::RecordedParts;
use crate::tally::Tally;
use crate::vms::VmsByVcpu;

/// Exits with equal keys share a tally: the finest grouping that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    vcpu: u32,
    level: u8,
    isa: u8,
    code: u64,
    detail: ExitDetail,
}

/// Properties that few requests need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct ExitDetail {
    detail: Option<(Detail, u64)>,
    guest_pc: u64,
}

impl Key {
    /// Index in [`ExitCounts::recent`].
    #[inline]
    fn slot(&self) -> u8 {
        let place = u64::from(self.vcpu) << 16 | u64::from(self.level) << 8 | u64::from(self.isa);
        let detail = self.detail.detail.map_or(0, |(_, value)| value);
        let mixed = self.code ^ place ^ detail ^ self.detail.guest_pc;
        // The multiplication mixes every bit into the top byte.
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }
}

/// Gathers tallies by [`Key`].
#[derive(Debug)]
pub struct ExitCounts {
    by_detail: bool,
    by_pc: bool,
    tallies: Vec<(Key, Tally)>,
    index: FxHashMap<Key, usize>,
    /// Indexes of recently used tallies, by [`Key::slot`]: a vCPU's exits have few reasons, and this lookup is
    /// faster than a hash map.
    recent: [u32; 256],
    first_ns: u64,
    last_ns: u64,
}

impl ExitSink for ExitCounts {
    #[inline]
    fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
        self.first_ns = self.first_ns.min(span.start_ns);
        self.last_ns = self.last_ns.max(span.end_ns);
        let detail =
            if self.by_detail || self.by_pc { self.detail(span) } else { ExitDetail::default() };
        let key =
            Key { vcpu: vcpu as u32, level: span.level, isa: span.isa, code: span.code, detail };
        let recent = self.recent[usize::from(key.slot())] as usize;
        match self.tallies.get_mut(recent) {
            Some((known, tally)) if *known == key => tally.add(span),
            _ => self.look_up(key).add(span),
        }
    }
}

impl ExitCounts {
    fn new(by: &[By]) -> Self {
        Self {
            by_detail: by.iter().any(|by| by.detail().is_some()),
            by_pc: by.contains(&By::Symbol),
            tallies: Vec::new(),
            index: FxHashMap::default(),
            recent: [u32::MAX; 256],
            first_ns: u64::MAX,
            last_ns: 0,
        }
    }

    fn detail(&self, span: &ExitSpan) -> ExitDetail {
        ExitDetail {
            detail: span.detail.filter(|_| self.by_detail),
            guest_pc: if self.by_pc { span.guest_pc } else { 0 },
        }
    }

    /// The tally of a key; inserts an empty one if the key is new.
    #[cold]
    fn look_up(&mut self, key: Key) -> &mut Tally {
        let next = self.tallies.len();
        let at = *self.index.entry(key).or_insert(next);
        if at == next {
            self.tallies.push((key, Tally::default()));
        }
        self.recent[usize::from(key.slot())] = at as u32;
        &mut self.tallies[at].1
    }
}

/// Exits of one recording, grouped.
#[derive(Debug)]
pub struct Exits {
    /// Properties by which rows are grouped.
    pub by: Vec<By>,
    /// Groups. Waiting exits come last, by time. The others are sorted by cost if it is known, otherwise by time.
    pub rows: Vec<ExitRow>,
    /// The VMs of the recording.
    pub vms: Vec<Vm>,
    pub losses: Losses,
    /// Buffers whose exits were skipped because another buffer has them too.
    pub repeated_buffers: Vec<String>,
    /// Missing switches of vCPU threads, although no event was lost.
    pub switches_unseen: u64,
    /// Length of the recording, or of the part that was read: first event to last.
    pub span_ns: u64,
    /// Parts of an exit that the recording has events for.
    pub recorded: RecordedParts,
    /// Whether times are nanoseconds; else they are ticks of the recording's clock.
    pub nanoseconds: bool,
}

/// One group of exits.
#[derive(Clone, Debug)]
pub struct ExitRow {
    pub group: Group,
    /// Whether these exits mean waiting for work.
    pub waiting: bool,
    pub tally: Tally,
}

impl ExitRow {
    /// Sort key: important groups have smaller ranks.
    fn rank(&self, recorded: &RecordedParts) -> impl Ord + use<> {
        let cost_ns = KnownParts::new(&self.tally, recorded).cost_ns.filter(|_| !self.waiting);
        let most_ns = cost_ns.unwrap_or_else(|| self.tally.durations.sum());
        (self.waiting, Reverse(most_ns), Reverse(self.tally.count), self.group.clone())
    }
}

/// Sums up every exit of `recording`; `progress` receives the number of bytes read.
#[must_use]
pub fn exits(recording: &Recording, by: &[By], progress: &(dyn Fn(u64) + Sync)) -> Exits {
    ask(recording, &ExitsBy(by), progress)
}

/// The question of [`exits`], with the groups of its rows.
#[derive(Clone, Copy, Debug)]
pub struct ExitsBy<'b>(pub &'b [By]);

impl ExitQuestion for ExitsBy<'_> {
    type Sink = ExitCounts;
    type Answer = Exits;

    fn needs_details(&self, _: &Recording) -> bool {
        let counts = self.sink();
        counts.by_detail || counts.by_pc
    }

    fn sink(&self) -> ExitCounts {
        ExitCounts::new(self.0)
    }

    fn answer(&self, found: &FoundExits<'_>, counts: ExitCounts) -> Exits {
        let FoundExits { recording, vms, pass } = found;
        let recorded = RecordedParts::new(recording, pass.seen);
        let mut rows = rows(recording, self.0, vms, &pass.vcpus, &counts.tallies);
        rows.sort_by_key(|row| row.rank(&recorded));
        Exits {
            by: self.0.to_vec(),
            rows,
            vms: vms.clone(),
            losses: pass.losses.clone(),
            repeated_buffers: pass.repeated_buffers.clone(),
            switches_unseen: pass.switches_unseen,
            span_ns: span_ns(recording, (counts.first_ns, counts.last_ns)),
            recorded,
            nanoseconds: recording.is_nanoseconds(),
        }
    }
}

/// Length of a recording, the same in all reports; the time range of its exits if the extent is unknown.
fn span_ns(recording: &Recording, of_exits: (u64, u64)) -> u64 {
    let (first_ns, last_ns) = recording.extent_ns().unwrap_or(of_exits);
    last_ns.saturating_sub(first_ns)
}

/// Merges the fine tallies into the requested groups.
fn rows(
    recording: &Recording,
    by: &[By],
    vms: &[Vm],
    vcpus: &[VcpuInfo],
    tallies: &[(Key, Tally)],
) -> Vec<ExitRow> {
    let mut names = ReasonNames::new(recording);
    let homes = VmsByVcpu::new(vms);
    let mut groups: BTreeMap<(Group, bool), Tally> = BTreeMap::new();
    for (key, tally) in tallies {
        let mut group = Group::default();
        let waiting = names.isa(key.isa).waits(key.code);
        for by in by {
            label(&mut group, *by, key, recording, &homes, vcpus, &mut names);
        }
        groups.entry((group, waiting)).or_default().merge(tally);
    }
    let row = |((group, waiting), tally)| ExitRow { group, waiting, tally };
    groups.into_iter().map(row).collect()
}

/// Sets one property of a group.
fn label(
    group: &mut Group,
    by: By,
    key: &Key,
    recording: &Recording,
    homes: &VmsByVcpu<'_>,
    vcpus: &[VcpuInfo],
    names: &mut ReasonNames,
) {
    let index = key.vcpu as usize;
    let home = homes.find(index);
    match by {
        By::Vm => group.vm = home.map(|(vm, _)| vm.name.clone()),
        By::Vcpu => group.vcpu = home.map(|(_, vcpu)| vcpu.vcpu),
        By::Task => {
            group.task = vcpus.get(index).map(|info| {
                format!("{}-{}", recording.comm(info.thread).unwrap_or("<...>"), info.thread)
            });
        }
        By::Level => group.level = Some(key.level),
        By::Reason | By::Code => {
            let isa = names.isa(key.isa);
            group.isa = Some(isa);
            group.reason = Some(names.name(key.isa, key.code));
            group.code = Some(Code::new(isa, key.code));
        }
        By::Symbol => {
            let pc = key.detail.guest_pc;
            group.symbol = Some(recording.guest_symbol(pc).unwrap_or_else(|| format!("{pc:#x}")));
        }
        By::Msr | By::Port | By::Gpa | By::Hypercall | By::CpuidLeaf => {
            if key.detail.detail.is_some_and(|(detail, _)| Some(detail) == by.detail()) {
                group.detail = key.detail.detail;
            }
        }
    }
}
