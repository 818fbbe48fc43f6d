//! The BPF programs in the kernel: their settings, and their counts.

use std::fmt;
use std::time::Duration;

use aya::maps::{Array, HashMap, MapData, PerCpuArray};
use aya::programs::raw_trace_point::RawTracePointLink;
use aya::{Ebpf, EbpfLoader};
use bpf::load::{RunTimes, attach, attach_for, kernel_types, load_object, load_program, take_map};
use timeline::delays::{DelayCounts, ReasonCounts};

use crate::delayer::MAX_CODES;
use crate::delayer::error::{DelayError, Result};

/// The object of `bpf/delay.bpf.c`; `None` on unsupported architectures.
#[cfg(target_arch = "x86_64")]
static OBJECT: Option<&[u8]> =
    Some(aya::include_bytes_aligned!("../../../../../bpf/delay_x86.bpf.o"));
#[cfg(target_arch = "aarch64")]
static OBJECT: Option<&[u8]> =
    Some(aya::include_bytes_aligned!("../../../../../bpf/delay_arm64.bpf.o"));
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
static OBJECT: Option<&[u8]> = None;

/// Max delay that the programs apply, whatever the setting.
pub const MAX_DELAY: Duration = Duration::from_micros(100);
/// Programs and their tracepoints: one sees the end of an exit, the other waits.
const ON_ENTRY: (&str, &str) = ("on_entry", "kvm_entry");
const ON_EXIT: (&str, &str) = ("on_exit", "kvm_exit");
/// `enum count` in the programs.
const PROGRESS: u32 = 0;
const FOREIGN: u32 = 1;
const OF_CODES: u32 = 2;
const A_CODE: u32 = 4;
/// `OF_SLOT` and `SLOTS`: the number of counts of a slice, and of slices with separate counts.
const A_SLOT: u32 = OF_CODES + A_CODE * MAX_CODES as u32;
const SLOTS: u32 = 4;
/// `SLICE_SHIFT` and `SLICE_MASK`: the position of the slice's number in the word.
const SLICE_SHIFT: u32 = 40;
const SLICE_MASK: u32 = 0xff_ffff;
/// `struct thread` in the programs: whether it is delayed, and two words of state.
type ThreadValue = [u64; 3];

/// A vCPU's thread to observe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedThread {
    pub tid: u32,
    /// Whether its exits are delayed, or only count as progress.
    pub is_delayed: bool,
}

/// Settings of the programs that never change.
#[derive(Clone, Debug, Default)]
pub struct DelayPlan {
    /// Threads of vCPUs.
    pub threads: Vec<DelayedThread>,
    /// The codes of each reason that may be delayed.
    pub reasons: Vec<Vec<u64>>,
    /// Codes of exits that count as progress.
    pub progress: Vec<u64>,
}

impl DelayPlan {
    /// All codes, each once.
    fn codes(&self) -> Vec<u64> {
        let mut codes: Vec<u64> =
            self.reasons.iter().flatten().chain(&self.progress).copied().collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }
}

/// The programs' number of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceNumber(u32);

/// Attached programs.
pub struct Delayer {
    /// Holds the programs.
    object: Ebpf,
    /// Attaches the program that waits.
    waits: Option<RawTracePointLink>,
    run_times: RunTimes,
    slice: SliceNumber,
    setting: Array<MapData, u64>,
    counts: PerCpuArray<MapData, u64>,
    /// For each reason, a bit mask of its codes.
    places: Vec<u64>,
}

impl Delayer {
    /// Loads and attaches the programs, without a delay.
    ///
    /// # Errors
    /// When the kernel lacks support, the user lacks permission, or there are too many codes.
    pub fn new(plan: &DelayPlan) -> Result<Self> {
        let object = OBJECT.ok_or(DelayError::Architecture)?;
        let codes = plan.codes();
        if codes.len() > MAX_CODES {
            return Err(DelayError::TooMany(codes.len()));
        }
        let bits = |subset: &[u64]| bits(&codes, subset);
        let places: Vec<u64> = plan.reasons.iter().map(|reason| bits(reason)).collect();
        let progress_places = bits(&plan.progress) as u32;
        let mut room = [0; MAX_CODES];
        room.iter_mut().zip(&codes).for_each(|(place, code)| *place = *code);
        let (used, isa) = (codes.len() as u32, crate::host_isa());
        let types = kernel_types()?;
        let mut loader = EbpfLoader::new();
        loader
            .btf(Some(&types))
            .override_global("codes", &room, true)
            .override_global("codes_used", &used, true)
            .override_global("progress_places", &progress_places, true)
            .override_global("host_isa", &isa, cfg!(target_arch = "x86_64"));
        let mut object = load_object(&mut loader, object)?;
        for (name, _) in [ON_ENTRY, ON_EXIT] {
            load_program(&mut object, name)?;
        }
        write_threads(take_map(&mut object, "threads")?, &plan.threads)?;
        let (setting, counts) =
            (take_map(&mut object, "setting")?, take_map(&mut object, "counts")?);
        let run_times = RunTimes::count();
        attach(&mut object, ON_ENTRY.0, ON_ENTRY.1)?;
        let waits = Some(attach_for(&mut object, ON_EXIT.0, ON_EXIT.1)?);
        let slice = SliceNumber::default();
        Ok(Self { object, waits, run_times, slice, setting, counts, places })
    }

    /// Attaches the waiting program again, so that it runs after all other programs that see an exit. Programs see an
    /// event in the order of their attachment, and one that runs after the wait would count the delay as guest time.
    /// Call it only while nothing is delayed or counted.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn come_last(&mut self) -> Result<()> {
        self.waits = None;
        self.waits = Some(attach_for(&mut self.object, ON_EXIT.0, ON_EXIT.1)?);
        Ok(())
    }

    /// CPU time of the programs, including their waits, if the kernel counts it.
    pub fn run_time_ns(&mut self) -> Option<u64> {
        self.run_times.total_ns(&mut self.object, &[ON_ENTRY.0, ON_EXIT.0])
    }

    /// The number of the next slice.
    #[must_use]
    pub const fn next_slice(&self) -> SliceNumber {
        SliceNumber(self.slice.0.wrapping_add(1) & SLICE_MASK)
    }

    /// Begins a slice: from now on exits of the reason at this place in the plan are delayed by this time; `None`: no
    /// delay.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn begin(&mut self, delay: Option<(usize, Duration)>) -> Result<SliceNumber> {
        let slice = self.next_slice();
        let word = delay.map_or(0, |(reason, delay)| {
            let ns = delay.min(MAX_DELAY).as_nanos() as u64;
            self.places.get(reason).map_or(0, |places| places << 32 | ns)
        });
        self.setting.set(0, word | u64::from(slice.0) << SLICE_SHIFT, 0)?;
        self.slice = slice;
        Ok(slice)
    }

    /// The counts of a slice, added to those of earlier slices in the same slot. An exit counts in the slice in which
    /// it began, until the end of the following slice.
    ///
    /// # Errors
    /// When they can't be read.
    pub fn counts(&self, slice: SliceNumber) -> Result<DelayCounts> {
        let first = slice.0 % SLOTS * A_SLOT;
        let mut counts = DelayCounts {
            progress: self.sum(first + PROGRESS)?,
            foreign: self.sum(first + FOREIGN)?,
            by_reason: Vec::new(),
        };
        for places in &self.places {
            let mut sums = [0_u64; A_CODE as usize];
            for place in (0..MAX_CODES as u32).filter(|place| places >> place & 1 == 1) {
                for (at, sum) in (0..).zip(&mut sums) {
                    let count = self.sum(first + OF_CODES + place * A_CODE + at)?;
                    *sum = sum.saturating_add(count);
                }
            }
            let [delayed, delay_ns, handled, handled_ns] = sums;
            counts.by_reason.push(ReasonCounts { delayed, delay_ns, handled, handled_ns });
        }
        Ok(counts)
    }

    fn sum(&self, at: u32) -> Result<u64> {
        let values = self.counts.get(&at, 0)?;
        Ok(values.iter().copied().fold(0, u64::saturating_add))
    }
}

fn write_threads(
    mut map: HashMap<MapData, u32, ThreadValue>,
    threads: &[DelayedThread],
) -> Result<()> {
    for thread in threads {
        map.insert(thread.tid, [thread.is_delayed.into(), 0, 0], 0)?;
    }
    Ok(())
}

/// A bit mask of codes, by their places among all.
fn bits(all: &[u64], subset: &[u64]) -> u64 {
    let places = all.iter().enumerate().filter(|(_, code)| subset.contains(code));
    places.fold(0, |bits, (place, _)| bits | 1 << place)
}

impl fmt::Debug for Delayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delayer").field("places", &self.places).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
