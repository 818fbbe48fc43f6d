//! Samples of the host's threads, each given to the span of time that it falls into; and their stacks, each kept
//! once.

use rustc_hash::FxHashMap;
use sources::{CpuMode, SampleAt, Samples};

use crate::states::VcpuRef;

/// Addresses of all stacks that are kept apart; what comes after has no stack.
const MOST_STACK_ADDRESSES: usize = 1 << 22;

/// Where code was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Place {
    /// At an address of the guest's; 0: those are not kept apart any more.
    Guest(u64),
    /// In a stack of the host's, by its number; `None`: they are not kept apart any more, or it was not recorded.
    Host(Option<u32>),
}

/// How far a vCPU's samples were looked at.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    thread: u32,
    next: usize,
}

/// Samples of the hosts of all recordings.
#[derive(Debug)]
pub(super) struct HostSamples<'s> {
    /// By recording.
    samples: &'s [Option<Samples>],
    cursors: FxHashMap<VcpuRef, Cursor>,
    /// By recording and thread, how far its samples were looked at.
    by_thread: FxHashMap<(u16, u32), usize>,
    pub(super) stacks: Stacks,
    buffer: Vec<u64>,
}

impl<'s> HostSamples<'s> {
    pub(super) fn new(samples: &'s [Option<Samples>]) -> Self {
        let (cursors, by_thread) = (FxHashMap::default(), FxHashMap::default());
        Self { samples, cursors, by_thread, stacks: Stacks::default(), buffer: Vec::new() }
    }

    /// Those that were taken with a recording.
    pub(super) fn of(&self, recording: u16) -> Option<&'s Samples> {
        self.samples.get(usize::from(recording))?.as_ref()
    }

    /// A vCPU runs in that thread of the host's.
    pub(super) fn runs_in(&mut self, vcpu: VcpuRef, thread: u32) {
        if self.of(vcpu.recording).is_some() {
            self.cursors.entry(vcpu).or_insert(Cursor { thread, next: 0 }).thread = thread;
        }
    }

    /// The next sample of a vCPU in a span of time, unless that has no more; spans must come in order.
    pub(super) fn next(&mut self, vcpu: VcpuRef, from_ns: u64, to_ns: u64) -> Option<SampleAt> {
        let samples = self.of(vcpu.recording)?;
        let cursor = self.cursors.get_mut(&vcpu)?;
        advance(samples.of_thread(cursor.thread), &mut cursor.next, from_ns, to_ns)
    }

    /// As [`HostSamples::next`], of a thread of the host's.
    pub(super) fn next_of_thread(
        &mut self,
        (recording, thread): (u16, u32),
        from_ns: u64,
        to_ns: u64,
    ) -> Option<SampleAt> {
        let all = self.of(recording)?.of_thread(thread);
        let next = self.by_thread.entry((recording, thread)).or_default();
        advance(all, next, from_ns, to_ns)
    }

    /// Where code was at a sample.
    pub(super) fn place(&mut self, recording: u16, at: SampleAt) -> Option<Place> {
        let mode = self.of(recording)?.code(at, &mut self.buffer);
        Some(match mode {
            CpuMode::GuestKernel | CpuMode::GuestUser => {
                Place::Guest(self.buffer.first().copied().unwrap_or(0))
            }
            _ => Place::Host(self.stacks.number(&self.buffer)),
        })
    }
}

/// The next of `all` that lies in a span of time; those before it are passed over for good.
fn advance(all: &[SampleAt], next: &mut usize, from_ns: u64, to_ns: u64) -> Option<SampleAt> {
    while let Some(&at) = all.get(*next).filter(|at| at.time_ns < to_ns) {
        *next += 1;
        if at.time_ns >= from_ns {
            return Some(at);
        }
    }
    None
}

/// Stacks, each once: addresses, innermost first.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    numbers: FxHashMap<Box<[u64]>, u32>,
    addresses: usize,
}

impl Stacks {
    fn number(&mut self, stack: &[u64]) -> Option<u32> {
        if let Some(&number) = self.numbers.get(stack) {
            return Some(number);
        }
        let addresses = self.addresses.checked_add(stack.len())?;
        if stack.is_empty() || addresses > MOST_STACK_ADDRESSES {
            return None;
        }
        let number = u32::try_from(self.numbers.len()).ok()?;
        self.addresses = addresses;
        self.numbers.insert(stack.into(), number);
        Some(number)
    }

    /// All of them, by number.
    pub(super) fn into_list(self) -> Vec<Box<[u64]>> {
        let mut numbered: Vec<(u32, Box<[u64]>)> =
            self.numbers.into_iter().map(|(stack, number)| (number, stack)).collect();
        numbered.sort_unstable_by_key(|(number, _)| *number);
        numbered.into_iter().map(|(_, stack)| stack).collect()
    }
}
