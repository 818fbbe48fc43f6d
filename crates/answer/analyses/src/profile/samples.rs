//! Matches samples of host threads and guest CPUs with spans of time, and stores each distinct stack once.

use rustc_hash::FxHashMap;
use sources::{CpuMode, Recording, SampleAt, SampledCode, Samples};
use symbols::{Machine, ProcessLog};

use super::coverage::{Coverage, Covered};
use crate::align::GuestAlignment;
use crate::states::{GuestCpu, VcpuRef};
use crate::view::View;

/// Max frames of all distinct stacks; further samples have no stack.
const MAX_STACK_FRAMES: usize = 1 << 22;

/// Location of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Place {
    /// A guest address; 0 beyond the limit of distinct places.
    Guest(u64),
    /// Number of a host stack; `None` beyond the limit, or if no stack was recorded.
    Host(Option<u32>),
    /// Number of a stack that the guest sampled itself; `None` as for `Host`.
    GuestStack(Option<u32>),
}

impl Place {
    /// The replacement beyond the limit of distinct places.
    pub(super) const fn not_kept_apart(self) -> Self {
        match self {
            Self::Guest(_) => Self::Guest(0),
            Self::Host(_) => Self::Host(None),
            Self::GuestStack(_) => Self::GuestStack(None),
        }
    }
}

/// Position in a vCPU's samples.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    thread: u32,
    next: usize,
}

/// Position in the guest's own samples of a vCPU.
#[derive(Clone, Debug)]
struct GuestCursor {
    guest: GuestCpu,
    /// Bound of the guest's clock.
    bound_ns: u64,
    next: usize,
    coverage: Coverage,
}

/// Samples of all recordings' machines.
#[derive(Debug)]
pub(super) struct MachineSamples<'s> {
    /// Samples by recording.
    samples: &'s [Option<Samples>],
    /// Kernel symbols and process mappings by recording.
    machines: Vec<Option<Machine<'s>>>,
    cursors: FxHashMap<VcpuRef, Cursor>,
    /// Sampled guest CPUs with their clock bounds, by host's recording and vCPU thread.
    guest_cpus: FxHashMap<(u16, u32), (GuestCpu, u64)>,
    guest_cursors: FxHashMap<VcpuRef, GuestCursor>,
    /// Positions in threads' samples, by recording and thread.
    by_thread: FxHashMap<(u16, u32), usize>,
    stacks: Stacks,
    /// Scratch buffer for one sample.
    addresses: Vec<u64>,
    frames: Vec<symbols::Place>,
}

impl<'s> MachineSamples<'s> {
    pub(super) fn new(view: View<'s>, samples: &'s [Option<Samples>]) -> Self {
        let View { recordings, guests } = view;
        let pairs = recordings.iter().zip(samples);
        Self {
            samples,
            machines: pairs.map(|(host, samples)| machine(host, samples.as_ref()?)).collect(),
            cursors: FxHashMap::default(),
            guest_cpus: guest_cpus(guests, samples),
            guest_cursors: FxHashMap::default(),
            by_thread: FxHashMap::default(),
            stacks: Stacks::default(),
            addresses: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// Samples of a recording.
    pub(super) fn of_recording(&self, recording: u16) -> Option<&'s Samples> {
        self.samples.get(usize::from(recording))?.as_ref()
    }

    /// Sets the host thread of a vCPU.
    pub(super) fn runs_in(&mut self, vcpu: VcpuRef, thread: u32) {
        if let Some(&(guest, bound_ns)) = self.guest_cpus.get(&(vcpu.recording, thread))
            && !self.guest_cursors.contains_key(&vcpu)
        {
            let coverage = Coverage::from_times(self.of_guest(guest).iter().map(|at| at.time_ns));
            self.guest_cursors.insert(vcpu, GuestCursor { guest, bound_ns, next: 0, coverage });
        }
        if self.of_recording(vcpu.recording).is_some() {
            self.cursors.entry(vcpu).or_insert(Cursor { thread, next: 0 }).thread = thread;
        }
    }

    /// The first part of a span in which the guest of a vCPU either sampled itself or did not, with the typical
    /// sampling period. `None` if the guest was not sampled. Spans must be in the order of time.
    pub(super) fn covered(
        &mut self,
        vcpu: VcpuRef,
        from_ns: u64,
        to_ns: u64,
    ) -> Option<(Covered, u64)> {
        let coverage = &mut self.guest_cursors.get_mut(&vcpu)?.coverage;
        Some((coverage.part(from_ns, to_ns), coverage.period_ns))
    }

    /// A guest's own samples of one of its CPUs.
    fn of_guest(&self, guest_cpu: GuestCpu) -> &'s [SampleAt] {
        let samples = self.of_recording(guest_cpu.recording);
        samples.map_or(&[], |samples| samples.of_cpu(guest_cpu.cpu.into()))
    }

    /// The next sample of a vCPU by its guest in a span; see [`MachineSamples::next`]. Includes the index of the
    /// guest's recording.
    pub(super) fn next_of_guest(
        &mut self,
        vcpu: VcpuRef,
        from_ns: u64,
        to_ns: u64,
    ) -> Option<(SampleAt, u16)> {
        let all = self.of_guest(self.guest_cursors.get(&vcpu)?.guest);
        let cursor = self.guest_cursors.get_mut(&vcpu)?;
        // The guest's clock has an error bound; a sample proves that the guest ran.
        let from_ns = from_ns.saturating_sub(cursor.bound_ns);
        let at = advance(all, &mut cursor.next, from_ns, to_ns)?;
        Some((at, cursor.guest.recording))
    }

    /// The next sample of a vCPU in a span, if there is one; spans must be in the order of time.
    pub(super) fn next(&mut self, vcpu: VcpuRef, from_ns: u64, to_ns: u64) -> Option<SampleAt> {
        let samples = self.of_recording(vcpu.recording)?;
        let cursor = self.cursors.get_mut(&vcpu)?;
        advance(samples.of_thread(cursor.thread), &mut cursor.next, from_ns, to_ns)
    }

    /// As [`MachineSamples::next`], for a thread of the host.
    pub(super) fn next_of_thread(
        &mut self,
        (recording, thread): (u16, u32),
        from_ns: u64,
        to_ns: u64,
    ) -> Option<SampleAt> {
        let all = self.of_recording(recording)?.of_thread(thread);
        let next = self.by_thread.entry((recording, thread)).or_default();
        advance(all, next, from_ns, to_ns)
    }

    /// Location of a sample's code.
    pub(super) fn place(&mut self, recording: u16, at: SampleAt) -> Option<Place> {
        let code = self.of_recording(recording)?.code(at, &mut self.addresses)?;
        if matches!(code.mode, CpuMode::GuestKernel | CpuMode::GuestUser) {
            return Some(Place::Guest(self.addresses.first().copied().unwrap_or(0)));
        }
        Some(Place::Host(self.stack(recording, &code)?))
    }

    /// Location of the code in a guest's own sample.
    pub(super) fn place_in_guest(&mut self, recording: u16, at: SampleAt) -> Option<Place> {
        let code = self.of_recording(recording)?.code(at, &mut self.addresses)?;
        Some(Place::GuestStack(self.stack(recording, &code)?))
    }

    /// Number of the stack that was just read.
    fn stack(&mut self, recording: u16, code: &SampledCode) -> Option<Option<u32>> {
        let machine = self.machines.get(usize::from(recording))?.as_ref()?;
        let process = code.process.unwrap_or(0);
        self.frames.clear();
        self.frames.extend(self.addresses.iter().map(|&address| {
            if is_kernel(address) {
                machine.kernel_place(address)
            } else {
                machine.user_place(process, code.stamp_ns, address)
            }
        }));
        Some(self.stacks.number(recording, &self.frames))
    }

    /// The sampled machines by recording, and all stacks by number.
    pub(super) fn finish(self) -> (Vec<Option<Machine<'s>>>, Vec<Box<[symbols::Place]>>) {
        (self.machines, self.stacks.into_list())
    }
}

/// Sampled guest CPUs with their clock bounds, by host's recording and vCPU thread.
fn guest_cpus(
    guests: &[GuestAlignment],
    samples: &[Option<Samples>],
) -> FxHashMap<(u16, u32), (GuestCpu, u64)> {
    let mut cpus = FxHashMap::default();
    for alignment in guests {
        if !samples.get(alignment.guest).is_some_and(Option::is_some) {
            continue;
        }
        let rows = alignment.result().map_or(&[][..], |result| &result.rows);
        for row in rows {
            let [host, recording] = [alignment.host, alignment.guest].map(u16::try_from);
            let (Ok(host), Ok(recording), Ok(cpu)) = (host, recording, row.guest_cpu.try_into())
            else {
                continue;
            };
            let bound_ns = row.bound_ns.unwrap_or(0);
            cpus.insert((host, row.thread), (GuestCpu { recording, cpu }, bound_ns));
        }
    }
    cpus
}

/// The machine of the samples. Build ids decide whether local files match the host's.
fn machine<'s>(host: &'s Recording, samples: &Samples) -> Option<Machine<'s>> {
    let mut log = ProcessLog::default();
    for (build_id, path) in samples.build_ids() {
        log.build_id(path.as_bytes(), *build_id);
    }
    for record in samples.records() {
        log.read(samples.events(), &record);
    }
    Some(if samples.is_of_guest() {
        Machine::elsewhere(host.kallsyms(), log.finish())
    } else {
        Machine::here(host.kallsyms(), log.finish())
    })
}

/// Kernel addresses are in the upper half of the address space on x86-64, arm64 and RISC-V: the first byte is
/// 0xff. A frame-pointer walk can also find non-canonical addresses.
pub(super) fn is_kernel(address: u64) -> bool {
    address >> 56 == 0xff
}

/// The next sample in a span; skips earlier samples permanently.
fn advance(all: &[SampleAt], next: &mut usize, from_ns: u64, to_ns: u64) -> Option<SampleAt> {
    while let Some(&at) = all.get(*next).filter(|at| at.time_ns < to_ns) {
        *next += 1;
        if at.time_ns >= from_ns {
            return Some(at);
        }
    }
    None
}

/// Distinct stacks: frames, innermost first. Stacks of different machines are distinct.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    numbers: FxHashMap<(u16, Box<[symbols::Place]>), u32>,
    frames: usize,
}

impl Stacks {
    fn number(&mut self, recording: u16, stack: &[symbols::Place]) -> Option<u32> {
        let key = (recording, stack.into());
        if let Some(&number) = self.numbers.get(&key) {
            return Some(number);
        }
        let frames = self.frames.checked_add(stack.len())?;
        if stack.is_empty() || frames > MAX_STACK_FRAMES {
            return None;
        }
        let number = u32::try_from(self.numbers.len()).ok()?;
        self.frames = frames;
        self.numbers.insert(key, number);
        Some(number)
    }

    /// All stacks by number.
    fn into_list(self) -> Vec<Box<[symbols::Place]>> {
        let stacks = self.numbers.into_iter();
        let mut numbered: Vec<(u32, Box<[symbols::Place]>)> =
            stacks.map(|((_, stack), number)| (number, stack)).collect();
        numbered.sort_unstable_by_key(|(number, _)| *number);
        numbered.into_iter().map(|(_, stack)| stack).collect()
    }
}
