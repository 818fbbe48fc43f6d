//! Loads and attaches the BPF programs, and reads their maps.

mod interval_end;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::thread::{self, available_parallelism};
use std::time::{Duration, Instant};

use aya::maps::{Array, HashMap, MapData, PerCpuArray};
use aya::{Ebpf, EbpfLoader};
use bpf::load::{
    RunTimes, attach, attach_optional, kernel_types, load_object, load_program, take_map,
};

use crate::error::{LiveError, Result};
use crate::layout::{self, KEY_BYTES, PAIR_BYTES, ROW_BYTES, STATE_BYTES, TAKER_BYTES};
use crate::snapshot::{Snapshot, VcpuState};
use crate::sums::Sums;

/// The object of `bpf/live.bpf.c`; `None` on unsupported architectures.
#[cfg(target_arch = "x86_64")]
static OBJECT: Option<&[u8]> = Some(aya::include_bytes_aligned!("../../../../bpf/live_x86.bpf.o"));
#[cfg(target_arch = "aarch64")]
static OBJECT: Option<&[u8]> =
    Some(aya::include_bytes_aligned!("../../../../bpf/live_arm64.bpf.o"));
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
static OBJECT: Option<&[u8]> = None;

/// The first tracepoint on the way back from the VMM.
const USER_RETURN: &str =
    if cfg!(target_arch = "aarch64") { "kvm_timer_restore_state" } else { "kvm_fpu" };
/// Programs and their tracepoints that every kernel with KVM has. The program that begins a state comes last, so that
/// no state begins before the others are attached.
const PROGRAMS: [(&str, &str); 6] = [
    ("on_thread_end", "sched_process_exit"),
    ("on_waking", "sched_waking"),
    ("on_user", "kvm_userspace_exit"),
    ("on_wakeup", "kvm_vcpu_wakeup"),
    ("on_entry", "kvm_entry"),
    ("on_exit", "kvm_exit"),
];
/// Programs and tracepoints that some kernels or architectures lack.
const OPTIONAL: [(&str, &str); 17] = [
    ("on_user_return", USER_RETURN),
    ("on_nested_enter", "kvm_nested_vmenter"),
    ("on_nested_enter", "kvm_nested_vmrun"),
    ("on_nested_enter_failed", "kvm_nested_vmenter_failed"),
    ("on_nested_exit", "kvm_nested_vmexit"),
    ("on_nested_inject", "kvm_nested_vmexit_inject"),
    // Host interrupts: the begin of the host's work before kvm_exit.
    ("on_host_work", "irq_handler_entry"),
    ("on_host_work", "ipi_entry"),
    ("on_host_work", "local_timer_entry"),
    ("on_host_work", "reschedule_entry"),
    ("on_host_work", "call_function_entry"),
    ("on_host_work", "call_function_single_entry"),
    ("on_host_work", "irq_work_entry"),
    ("on_host_work", "x86_platform_ipi_entry"),
    ("on_host_work", "error_apic_entry"),
    ("on_host_work", "spurious_apic_entry"),
    ("on_host_work", "thermal_apic_entry"),
];
/// One of these is attached: their arguments differ.
const SWITCHES: [&str; 2] = ["on_switch", "on_switch_before_5_18"];
const LOADED: [&str; 14] = [
    "on_thread_end",
    "on_waking",
    "on_switch",
    "on_switch_before_5_18",
    "on_user",
    "on_user_return",
    "on_wakeup",
    "on_nested_enter",
    "on_nested_enter_failed",
    "on_nested_exit",
    "on_nested_inject",
    "on_host_work",
    "on_entry",
    "on_exit",
];
/// Max vCPU threads per CPU.
const THREADS_A_CPU: usize = 256;
const THREADS: std::ops::RangeInclusive<usize> = 1024..=65536;
/// A state that a program was changing is read again: this many times at once, then at intervals. A program needs less
/// than a microsecond, but the host may itself be a preempted guest.
const READS_AT_ONCE: usize = 100;
const BETWEEN_READS: Duration = Duration::from_micros(200);
/// No CPU is preempted for that long.
const MAX_READING: Duration = Duration::from_secs(5);

/// Capacity of the kernel's maps: their memory is allocated at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Threads of vCPUs.
    pub(crate) threads: u32,
    /// Rows of an interval.
    pub(crate) rows: u32,
}

impl Room {
    /// For this machine, with this number of rows.
    pub(crate) fn new(rows: u32) -> Self {
        let threads = available_parallelism().map_or(1, usize::from).saturating_mul(THREADS_A_CPU);
        let threads = threads.clamp(*THREADS.start(), *THREADS.end());
        Self { threads: u32::try_from(threads).unwrap_or(u32::MAX), rows: rows.max(1) }
    }
}

type Takers = HashMap<MapData, [u8; PAIR_BYTES], [u8; TAKER_BYTES]>;
type Rows = HashMap<MapData, [u8; KEY_BYTES], [u8; ROW_BYTES]>;

/// Loaded programs.
pub(crate) struct Programs {
    object: Ebpf,
    rows: [Rows; 2],
    takers: [Takers; 2],
    other: PerCpuArray<MapData, [u8; ROW_BYTES]>,
    vcpus: HashMap<MapData, u32, [u8; STATE_BYTES]>,
    interval: Array<MapData, u64>,
    counts: PerCpuArray<MapData, u64>,
}

impl Programs {
    /// Loads the programs, without attaching them.
    pub(crate) fn load(room: Room) -> Result<Self> {
        let object = OBJECT.ok_or(LiveError::Architecture)?;
        let types = kernel_types()?;
        let isa = host_isa();
        let mut loader = EbpfLoader::new();
        loader
            .btf(Some(&types))
            .override_global("host_isa", &isa, cfg!(target_arch = "x86_64"))
            .map_max_entries("vcpus", room.threads)
            .map_max_entries("rows_0", room.rows)
            .map_max_entries("rows_1", room.rows)
            .map_max_entries("takers_0", room.rows)
            .map_max_entries("takers_1", room.rows);
        let mut object = load_object(&mut loader, object)?;
        for name in LOADED {
            load_program(&mut object, name)?;
        }
        Ok(Self {
            rows: [take_map(&mut object, "rows_0")?, take_map(&mut object, "rows_1")?],
            takers: [take_map(&mut object, "takers_0")?, take_map(&mut object, "takers_1")?],
            other: take_map(&mut object, "other")?,
            vcpus: take_map(&mut object, "vcpus")?,
            interval: take_map(&mut object, "interval")?,
            counts: take_map(&mut object, "counts")?,
            object,
        })
    }

    /// Attaches the programs.
    pub(crate) fn attach(&mut self) -> Result<()> {
        for (name, tracepoint) in OPTIONAL {
            attach_optional(&mut self.object, name, tracepoint)?;
        }
        let [newer, older] = SWITCHES;
        if !attach_optional(&mut self.object, newer, "sched_switch")? {
            attach(&mut self.object, older, "sched_switch")?;
        }
        for (name, tracepoint) in PROGRAMS {
            attach(&mut self.object, name, tracepoint)?;
        }
        Ok(())
    }

    /// Sets the bank of exits from this time on.
    pub(crate) fn begin_interval(&mut self, begin_ns: u64, bank: usize) -> Result<()> {
        let word = begin_ns & !1 | (bank & 1) as u64;
        Ok(self.interval.set(0, word, 0)?)
    }

    /// Empties a bank, and removes ended threads. Call it only after the bank's interval has ended, and when no program
    /// runs that began before.
    pub(crate) fn take(&mut self, bank: usize) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        self.take_rows(bank & 1, &mut snapshot)?;
        self.take_takers(bank & 1, &mut snapshot)?;
        snapshot.other = self.take_other(bank & 1)?;
        self.take_vcpus(&mut snapshot)?;
        let count = |at: u32| -> Result<u64> {
            Ok(self.counts.get(&at, 0)?.iter().copied().fold(0, u64::saturating_add))
        };
        snapshot.without_state = count(0)?;
        snapshot.pieces_left_out = count(1)?;
        snapshot.waits_left_out = count(2)?;
        snapshot.takers_left_out = count(3)?;
        snapshot.sched_events_unseen = count(4)?;
        Ok(snapshot)
    }

    fn take_rows(&mut self, bank: usize, snapshot: &mut Snapshot) -> Result<()> {
        let Some(rows) = self.rows.get_mut(bank) else { return Ok(()) };
        // Nobody writes to this bank now, so its keys don't change.
        let keys = rows.keys().collect::<std::result::Result<Vec<_>, _>>()?;
        for key in keys {
            let sums = layout::sums(&rows.get(&key, 0)?);
            rows.remove(&key)?;
            let row_key = layout::key(&key);
            if row_key.level == 0 {
                snapshot.waits.push((row_key.thread, sums));
            } else {
                snapshot.rows.push((row_key, sums));
            }
        }
        Ok(())
    }

    fn take_takers(&mut self, bank: usize, snapshot: &mut Snapshot) -> Result<()> {
        let Some(takers) = self.takers.get_mut(bank) else { return Ok(()) };
        let pairs = takers.keys().collect::<std::result::Result<Vec<_>, _>>()?;
        for pair in pairs {
            snapshot.takers.push(layout::taker(&pair, &takers.get(&pair, 0)?));
            takers.remove(&pair)?;
        }
        Ok(())
    }

    fn take_other(&mut self, bank: usize) -> Result<Sums> {
        let bank = u32::try_from(bank).unwrap_or_default();
        let values = self.other.get(&bank, 0)?;
        let mut all = Sums::default();
        for value in values.iter() {
            all.add(&layout::sums(value));
        }
        if all.count > 0 {
            let zero = vec![[0; ROW_BYTES]; values.len()];
            self.other.set(bank, zero.try_into().map_err(LiveError::Cpus)?, 0)?;
        }
        Ok(all)
    }

    fn take_vcpus(&mut self, snapshot: &mut Snapshot) -> Result<()> {
        // Threads may begin meanwhile: those that are missing among these keys will be among the next.
        let mut threads = self.vcpus.keys().collect::<std::result::Result<Vec<_>, _>>()?;
        threads.sort_unstable();
        threads.dedup();
        for thread in threads {
            let state = self.state(thread)?;
            if state.gone {
                self.vcpus.remove(&thread)?;
            }
            snapshot.vcpus.push(state);
        }
        Ok(())
    }

    fn state(&self, thread: u32) -> Result<VcpuState> {
        let start = Instant::now();
        for read in 0_usize.. {
            if let Some(state) = layout::state(&self.vcpus.get(&thread, 0)?) {
                return Ok(state);
            }
            if read >= READS_AT_ONCE {
                if start.elapsed() > MAX_READING {
                    break;
                }
                thread::sleep(BETWEEN_READS);
            }
        }
        Err(LiveError::StateUnstable(thread))
    }

    /// CPU time of the programs, if the kernel counts it.
    pub(crate) fn run_time_ns(&mut self, run_times: &RunTimes) -> Option<u64> {
        run_times.total_ns(&mut self.object, &LOADED)
    }
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Programs").field("object", &self.object).finish_non_exhaustive()
    }
}

/// `KVM_ISA_VMX` or `KVM_ISA_SVM`, from the processor's flags.
#[must_use]
pub fn host_isa() -> u32 {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags"));
    let has_svm = flags.is_some_and(|line| line.split(' ').any(|flag| flag == "svm"));
    1 + u32::from(has_svm)
}
