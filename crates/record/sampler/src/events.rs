//! The perf events: chooses one, and opens it on each CPU.

use std::fs;
use std::io;

use perfdata::{Attr, CpuEvent, Flags, event_type, flag, read_format, sample_type};
use rustix::io::Errno;
use sys::PerfRing;

use crate::error::{Result, SampleError};

/// Size of each CPU's ring: a second of 10,000 samples of 50 bytes.
const RING_BYTES: usize = 512 << 10;
/// Number of bytes that wake the reader.
const WATERMARK_BYTES: u32 = 128 << 10;
/// `CLOCK_MONOTONIC`: it can be read in an NMI.
const CLOCK_ID: i32 = 1;
/// `PERF_COUNT_HW_CPU_CYCLES` and `PERF_COUNT_SW_CPU_CLOCK`.
const CYCLES: u64 = 0;
const CPU_CLOCK: u64 = 0;

const NS_PER_S: u64 = 1_000_000_000;
/// Max relative deviation of a period: one part in this many.
const JITTER: u64 = 16;

/// The event that triggers samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampledEvent {
    /// The processor's cycle counter.
    Cycles,
    /// The kernel's timer.
    CpuClock,
}

impl SampledEvent {
    /// perf's name of the event.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::CpuClock => "cpu-clock",
        }
    }
}

/// Features of newer kernels, tried from the newest on.
#[derive(Clone, Copy, Debug)]
struct Age {
    /// Linux 6.1: the number of lost samples can be read.
    lost: bool,
    /// Linux 5.12: mappings carry build ids.
    build_ids: bool,
}

const AGES: [Age; 3] = [
    Age { lost: true, build_ids: true },
    Age { lost: false, build_ids: true },
    Age { lost: false, build_ids: false },
];

#[derive(Debug)]
pub(crate) struct CpuEvents {
    event: SampledEvent,
    attr: Attr,
    rings: Vec<(CpuEvent, PerfRing)>,
}

impl CpuEvents {
    /// Opens the requested event, or the best available one.
    pub(crate) fn open(event: Option<SampledEvent>, hz: u32, cpus: &[u32]) -> Result<Self> {
        let most = fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate");
        let max = most.ok().and_then(|text| text.trim().parse().ok());
        if let Some(max) = max.filter(|&max: &u32| hz > max) {
            return Err(SampleError::TooOften { hz, most: max });
        }
        match event {
            Some(event) => Self::open_event(event, hz, cpus),
            None => match Self::open_event(SampledEvent::Cycles, hz, cpus) {
                Err(SampleError::NoEvent { .. }) => {
                    Self::open_event(SampledEvent::CpuClock, hz, cpus)
                }
                opened => opened,
            },
        }
    }

    fn open_event(event: SampledEvent, hz: u32, cpus: &[u32]) -> Result<Self> {
        let (oldest, newer) = (AGES.last(), AGES.iter().rev().skip(1).rev());
        for &age in newer {
            match Self::open_on_all(event, attr(event, hz, age), cpus) {
                Err(SampleError::NoEvent { source, .. }) if is(&source, Errno::INVAL) => {}
                opened => return opened,
            }
        }
        let oldest = oldest.copied().unwrap_or(Age { lost: false, build_ids: false });
        Self::open_on_all(event, attr(event, hz, oldest), cpus)
    }

    fn open_on_all(event: SampledEvent, attr: Attr, cpus: &[u32]) -> Result<Self> {
        let mut rings = Vec::with_capacity(cpus.len());
        for &cpu in cpus {
            let ring = match PerfRing::open(&attr.to_bytes(), cpu, RING_BYTES) {
                Ok(ring) => ring,
                // The CPU went offline.
                Err(error) if is(&error, Errno::NODEV) => continue,
                Err(error) if is(&error, Errno::PERM) || is(&error, Errno::ACCESS) => {
                    return Err(SampleError::NotAllowed);
                }
                Err(source) => {
                    return Err(SampleError::NoEvent { event: event.name(), cpu, source });
                }
            };
            let id = ring.id().map_err(SampleError::events("number"))?;
            rings.push((CpuEvent { id, cpu }, ring));
        }
        if rings.is_empty() { Err(SampleError::NoCpu) } else { Ok(Self { event, attr, rings }) }
    }

    pub(crate) fn event(&self) -> SampledEvent {
        self.event
    }

    pub(crate) fn attr(&self) -> &Attr {
        &self.attr
    }

    pub(crate) fn rings(&mut self) -> impl Iterator<Item = &mut PerfRing> {
        self.rings.iter_mut().map(|(_, ring)| ring)
    }

    pub(crate) fn list(&self) -> Vec<CpuEvent> {
        self.rings.iter().map(|(event, _)| *event).collect()
    }

    pub(crate) fn fds(&self) -> impl Iterator<Item = &PerfRing> {
        self.rings.iter().map(|(_, ring)| ring)
    }

    /// Draws new random periods for a timer event: a fixed period could run in step with another periodic activity,
    /// such as another machine's sampling. For hardware counters, the kernel varies the period anyway.
    pub(crate) fn jitter(&self, hz: u32) -> Result<()> {
        if self.event != SampledEvent::CpuClock {
            return Ok(());
        }
        let usual_ns = NS_PER_S / u64::from(hz.max(1));
        let span_ns = usual_ns / JITTER;
        let mut drawn = vec![0; self.rings.len() * size_of::<u64>()];
        // Without random numbers the period stays fixed.
        let drawn =
            match rustix::rand::getrandom(&mut *drawn, rustix::rand::GetRandomFlags::NONBLOCK) {
                Ok(_) => drawn,
                Err(_) => return Ok(()),
            };
        for (ring, drawn) in self.fds().zip(drawn.as_chunks::<8>().0) {
            let off_ns = u64::from_ne_bytes(*drawn) % (2 * span_ns + 1);
            ring.set_period(usual_ns - span_ns + off_ns).map_err(SampleError::events("jitter"))?;
        }
        Ok(())
    }

    pub(crate) fn enable(&self) -> Result<()> {
        self.fds().try_for_each(PerfRing::enable).map_err(SampleError::events("begin"))
    }

    /// The event of an unplugged CPU is gone already, so errors are ignored.
    pub(crate) fn disable(&self) {
        self.fds().for_each(|ring| drop(ring.disable()));
    }

    /// Number of lost samples of each event; `None` if the kernel does not count them.
    pub(crate) fn lost(&self) -> Option<Vec<(CpuEvent, u64)>> {
        if self.attr.read_format & read_format::LOST == 0 {
            return None;
        }
        let lost = |(event, ring): &(CpuEvent, PerfRing)| {
            let [_, lost] = ring.values::<2>().ok()?;
            Some((*event, lost))
        };
        self.rings.iter().map(lost).collect()
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

fn attr(event: SampledEvent, hz: u32, age: Age) -> Attr {
    let (kind, config) = match event {
        SampledEvent::Cycles => (event_type::HARDWARE, CYCLES),
        SampledEvent::CpuClock => (event_type::SOFTWARE, CPU_CLOCK),
    };
    let mut flags = vec![
        flag::DISABLED,
        flag::MMAP,
        flag::COMM,
        flag::FREQ,
        flag::TASK,
        flag::WATERMARK,
        flag::SAMPLE_ID_ALL,
        flag::MMAP2,
        flag::COMM_EXEC,
        flag::USE_CLOCK_ID,
    ];
    if age.build_ids {
        flags.extend([flag::KSYMBOL, flag::BUILD_ID]);
    }
    // Excludes neither host nor guests, and requests no precise sampling: precise sampling stops while a guest runs.
    Attr {
        kind,
        config,
        sample_period: hz.into(),
        sample_type: sample_type::IDENTIFIER
            | sample_type::IP
            | sample_type::TID
            | sample_type::TIME
            | sample_type::CPU
            | sample_type::PERIOD
            | sample_type::CALLCHAIN,
        read_format: if age.lost { read_format::LOST } else { 0 },
        flags: Flags::with_bits(&flags),
        wakeup: WATERMARK_BYTES,
        branch_sample_type: 0,
        sample_regs_user: 0,
        sample_regs_intr: 0,
        clock_id: CLOCK_ID,
    }
}
