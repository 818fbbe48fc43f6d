//! Which code vCPUs ran: every nanosecond of each in one row, by state, exit and function.
//!
//! Where the guest was is known from exits that the host's own interrupts cause: they come wherever the guest
//! is, and `kvm_exit` says where that was. Such an exit stands for the time in the guest since the last one
//! of its kind (vCPU, level, state and guest's thread), and all of that time is shared out so. Which state
//! a vCPU was in comes from the same states that [`crate::cpu::cpu`] adds up: so both have the same sums.

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

/// What says where the code of a row was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// Samples that the host took.
    Host,
    /// Samples that the guest took of itself, corrected by what the host saw, where that saw enough.
    Agent,
    /// Exits that interrupts of the host caused.
    Exits,
    /// Nothing does: its time is known, and not its code.
    None,
}

impl Evidence {
    /// Its name in reports.
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

/// A place in code.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeFrame {
    /// The function; `None`: nothing names it.
    pub symbol: Option<String>,
    /// The kernel module or the file that it is in, or `[user]`; `None`: the kernel itself.
    pub module: Option<String>,
    /// The file's build id.
    pub build_id: Option<BuildId>,
    /// Where no function is known, the offset in the file, or the address: of the kernel's, or of a program's.
    pub address: Option<u64>,
    /// It is no kernel's code.
    pub user_space: bool,
    /// The instruction, of innermost frames of [`profile_of_instructions`].
    pub instruction: Option<Box<InstructionAt>>,
}

/// Code in user space of which no file is known: guests' where they were not sampled from inside, since a recording of a
/// kernel has no programs.
pub const USER_MODULE: &str = "[user]";

/// Code of a guest of which nothing is recorded.
pub const GUEST_MODULE: &str = "[guest]";

impl CodeFrame {
    /// Somewhere in user space.
    fn of_user_space() -> Self {
        Self { module: Some(USER_MODULE.to_owned()), user_space: true, ..Self::default() }
    }

    /// At an address of a program of which no file is known.
    fn of_user_space_at(address: u64) -> Self {
        Self { address: Some(address), ..Self::of_user_space() }
    }

    /// Whether it is code of a program of which the address alone is known.
    #[must_use]
    pub fn is_user_address(&self) -> bool {
        let is_nameless = self.symbol.is_none() && self.address.is_some();
        is_nameless && self.module.as_deref() == Some(USER_MODULE)
    }

    /// Somewhere in a guest of this machine's: in its kernel, or in its user space.
    fn of_a_guest(user_space: bool) -> Self {
        Self { module: Some(GUEST_MODULE.to_owned()), user_space, ..Self::default() }
    }

    /// Whether it is code of a guest of which nothing is recorded.
    #[must_use]
    pub fn is_of_a_guest(&self) -> bool {
        self.module.as_deref() == Some(GUEST_MODULE)
    }

    /// Whether its function is known.
    #[must_use]
    pub const fn is_named(&self) -> bool {
        self.symbol.is_some()
    }

    /// As its function is called; of one without a name its file.
    #[must_use]
    pub fn function(&self) -> String {
        match (&self.symbol, &self.module) {
            (Some(symbol), Some(module)) => format!("{symbol} [{module}]"),
            (Some(symbol), None) => symbol.clone(),
            (None, Some(module)) => module.clone(),
            (None, None) => "[kernel]".to_owned(),
        }
    }

    /// As one frame of a stack is called.
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

/// A time, and how sure it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampledTime {
    /// The time.
    pub ns: u64,
    /// Samples that it is made of.
    pub samples: u64,
    /// Interval of 95% of the time, if each sample were drawn by itself; the time itself where it needs
    /// no sample.
    pub low_ns: u64,
    /// See `low_ns`.
    pub high_ns: u64,
}

impl SampledTime {
    /// A time that is known without samples.
    #[must_use]
    pub const fn known(ns: u64) -> Self {
        Self { ns, samples: 0, low_ns: ns, high_ns: ns }
    }

    /// Adds one of other samples: errors that don't depend on each other add up as their squares do.
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

/// Some of a vCPU's time, and the code that ran.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileRow {
    /// Index among [`Profile::vcpus`].
    pub vcpu: usize,
    /// 1: the guest; 2: a guest inside it ran, or left by this exit.
    pub level: u8,
    /// What the vCPU did.
    pub state: VcpuState,
    /// The exit that was handled, by the kernel's name.
    pub reason: Option<String>,
    /// Name of the guest's thread that ran, where its recording says.
    pub comm: Option<String>,
    /// The code, from the root of the stack on; empty: no sample says.
    pub stack: Vec<CodeFrame>,
    /// The code is the host's.
    pub host_code: bool,
    /// What says so.
    pub evidence: Evidence,
    pub time: SampledTime,
}

/// A vCPU of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileVcpu {
    /// Its VM's name.
    pub vm: String,
    /// Its number in the VM.
    pub vcpu: u32,
    /// Name of the host's thread that it is.
    pub comm: Option<String>,
    pub thread: u32,
    /// From its first event to its last.
    pub time_ns: u64,
    /// That time by state; states without any are not in it.
    pub states: BTreeMap<VcpuState, u64>,
}

/// How the samples that a guest took of itself differ from those that its host took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleDifference {
    /// Time in the guest of which both were many enough to compare.
    pub time_ns: u64,
    /// Of that time, what the guest's own samples give to functions other than those that the host saw.
    pub moved_ns: u64,
}

/// When the time of rows was, by slices of the recording. Times of a row add up to its time, and those of all rows of a
/// vCPU in a slice to its time in that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileSlices {
    /// When the first slice begins.
    pub from_ns: u64,
    /// How wide a slice is.
    pub slice_ns: u64,
    /// How many there are.
    pub count: u32,
    /// By row: numbers of slices and the time in them, ascending.
    pub rows: Vec<Vec<(u32, u64)>>,
    /// By other thread and its stack, as for rows.
    pub threads: Vec<Vec<Vec<(u32, u64)>>>,
}

/// The code that vCPUs ran.
#[derive(Clone, Debug)]
pub struct Profile {
    /// All vCPUs.
    pub vcpus: Vec<ProfileVcpu>,
    /// The rows, by vCPU, those first that took longest. Those of a vCPU add up to its time.
    pub rows: Vec<ProfileRow>,
    /// Other threads of hosts that were sampled, as far as they work for these VMs.
    pub threads: Vec<ProfileThread>,
    /// Where no vCPU is recorded: the machines that were sampled.
    pub machines: Vec<SampledMachine>,
    /// When all this was, where that was asked for.
    pub slices: Option<ProfileSlices>,
    /// By VM that was sampled from inside and by its host, how far they differ.
    pub differences: BTreeMap<String, SampleDifference>,
    /// By recording.
    pub losses: Vec<Losses>,
    /// How much is known of the symbols of guests' kernels, by their names; of others nothing is.
    pub symbols: BTreeMap<String, Coverage>,
    /// Whether addresses had to say what was user space and what the kernel.
    pub by_address: bool,
    /// Whether times are nanoseconds.
    pub nanoseconds: bool,
}

/// What a profile is made with besides recordings.
#[derive(Clone, Copy, Debug)]
pub struct ProfileQuestion<'q> {
    /// By recording, samples that were taken with it.
    pub samples: &'q [Option<Samples>],
    /// Names of the code of guests of whose kernel no recording has the symbols.
    pub given: &'q [GuestSymbols],
    /// How stacks of guests are shown.
    pub stacks: GuestStacks,
}

/// The code that the vCPUs of recordings ran. `tick` gets the bytes done.
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

/// As [`profile`], with the instruction that each sample saw; `code_and_before` has, by recording, the code of that
/// machine's kernel, and how many instructions before that are wanted, too.
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

/// As [`profile`], of sums that took the `states` of recordings.
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

/// The slices of a grid, without rows.
fn slices(grid: &SliceGrid) -> ProfileSlices {
    let (from_ns, slice_ns, count) = grid.extent();
    ProfileSlices { from_ns, slice_ns, count, ..ProfileSlices::default() }
}
