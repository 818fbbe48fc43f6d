//! The code that vCPUs ran: each nanosecond of a vCPU belongs to one row, by state, exit and function.
//!
//! Exits by host interrupts sample the guest: they happen at any instruction, and `kvm_exit` has its address. Such
//! an exit represents the time in the guest since the previous exit of its stratum (vCPU, level, state and guest
//! thread), so exits cover all of the guest's time. The states are those of [`crate::cpu::cpu`], so both have the
//! same sums.

mod code;
mod coverage;
mod found;
mod guest_stacks;
mod guest_symbols;
mod instruction;
mod rows;
mod sample_log;
mod samples;
mod seen;
mod slice_shares;
mod slices;
mod strata;
mod sums;
mod thread_samples;
mod threads;
mod timed;
mod weights;
mod without_vcpus;

use std::collections::{BTreeMap, HashMap};

use ftrace::eventfmt::Coverage;
use sources::{Recording, Samples};
use symbols::{BuildId, KernelCode};
use timeline::Losses;

use self::found::ProfileParts;
pub use self::guest_stacks::GuestStacks;
pub use self::guest_symbols::GuestSymbols;
pub use self::instruction::InstructionAt;
use self::rows::VcpuRows;
use self::slices::SliceGrid;
pub(crate) use self::sums::ProfileSums;
use self::sums::{Stratum, StratumSum};
pub(crate) use self::thread_samples::{StackFunctions, StackNumber, ThreadSamples};
pub use self::threads::ProfileThread;
pub(crate) use self::timed::{TimedSample, each_sample};
pub use self::without_vcpus::{SampledMachine, SampledThread};
use crate::states::{States, VcpuRef, VcpuState};
use crate::view::View;

/// The source that assigns code to a row's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// Samples by the host.
    Host,
    /// Samples by the guest itself, corrected by the host's samples if there are enough.
    Agent,
    /// Exits by interrupts of the host.
    Exits,
    /// No source: the code is unknown.
    None,
}

impl Evidence {
    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Agent => "agent",
            Self::Exits => "exits",
            Self::None => "none",
        }
    }
}

/// A code location.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeFrame {
    /// The function; `None` if it is unknown.
    pub symbol: Option<String>,
    /// The kernel module, the file, or `[user]`; `None` for the kernel image.
    pub module: Option<String>,
    /// Build id of the file.
    pub build_id: Option<BuildId>,
    /// If the function is unknown: the offset in the file, or the address in the kernel or a program.
    pub address: Option<u64>,
    /// Whether it is user-space code.
    pub user_space: bool,
    /// The instruction; only in innermost frames of [`profile_of_instructions`].
    pub instruction: Option<Box<InstructionAt>>,
}

/// User-space code of an unknown file. Guests' programs are unknown unless an agent sampled them, because a
/// recording of a kernel has no programs.
pub const USER_MODULE: &str = "[user]";

/// Code of a guest without a recording.
pub const GUEST_MODULE: &str = "[guest]";

impl CodeFrame {
    /// An unknown location in user space.
    fn of_user_space() -> Self {
        Self { module: Some(USER_MODULE.to_owned()), user_space: true, ..Self::default() }
    }

    /// An address in an unknown program.
    fn of_user_space_at(address: u64) -> Self {
        Self { address: Some(address), ..Self::of_user_space() }
    }

    /// Whether it is user-space code with a known address but an unknown function.
    #[must_use]
    pub fn is_user_address(&self) -> bool {
        let is_nameless = self.symbol.is_none() && self.address.is_some();
        is_nameless && self.module.as_deref() == Some(USER_MODULE)
    }

    /// An unknown location in a guest, in its kernel or its user space.
    fn of_a_guest(user_space: bool) -> Self {
        Self { module: Some(GUEST_MODULE.to_owned()), user_space, ..Self::default() }
    }

    /// Whether it is code of a guest without a recording.
    #[must_use]
    pub fn is_of_a_guest(&self) -> bool {
        self.module.as_deref() == Some(GUEST_MODULE)
    }

    /// Whether the function is known.
    #[must_use]
    pub const fn is_named(&self) -> bool {
        self.symbol.is_some()
    }

    /// Name of the function, or of the file if the function is unknown.
    #[must_use]
    pub fn function(&self) -> String {
        match (&self.symbol, &self.module) {
            (Some(symbol), Some(module)) => format!("{symbol} [{module}]"),
            (Some(symbol), None) => symbol.clone(),
            (None, Some(module)) => module.clone(),
            (None, None) => "[kernel]".to_owned(),
        }
    }

    /// Name of the frame in a stack.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.symbol, &self.module, self.address) {
            (Some(symbol), Some(module), _) => format!("{symbol} [{module}]"),
            (Some(symbol), None, _) => symbol.clone(),
            (None, Some(module), Some(offset)) => format!("{module}+{offset:#x}"),
            (None, Some(module), None) => module.clone(),
            (None, None, Some(address)) => format!("{address:#x}"),
            (None, None, None) => "[further addresses]".to_owned(),
        }
    }
}

/// A time with its confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampledTime {
    pub ns: u64,
    /// Number of samples.
    pub samples: u64,
    /// 95% confidence interval, if samples are independent; `ns` itself if the time needs no samples.
    pub low_ns: u64,
    /// See `low_ns`.
    pub high_ns: u64,
}

impl SampledTime {
    /// A time that needs no samples.
    #[must_use]
    pub const fn known(ns: u64) -> Self {
        Self { ns, samples: 0, low_ns: ns, high_ns: ns }
    }

    /// Adds a time from independent samples: squares of the errors add up.
    pub fn add(&mut self, other: &Self) {
        let half = |ns: u64, other: u64| (ns as f64).hypot(other as f64) as u64;
        let below = half(self.ns - self.low_ns, other.ns - other.low_ns);
        let above = half(self.high_ns - self.ns, other.high_ns - other.ns);
        self.ns = self.ns.saturating_add(other.ns);
        self.samples = self.samples.saturating_add(other.samples);
        (self.low_ns, self.high_ns) =
            (self.ns.saturating_sub(below), self.ns.saturating_add(above));
    }
}

/// A part of a vCPU's time, with the code that ran.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileRow {
    /// Index in [`Profile::vcpus`].
    pub vcpu: usize,
    /// 1: the guest; 2: a nested guest ran, or caused this exit.
    pub level: u8,
    pub state: VcpuState,
    /// The reason of the exit, by the kernel's name.
    pub reason: Option<String>,
    /// Name of the running guest thread, if its recording has it.
    pub comm: Option<String>,
    /// The stack from its root; empty if no sample covers this time.
    pub stack: Vec<CodeFrame>,
    /// Whether the code belongs to the host.
    pub host_code: bool,
    /// The source of `stack`.
    pub evidence: Evidence,
    pub time: SampledTime,
}

/// A vCPU of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileVcpu {
    /// Its VM's name.
    pub vm: String,
    /// Number in the VM.
    pub vcpu: u32,
    /// Name of its host thread.
    pub comm: Option<String>,
    pub thread: u32,
    /// From its first event to its last.
    pub time_ns: u64,
    /// `time_ns` by state, without states that have no time.
    pub states: BTreeMap<VcpuState, u64>,
}

/// Difference between a guest's own samples and the host's samples of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleDifference {
    /// Time in the guest for which both sources have enough samples.
    pub time_ns: u64,
    /// Time that the guest's own samples assign to other functions than the host's samples do.
    pub moved_ns: u64,
}

/// The time of rows by slices of the recording. The slices of a row add up to its time; all rows of a vCPU in a
/// slice add up to its time in that slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileSlices {
    /// Start of the first slice.
    pub from_ns: u64,
    /// Width of a slice.
    pub slice_ns: u64,
    /// Number of slices.
    pub count: u32,
    /// By row: slice numbers with the time in them, ascending.
    pub rows: Vec<Vec<(u32, u64)>>,
    /// By other thread and stack: as for rows.
    pub threads: Vec<Vec<Vec<(u32, u64)>>>,
}

/// A profile of the code that vCPUs ran.
#[derive(Clone, Debug)]
pub struct Profile {
    /// All vCPUs.
    pub vcpus: Vec<ProfileVcpu>,
    /// Rows by vCPU, then by time, descending. The rows of a vCPU add up to its time.
    pub rows: Vec<ProfileRow>,
    /// Other sampled host threads that work for these VMs.
    pub threads: Vec<ProfileThread>,
    /// Sampled machines, if no vCPU is recorded.
    pub machines: Vec<SampledMachine>,
    /// Time by slices, if requested.
    pub slices: Option<ProfileSlices>,
    /// Differences by VM, if the VM was sampled by its agent and by its host.
    pub differences: BTreeMap<String, SampleDifference>,
    /// By recording.
    pub losses: Vec<Losses>,
    /// Coverage of guest kernels' symbols, by guest name. Guests without an entry have no symbols.
    pub symbols: BTreeMap<String, Coverage>,
    /// Whether user space and kernel were distinguished by address.
    pub by_address: bool,
    /// Whether times are nanoseconds.
    pub nanoseconds: bool,
}

/// Inputs of a profile besides recordings.
#[derive(Clone, Copy, Debug)]
pub struct ProfileQuestion<'q> {
    /// By recording: its samples.
    pub samples: &'q [Option<Samples>],
    /// Symbols of guests' kernels that no recording has.
    pub given: &'q [GuestSymbols],
    /// How stacks of guests are shown.
    pub stacks: GuestStacks,
}

/// The code that the vCPUs of recordings ran. `progress` receives the number of bytes read.
#[must_use]
pub fn profile(
    view: View<'_>,
    question: ProfileQuestion<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> Profile {
    let ProfileQuestion { samples, given, stacks } = question;
    let View { recordings, .. } = view;
    let mut found = ProfileParts::gather(view, samples, progress);
    found.give_symbols(given, recordings);
    rows_of(found, recordings, stacks)
}

/// Like [`profile`], with the sampled instructions; `code_and_before` has the kernel code by recording, and the
/// number of preceding instructions to include.
#[must_use]
pub fn profile_of_instructions(
    view: View<'_>,
    question: ProfileQuestion<'_>,
    code_and_before: (&[Option<KernelCode>], usize),
    progress: &(dyn Fn(u64) + Sync),
) -> Profile {
    let ProfileQuestion { samples, given, stacks } = question;
    let View { recordings, .. } = view;
    let mut found = ProfileParts::gather(view, samples, progress);
    found.give_symbols(given, recordings);
    found.kept_code = Some(code_and_before);
    rows_of(found, recordings, stacks)
}

/// Like [`profile`], from `sums` that already received the `states`.
pub(crate) fn profile_of<'s>(
    sums: ProfileSums<'s>,
    states: States,
    view: View<'s>,
    samples: &'s [Option<Samples>],
) -> Profile {
    let View { recordings, .. } = view;
    let found = ProfileParts::of_all(sums, states, view, samples);
    rows_of(found, recordings, GuestStacks::Corrected)
}

fn rows_of(
    mut found: ProfileParts<'_>,
    recordings: &[Recording],
    guest_stacks: GuestStacks,
) -> Profile {
    let mut by_vcpu: BTreeMap<VcpuRef, Vec<(Stratum, StratumSum)>> = BTreeMap::new();
    for (stratum, sum) in std::mem::take(&mut found.strata) {
        by_vcpu.entry(stratum.vcpu).or_default().push((stratum, sum));
    }
    let mut reasons = std::mem::take(&mut found.reasons);
    let of_threads = std::mem::take(&mut found.threads);
    let without_vcpus = std::mem::take(&mut found.without_vcpus);
    let states = &found.states;
    let mut profile = Profile {
        vcpus: Vec::new(),
        rows: Vec::new(),
        threads: Vec::new(),
        machines: Vec::new(),
        slices: found.grid.map(|grid| slices(&grid)),
        differences: BTreeMap::new(),
        losses: states.pass.losses.clone(),
        symbols: BTreeMap::new(),
        by_address: false,
        nanoseconds: recordings.iter().all(Recording::is_nanoseconds),
    };
    for (recording, vms) in states.vms.iter().enumerate() {
        for vm in vms {
            let guest = found.guest_of(recording, vm);
            if let Some(kernel) = found.kernel_of(recording, vm) {
                profile.symbols.insert(vm.name.clone(), kernel.coverage());
            }
            let code = found.code(recording, Some(vm));
            let vcpu_rows =
                VcpuRows { states, recording, guest, code, guest_stacks, grid: found.grid };
            for vcpu in &vm.vcpus {
                let strata = by_vcpu.remove(&VcpuRef::new(recording, vcpu)).unwrap_or_default();
                vcpu_rows.add(&vm.name, vcpu, strata, &mut reasons, &mut profile);
            }
        }
        let in_recording = |((thread_recording, thread), sum)| {
            (usize::from(thread_recording) == recording).then_some((thread, sum))
        };
        let Some(samples) = found.samples_of(recording) else { continue };
        let sums =
            of_threads.iter().map(|(whose, sum)| (*whose, sum.clone())).filter_map(in_recording);
        let code = found.code(recording, None);
        let grid = found.grid.as_ref();
        let threads = threads::threads(states, recording, samples, sums.collect(), &code, grid);
        let (threads, by_slice): (Vec<_>, Vec<_>) = threads.into_iter().unzip();
        profile.threads.extend(threads);
        if let Some(slices) = &mut profile.slices {
            slices.threads.extend(by_slice);
        }
    }
    for machine in without_vcpus {
        let Some(recording) = recordings.get(machine.recording()) else { continue };
        let code = found.code(machine.recording(), None);
        let processes = found.samples_of(machine.recording()).map(Samples::processes);
        let (none, grid) = (HashMap::new(), found.grid.as_ref());
        let named = machine.named(recording, processes.unwrap_or(&none), &code, grid);
        profile.machines.push(named);
    }
    profile
}

/// The slices of a grid, without the rows' times.
fn slices(grid: &SliceGrid) -> ProfileSlices {
    let (from_ns, slice_ns, count) = grid.extent();
    ProfileSlices { from_ns, slice_ns, count, ..ProfileSlices::default() }
}
