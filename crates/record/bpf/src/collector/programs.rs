//! The BPF programs in the kernel, their ring and their maps.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::available_parallelism;

use crate::load::{attach, kernel_types, load_object, load_program, program, take_map};
use aya::maps::{HashMap, MapData, PerCpuArray, RingBuf};
use aya::{Ebpf, EbpfLoader};
use hypertrace::collected::{Counts, HEAD_BYTES, MAX_WORDS};

use crate::collector::error::{CollectError, Result};

/// The object of `bpf/collect.bpf.c`; `None` on unsupported architectures.
#[cfg(target_arch = "x86_64")]
static OBJECT: Option<&[u8]> =
    Some(aya::include_bytes_aligned!("../../../../../bpf/collect_x86.bpf.o"));
#[cfg(target_arch = "aarch64")]
static OBJECT: Option<&[u8]> =
    Some(aya::include_bytes_aligned!("../../../../../bpf/collect_arm64.bpf.o"));
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
static OBJECT: Option<&[u8]> = None;
/// The tracepoint of hypercalls.
const HYPERCALL: &str =
    if cfg!(target_arch = "aarch64") { "kvm_hvc_arm64" } else { "kvm_hypercall" };
/// Number of collected hypercall numbers: one for frames, one for marks.
pub(crate) const NUMBERS: u64 = 2;
/// Programs and their tracepoints. A record needs the exit before it, so the exit program is attached last.
const PROGRAMS: [(&str, &str); 4] = [
    ("on_thread_end", "sched_process_exit"),
    ("on_entry", "kvm_entry"),
    ("on_hypercall", HYPERCALL),
    ("on_exit", "kvm_exit"),
];
/// Max vCPU threads per CPU.
const THREADS_A_CPU: usize = 256;
const THREADS: std::ops::RangeInclusive<usize> = 4096..=65536;
/// Size of `struct state` in the programs: four words before the record.
const STATE_BYTES: usize = STATE_HEAD_BYTES + HEAD_BYTES + 8 * MAX_WORDS;
const STATE_HEAD_BYTES: usize = 32;
/// Offset of the flag that the record waits for its entry.
const WAITS_AT: usize = 16;

/// Loaded programs.
pub(crate) struct Programs {
    // Keeps the programs; ring and maps are taken out below.
    object: Ebpf,
    ring: RingBuf<MapData>,
    counts: PerCpuArray<MapData, u64>,
    states: HashMap<MapData, u32, [u8; STATE_BYTES]>,
}

impl Programs {
    /// Loads the programs for hypercalls with this number and the next.
    pub(crate) fn load(first_number: u64, words: u8) -> Result<Self> {
        let object = OBJECT.ok_or(CollectError::Architecture)?;
        let types = kernel_types()?;
        let words = u32::from(words).min(MAX_WORDS as u32);
        let threads = available_parallelism().map_or(1, usize::from).saturating_mul(THREADS_A_CPU);
        let threads = threads.clamp(*THREADS.start(), *THREADS.end());
        let mut loader = EbpfLoader::new();
        loader
            .btf(Some(&types))
            .override_global("first_number", &first_number, true)
            .override_global("numbers", &NUMBERS, true)
            .override_global("words", &words, true)
            .map_max_entries("states", u32::try_from(threads).unwrap_or(u32::MAX));
        let mut object = load_object(&mut loader, object)?;
        for (name, _) in PROGRAMS {
            load_program(&mut object, name)?;
        }
        Ok(Self {
            ring: take_map(&mut object, "records")?,
            counts: take_map(&mut object, "counts")?,
            states: take_map(&mut object, "states")?,
            object,
        })
    }

    pub(crate) fn attach(&mut self) -> Result<()> {
        for (name, tracepoint) in PROGRAMS {
            attach(&mut self.object, name, tracepoint)?;
        }
        Ok(())
    }

    pub(crate) fn detach(&mut self) {
        for (name, _) in PROGRAMS {
            if let Ok(program) = program(&mut self.object, name) {
                // A program that can't be unloaded goes with the process.
                let _ = program.unload();
            }
        }
    }

    /// Readable when the ring must be emptied.
    pub(crate) fn ring(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }

    pub(crate) fn records(&mut self, to: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        while let Some(record) = self.ring.next() {
            to(&record)?;
        }
        Ok(())
    }

    /// Records that still wait for an entry.
    pub(crate) fn waiting(&self) -> Result<Vec<Vec<u8>>> {
        let mut waiting = Vec::new();
        for state in self.states.iter() {
            let (_, state) = state?;
            let waits = state.get(WAITS_AT..).and_then(|rest| rest.first_chunk());
            if waits.is_some_and(|waits| u64::from_ne_bytes(*waits) != 0) {
                waiting.push(state.get(STATE_HEAD_BYTES..).unwrap_or_default().to_vec());
            }
        }
        Ok(waiting)
    }

    /// Counts of all CPUs.
    pub(crate) fn counts(&self) -> Result<Counts> {
        let sum = |at: u32| -> Result<u64> {
            let values = self.counts.get(&at, 0)?;
            Ok(values.iter().copied().fold(0, u64::saturating_add))
        };
        Ok(Counts {
            hypercalls: sum(0)?,
            ring_full: sum(1)?,
            no_exit: sum(2)?,
            no_room: sum(3)?,
            unreadable: sum(4)?,
        })
    }
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Programs").field("object", &self.object).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    /// Attached programs, or why the test can't run: in a container, threads have other ids than the kernel's.
    fn attached() -> std::result::Result<Programs, String> {
        if !testkit::has_kernels_ids() {
            return Err("ids of threads are a container's".into());
        }
        let attached = Programs::load(0x4853_0000, 4).and_then(|mut programs| {
            programs.attach()?;
            Ok(programs)
        });
        attached.map_err(|error| {
            // A verifier error is a bug in the programs, not a limitation of this machine.
            let is_refused =
                matches!(error, CollectError::Programs(crate::load::LoadError::Verifier { .. }));
            assert!(!is_refused, "{error}");
            error.to_string()
        })
    }

    #[test]
    fn a_thread_that_ends_leaves_its_room_to_others() {
        let mut programs = match attached() {
            Ok(programs) => programs,
            Err(why) => return testkit::skip!("{why}"),
        };
        let (send_tid, tids) = mpsc::channel();
        let (end, is_to_end) = mpsc::channel::<()>();
        let vcpu = thread::spawn(move || {
            send_tid.send(rustix::thread::gettid().as_raw_pid().cast_unsigned()).unwrap();
            let _ = is_to_end.recv();
        });
        let thread = tids.recv().unwrap();
        // Like the first exit of the thread.
        programs.states.insert(thread, [0; STATE_BYTES], 0).unwrap();
        assert!(programs.states.get(&thread, 0).is_ok());
        drop(end);
        vcpu.join().unwrap();
        // Joining a thread returns slightly before the kernel traces its end.
        let deadline = Instant::now() + Duration::from_secs(10);
        while programs.states.get(&thread, 0).is_ok() {
            assert!(Instant::now() < deadline, "it is still there");
            thread::sleep(Duration::from_millis(5));
        }
    }
}
