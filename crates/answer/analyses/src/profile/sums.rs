//! Sums for a profile: each vCPU's time by state, and code locations from exits by host interrupts and from
//! samples of its thread.

use rustc_hash::FxHashMap;
use sources::Samples;
use timeline::reasons::ReasonNames;

use super::Evidence;
use super::sample_log::{Logged, SampleLog, Whose};
use super::samples::{MachineSamples, Place};
use super::slices::{SliceGrid, SliceTimes};
use super::strata::Strata;
use crate::states::{
    ExitOf, GuestCpu, OccupantSpan, StateNeeds, StateSink, StateSpan, VcpuRef, VcpuState,
};
use crate::view::View;

/// Max distinct places of all vCPUs together.
const MAX_PLACES: usize = 1 << 20;
/// Bytes of a place with its times by slices.
const PLACE_BYTES: usize = 128;
/// Bytes of a time in a slice.
const TIME_BYTES: usize = 32;

/// A part of a vCPU's time with comparable samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Stratum {
    pub(super) vcpu: VcpuRef,
    pub(super) level: u8,
    pub(super) state: VcpuState,
    /// The `isa` field and raw code of the exit.
    pub(super) exit: Option<(u8, u64)>,
    /// The guest's running thread.
    pub(super) task: Option<u32>,
    /// Whether the guest sampled itself during this time.
    pub(super) is_self_sampled: bool,
}

/// Samples at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) samples: u64,
    /// Total time that the samples represent: each represents the time since the previous sample.
    pub(super) weight_ns: u64,
    /// That time by slices, if requested.
    pub(super) by_slice: SliceTimes,
}

/// Samples of one kind in a stratum.
#[derive(Clone, Debug, Default)]
pub(super) struct StratumSamples {
    /// Typical time between two samples; 0 if unknown.
    period_ns: u64,
    /// Time since the last sample.
    pending_ns: u64,
    /// `pending_ns` by slices, if requested.
    pending_by_slice: SliceTimes,
    pub(super) count: u64,
    pub(super) seen: FxHashMap<Place, Seen>,
    /// Total weight.
    pub(super) weight_ns: u64,
    /// Sum of squared weights, for the effective sample size.
    pub(super) squares: f64,
}

impl StratumSamples {
    /// Adds time without a sample.
    fn wait(&mut self, from_ns: u64, to_ns: u64, grid: Option<&mut SliceGrid>) {
        self.pending_ns = self.pending_ns.saturating_add(to_ns.saturating_sub(from_ns));
        if let Some(grid) = grid {
            self.pending_by_slice.add(grid, from_ns, to_ns);
        }
    }

    /// [`StratumSamples::add`] with a limit on places: beyond it, one place stands for all others of its kind.
    /// Returns that place, and the sample's weight.
    fn add_within(&mut self, room: &mut usize, place: Place) -> (Place, u64) {
        let is_new = !self.seen.contains_key(&place);
        let is_kept = !is_new || *room > 0;
        *room -= usize::from(is_new && is_kept);
        let place = if is_kept { place } else { place.not_kept_apart() };
        (place, self.add(place))
    }

    /// Adds a sample, which represents the time since the previous one; returns that time.
    fn add(&mut self, place: Place) -> u64 {
        let weight_ns = std::mem::take(&mut self.pending_ns);
        self.weight_ns = self.weight_ns.saturating_add(weight_ns);
        self.squares += (weight_ns as f64).powi(2);
        self.count = self.count.saturating_add(1);
        let seen = self.seen.entry(place).or_default();
        seen.samples = seen.samples.saturating_add(1);
        seen.weight_ns = seen.weight_ns.saturating_add(weight_ns);
        seen.by_slice.take(&mut self.pending_by_slice);
        weight_ns
    }

    /// Max time that this number of samples can represent: with a periodic timer, a longer time has so few samples
    /// only once in some hundreds (Poisson). `u64::MAX` without a typical period.
    pub(super) fn most_ns(&self) -> u64 {
        if self.period_ns == 0 {
            return u64::MAX;
        }
        let samples = self.count as f64;
        ((samples + 3.0 * samples.sqrt() + 4.0) * self.period_ns as f64) as u64
    }

    fn by_slices(&mut self) -> impl Iterator<Item = &mut SliceTimes> {
        self.seen
            .values_mut()
            .map(|sighting| &mut sighting.by_slice)
            .chain([&mut self.pending_by_slice])
    }
}

/// Source of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleKind {
    /// Host interrupts that caused exits.
    Exits,
    /// Samples by the host.
    Host,
    /// Samples by the guest itself.
    Agent,
}

impl SampleKind {
    /// The evidence in reports.
    pub(super) const fn evidence(self) -> Evidence {
        match self {
            Self::Exits => Evidence::Exits,
            Self::Host => Evidence::Host,
            Self::Agent => Evidence::Agent,
        }
    }
}

/// Time and samples of a stratum.
#[derive(Clone, Debug, Default)]
pub(super) struct StratumSum {
    pub(super) time_ns: u64,
    /// Time by slices, if requested.
    pub(super) by_slice: SliceTimes,
    /// Exits by host interrupts.
    pub(super) exits: StratumSamples,
    /// Samples by the host.
    pub(super) host: StratumSamples,
    /// Samples by the guest itself.
    pub(super) agent: StratumSamples,
}

impl StratumSum {
    pub(super) const fn samples_of(&self, kind: SampleKind) -> &StratumSamples {
        match kind {
            SampleKind::Exits => &self.exits,
            SampleKind::Host => &self.host,
            SampleKind::Agent => &self.agent,
        }
    }

    const fn of_mut(&mut self, kind: SampleKind) -> &mut StratumSamples {
        match kind {
            SampleKind::Exits => &mut self.exits,
            SampleKind::Host => &mut self.host,
            SampleKind::Agent => &mut self.agent,
        }
    }

    /// Adds time.
    fn pass(&mut self, from_ns: u64, to_ns: u64, grid: Option<&mut SliceGrid>) {
        self.time_ns = self.time_ns.saturating_add(to_ns.saturating_sub(from_ns));
        if let Some(grid) = grid {
            self.by_slice.add(grid, from_ns, to_ns);
        }
    }

    fn by_slices(&mut self) -> impl Iterator<Item = &mut SliceTimes> {
        let kinds = [&mut self.exits, &mut self.host, &mut self.agent];
        kinds.into_iter().flat_map(StratumSamples::by_slices).chain([&mut self.by_slice])
    }

    /// The host's source for code locations. Its own samples are independent of the guest; exits are biased,
    /// because a guest's timer also causes them, so they are only used if they are much more frequent.
    pub(super) const fn seen_by_host(&self) -> SampleKind {
        if self.host.count.saturating_mul(2) >= self.exits.count {
            SampleKind::Host
        } else {
            SampleKind::Exits
        }
    }
}

/// Last states of a vCPU.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    exit_start_ns: Option<u64>,
    /// The guest's stratum before an exit that was not handled yet.
    unended: Option<Stratum>,
    /// The guest's last stratum.
    guest: Option<Stratum>,
    /// The guest's last stratum outside of interrupts.
    task: Option<Stratum>,
}

/// Sums spans.
#[derive(Debug)]
pub(crate) struct ProfileSums<'s> {
    pub(super) strata: Strata,
    /// CPU time of sampled host threads, by recording and thread.
    pub(super) threads: FxHashMap<(u16, u32), StratumSum>,
    /// Exit reasons by recording.
    pub(super) reasons: Vec<ReasonNames>,
    pub(super) samples: MachineSamples<'s>,
    /// Log of single samples, if requested.
    pub(super) log: Option<SampleLog>,
    /// Slices of time, if requested.
    pub(super) grid: Option<SliceGrid>,
    last: FxHashMap<VcpuRef, Last>,
    /// Number of places that can still be added.
    room: usize,
}

impl<'s> ProfileSums<'s> {
    /// `view` has the alignments of guests; `samples` are by recording.
    pub(super) fn new(view: View<'s>, samples: &'s [Option<Samples>]) -> Self {
        let View { recordings, .. } = view;
        let reasons = recordings.iter().map(ReasonNames::new).collect();
        let samples = MachineSamples::new(view, samples);
        let (strata, threads) = (Strata::default(), FxHashMap::default());
        let (log, grid) = (None, None);
        let (last, room) = (FxHashMap::default(), MAX_PLACES);
        Self { strata, threads, reasons, samples, log, grid, last, room }
    }

    /// As [`ProfileSums::new`], with times by slices, limited to `bytes` of memory.
    pub(crate) fn by_slice(view: View<'s>, samples: &'s [Option<Samples>], bytes: usize) -> Self {
        let grid = Some(SliceGrid::new(bytes / TIME_BYTES));
        let room = MAX_PLACES.min(bytes / PLACE_BYTES);
        Self { grid, room, ..Self::new(view, samples) }
    }

    /// Extends the grid to a time range.
    fn reach(&mut self, from_ns: u64, to_ns: u64) {
        let Some(grid) = &mut self.grid else { return };
        grid.reach(from_ns, to_ns);
        while grid.is_too_fine() {
            grid.widen();
            let sums = self.strata.sums_mut().chain(self.threads.values_mut());
            for times in sums.flat_map(StratumSum::by_slices) {
                times.widen();
                grid.count(times);
            }
        }
    }

    /// Adds a sample of a stratum.
    fn sample(&mut self, stratum: Stratum, place: Place, at_ns: u64, kind: SampleKind) {
        let Some(sum) = self.strata.get_mut(&stratum) else { return };
        let (place, weight_ns) = sum.of_mut(kind).add_within(&mut self.room, place);
        if let Some(log) = &mut self.log {
            log.push(Logged { whose: Whose::Vcpu(stratum), kind, place, at_ns, weight_ns });
        }
    }

    /// Adds the host's samples of the vCPU's thread in a span of `stratum`.
    fn host_samples(&mut self, vcpu: VcpuRef, span: &StateSpan, stratum: Stratum) {
        if self.samples.of_recording(vcpu.recording).is_none() {
            return;
        }
        let mut from_ns = span.from_ns;
        while let Some(at) = self.samples.next(vcpu, span.from_ns, span.to_ns) {
            self.wait(stratum, from_ns, at.time_ns);
            from_ns = at.time_ns;
            let Some(place) = self.samples.place(vcpu.recording, at) else { continue };
            let (stratum, place) = match place {
                Place::Guest(_) if !span.state.is_guest() => match self.interrupted(vcpu, span) {
                    Some(guest) => (guest, place),
                    // The sample has a guest address, but its vCPU was not in the guest: arm64 reports guest mode
                    // for everything that happens while a vCPU is loaded.
                    None => (stratum, Place::Host(None)),
                },
                _ => (stratum, place),
            };
            self.sample(stratum, place, at.time_ns, SampleKind::Host);
        }
        self.wait(stratum, from_ns, span.to_ns);
    }

    /// Adds the guest's own samples in a span in which it sampled itself.
    fn guest_samples(
        &mut self,
        vcpu: VcpuRef,
        span: &StateSpan,
        (stratum, period_ns): (Stratum, u64),
    ) {
        // A timer interrupt takes the sample, so the sample belongs to the interrupted code.
        let last = self.last.entry(vcpu).or_default();
        if span.state != VcpuState::GuestIrq {
            last.task = Some(stratum);
        }
        let seen = last.task.map_or(stratum, |task| Stratum { is_self_sampled: true, ..task });
        let mut from_ns = span.from_ns;
        while let Some((at, guest)) = self.samples.next_of_guest(vcpu, span.from_ns, span.to_ns) {
            let agent = &mut self.strata.get_or_insert(stratum).agent;
            agent.wait(from_ns, at.time_ns, self.grid.as_mut());
            from_ns = at.time_ns.max(from_ns);
            if let Some(place) = self.samples.place_in_guest(guest, at) {
                self.sample(seen, place, at.time_ns, SampleKind::Agent);
            }
        }
        let agent = &mut self.strata.get_or_insert(stratum).agent;
        agent.wait(from_ns, span.to_ns, self.grid.as_mut());
        agent.period_ns = period_ns;
    }

    /// Adds a time span with one state; `period_ns` is the period of the guest's own samples.
    fn piece(&mut self, vcpu: VcpuRef, span: &StateSpan, period_ns: Option<u64>) {
        let in_guest = span.state.is_guest();
        let stratum = Stratum {
            vcpu,
            level: span.level,
            state: span.state,
            exit: span.exit.map(|exit| (exit.isa, exit.code)),
            task: span.task.filter(|_| in_guest),
            is_self_sampled: period_ns.is_some(),
        };
        let sum = self.strata.get_or_insert(stratum);
        sum.pass(span.from_ns, span.to_ns, self.grid.as_mut());
        if in_guest {
            sum.exits.wait(span.from_ns, span.to_ns, self.grid.as_mut());
            let last = self.last.entry(vcpu).or_default();
            (last.guest, last.unended) = (Some(stratum), Some(stratum));
        }
        self.host_samples(vcpu, span, stratum);
        if let Some(period_ns) = period_ns {
            self.guest_samples(vcpu, span, (stratum, period_ns));
        }
    }

    fn wait(&mut self, stratum: Stratum, from_ns: u64, to_ns: u64) {
        let host = &mut self.strata.get_or_insert(stratum).host;
        host.wait(from_ns, to_ns, self.grid.as_mut());
    }

    /// The guest's stratum that the sampling interrupt interrupted: hosts trace the exit before they handle the
    /// interrupt (VMX), or after it (SVM, arm64).
    fn interrupted(&self, vcpu: VcpuRef, span: &StateSpan) -> Option<Stratum> {
        let reasons = self.reasons.get(usize::from(vcpu.recording))?;
        let by_interrupt = |exit: ExitOf| reasons.isa(exit.isa).interrupts(exit.code);
        let is_its = span.state == VcpuState::BeforeExit || span.exit.is_some_and(by_interrupt);
        self.last.get(&vcpu)?.guest.filter(|_| is_its)
    }

    /// Handles the exit of a span, if it is a new one.
    fn exit(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        let Some(exit) = span.exit else { return };
        let last = self.last.entry(vcpu).or_default();
        if last.exit_start_ns.replace(exit.start_ns) == Some(exit.start_ns) {
            return;
        }
        let guest = last.unended.take();
        let reasons = self.reasons.get(usize::from(vcpu.recording));
        let is_sample = reasons.is_some_and(|names| names.isa(exit.isa).interrupts(exit.code));
        if let Some(stratum) = guest.filter(|_| is_sample && exit.guest_pc != 0) {
            let place = Place::Guest(exit.guest_pc);
            self.sample(stratum, place, exit.start_ns, SampleKind::Exits);
        }
    }
}

impl StateSink for ProfileSums<'_> {
    fn needs(&self) -> StateNeeds<'_> {
        StateNeeds { guest_pc: true, ..StateNeeds::default() }
    }

    fn runs_in(&mut self, vcpu: VcpuRef, thread: u32) {
        self.samples.runs_in(vcpu, thread);
    }

    fn vcpu(&mut self, vcpu: VcpuRef, span: &StateSpan) {
        self.reach(span.from_ns, span.to_ns);
        self.exit(vcpu, span);
        let mut from_ns = span.from_ns;
        while span.state.is_guest() && span.level == 1 {
            let Some((part, period_ns)) = self.samples.covered(vcpu, from_ns, span.to_ns) else {
                break;
            };
            let piece = StateSpan { from_ns, to_ns: part.to_ns, ..*span };
            self.piece(vcpu, &piece, Some(period_ns).filter(|_| part.is_sampled));
            from_ns = part.to_ns;
            if from_ns >= span.to_ns {
                return;
            }
        }
        self.piece(vcpu, &StateSpan { from_ns, ..*span }, None);
    }

    fn task(&mut self, _: GuestCpu, _: u32, _: &StateSpan) {}

    fn cpu(&mut self, cpu: GuestCpu, span: &OccupantSpan) {
        let thread = span.thread.filter(|&thread| thread != 0);
        let Some(thread) = thread.filter(|_| self.samples.of_recording(cpu.recording).is_some())
        else {
            return;
        };
        self.reach(span.from_ns, span.to_ns);
        let whose = (cpu.recording, thread);
        let sum = self.threads.entry(whose).or_default();
        sum.pass(span.from_ns, span.to_ns, self.grid.as_mut());
        let mut from_ns = span.from_ns;
        while let Some(at) = self.samples.next_of_thread(whose, span.from_ns, span.to_ns) {
            sum.host.wait(from_ns, at.time_ns, self.grid.as_mut());
            from_ns = at.time_ns;
            let place = self.samples.place(cpu.recording, at);
            let Some(place) = place.filter(|place| matches!(place, Place::Host(_))) else {
                continue;
            };
            let (place, weight_ns) = sum.host.add_within(&mut self.room, place);
            if let Some(log) = &mut self.log {
                let (whose, kind) = (Whose::Thread(whose), SampleKind::Host);
                log.push(Logged { whose, kind, place, at_ns: at.time_ns, weight_ns });
            }
        }
        sum.host.wait(from_ns, span.to_ns, self.grid.as_mut());
    }
}
