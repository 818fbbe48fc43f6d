//! Which code vCPUs ran: every nanosecond of each in one row, by state, exit and guest function.
//!
//! Where the guest was is known from exits that the host's own interrupts cause: they come wherever the guest
//! is, and `kvm_exit` says where that was. Such an exit stands for the time in the guest since the last one
//! of its kind (vCPU, level, state and guest's thread), and all of that time is shared out so. Which state
//! a vCPU was in comes from the same states that [`crate::cpu`] adds up: so both have the same sums.

mod sums;
mod weights;

use std::collections::BTreeMap;

use eventfmt::{Coverage, Kallsyms};
use sources::Recording;
use timeline::{Losses, VmVcpu};

use self::sums::{ProfileSums, Seen, Stratum, StratumSum};
use crate::states::{States, VcpuRef, VcpuState, states_with_pc};
use crate::{GuestAlignment, ReasonNames};

/// What says where the code of a row was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
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
            Self::Exits => "exits",
            Self::None => "none",
        }
    }
}

/// A place in code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeFrame {
    /// The function; `None`: nothing names it.
    pub symbol: Option<String>,
    /// The kernel module that it is in, or `[user]`; `None`: the kernel itself.
    pub module: Option<String>,
    /// The address, where no function is known.
    pub address: Option<u64>,
}

/// Code in the guest's user space: its programs' symbols are not in a recording of its kernel.
pub const USER_MODULE: &str = "[user]";

impl CodeFrame {
    /// As one frame of a stack is called.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.symbol, &self.module, self.address) {
            (Some(symbol), Some(module), _) => format!("{symbol} [{module}]"),
            (Some(symbol), None, _) => symbol.clone(),
            (None, Some(module), _) => module.clone(),
            (None, None, Some(address)) => format!("{address:#x}"),
            (None, None, None) => "[addresses not kept apart]".to_owned(),
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
        let half = |one: u64, other: u64| (one as f64).hypot(other as f64) as u64;
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
    /// The code; `None`: no sample says.
    pub frame: Option<CodeFrame>,
    /// What says so.
    pub evidence: Evidence,
    /// Its time.
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
    /// That thread.
    pub thread: u32,
    /// From its first event to its last.
    pub time_ns: u64,
    /// That time by state; states without any are not in it.
    pub states: BTreeMap<VcpuState, u64>,
}

/// The code that vCPUs ran.
#[derive(Clone, Debug)]
pub struct Profile {
    /// All vCPUs.
    pub vcpus: Vec<ProfileVcpu>,
    /// The rows, by vCPU, those first that took longest. Those of a vCPU add up to its time.
    pub rows: Vec<ProfileRow>,
    /// By recording.
    pub losses: Vec<Losses>,
    /// How much is known of the symbols of guests' kernels, by their names; of others nothing is.
    pub symbols: BTreeMap<String, Coverage>,
    /// Whether addresses had to say what was user space and what the kernel.
    pub by_address: bool,
    /// Whether times are nanoseconds.
    pub nanoseconds: bool,
}

/// The code that the vCPUs of `recordings` ran; `guests` says which recording is whose guest, and must have
/// been applied. `tick` gets the bytes done.
#[must_use]
pub fn profile(
    recordings: &[Recording],
    guests: &[GuestAlignment],
    tick: &(dyn Fn(u64) + Sync),
) -> Profile {
    let mut sums = ProfileSums::new(recordings.iter().map(ReasonNames::new).collect());
    let states = states_with_pc(recordings, guests, &mut sums, tick);
    let mut by_vcpu: BTreeMap<VcpuRef, Vec<(Stratum, StratumSum)>> = BTreeMap::new();
    for (stratum, sum) in sums.strata {
        by_vcpu.entry(stratum.vcpu).or_default().push((stratum, sum));
    }
    let mut profile = Profile {
        vcpus: Vec::new(),
        rows: Vec::new(),
        losses: states.pass.losses.clone(),
        symbols: BTreeMap::new(),
        by_address: false,
        nanoseconds: recordings.iter().all(Recording::is_nanoseconds),
    };
    for (recording, vms) in states.vms.iter().enumerate() {
        for vm in vms {
            let guest = guests.iter().find(|one| one.host == recording && one.vm == vm.name);
            let guest = guest.map(|one| one.guest);
            let kallsyms = guest.and_then(|at| recordings.get(at)).map(Recording::kallsyms);
            if let Some(kallsyms) = kallsyms {
                profile.symbols.insert(vm.name.clone(), kallsyms.coverage());
            }
            for vcpu in &vm.vcpus {
                let strata = by_vcpu.remove(&VcpuRef::of(recording, vcpu)).unwrap_or_default();
                let of = OfVcpu { states: &states, recording, guest, kallsyms };
                of.add(&vm.name, vcpu, strata, &mut sums.reasons, &mut profile);
            }
        }
    }
    profile
}

/// Makes rows of a vCPU's strata.
struct OfVcpu<'r> {
    states: &'r States,
    recording: usize,
    /// The recording of its guest.
    guest: Option<usize>,
    kallsyms: Option<&'r Kallsyms>,
}

/// What rows of one vCPU are told apart by.
type RowKey = (u8, VcpuState, Option<(u8, u64)>, Option<u32>, Option<CodeFrame>, Evidence);

impl OfVcpu<'_> {
    fn add(
        &self,
        vm: &str,
        vcpu: &VmVcpu,
        mut strata: Vec<(Stratum, StratumSum)>,
        reasons: &mut [ReasonNames],
        profile: &mut Profile,
    ) {
        strata.sort_by_key(|(stratum, _)| *stratum);
        let recorded = self.states.recorded.get(self.recording);
        let mut rows: BTreeMap<RowKey, SampledTime> = BTreeMap::new();
        let mut states: BTreeMap<VcpuState, u64> = BTreeMap::new();
        for (mut stratum, sum) in strata {
            profile.by_address |= stratum.state == VcpuState::Guest && !sum.seen.is_empty();
            stratum.state = recorded.map_or(stratum.state, |known| stratum.state.settled(known));
            self.share_out(&stratum, &sum, &mut |key, row| {
                let time_ns = states.entry(key.1).or_default();
                *time_ns = time_ns.saturating_add(row.ns);
                rows.entry(key).or_default().add(&row);
            });
        }
        let at = profile.vcpus.len();
        let mut made: Vec<ProfileRow> =
            rows.into_iter().map(|(key, time)| self.row(at, key, time, reasons)).collect();
        made.sort_by_key(|row| std::cmp::Reverse(row.time.ns));
        profile.vcpus.push(ProfileVcpu {
            vm: vm.to_owned(),
            vcpu: vcpu.vcpu,
            comm: self.name(self.recording, vcpu.thread),
            thread: vcpu.thread,
            time_ns: states.values().fold(0, |sum, &ns| sum.saturating_add(ns)),
            states,
        });
        profile.rows.extend(made);
    }

    /// Gives each part of a stratum's time to the code that its samples saw.
    fn share_out(&self, of: &Stratum, sum: &StratumSum, each: &mut dyn FnMut(RowKey, SampledTime)) {
        let key = |state, frame, evidence| (of.level, state, of.exit, of.task, frame, evidence);
        if sum.seen.is_empty() {
            let row = SampledTime::known(sum.time_ns);
            return each(key(of.state, None, Evidence::None), row);
        }
        let mut seen: BTreeMap<(VcpuState, CodeFrame), Seen> = BTreeMap::new();
        for (&address, one) in &sum.seen {
            let code = seen.entry(self.code(of, address)).or_default();
            code.samples = code.samples.saturating_add(one.samples);
            code.weight_ns = code.weight_ns.saturating_add(one.weight_ns);
        }
        let weights: Vec<u64> = seen.values().map(|one| one.weight_ns).collect();
        let whole = weights.iter().fold(0.0, |sum, &weight| sum + weight as f64);
        let effective = weights::effective(whole, sum.squares);
        let shares = weights::shares(sum.time_ns, &weights);
        for (((state, frame), one), time_ns) in seen.into_iter().zip(shares) {
            let share = time_ns as f64 / (sum.time_ns as f64).max(1.0);
            let (low, high) = weights::interval(share, effective);
            // Rounding to the double's precision must not put the time itself outside.
            let low_ns = ((low * sum.time_ns as f64) as u64).min(time_ns);
            let high_ns = ((high * sum.time_ns as f64) as u64).max(time_ns);
            let row = SampledTime { ns: time_ns, samples: one.samples, low_ns, high_ns };
            each(key(state, Some(frame), Evidence::Exits), row);
        }
    }

    /// The code at an address, and the state that it shows where the guest's recording doesn't.
    fn code(&self, of: &Stratum, address: u64) -> (VcpuState, CodeFrame) {
        // Of the canonical addresses of x86-64, arm64 and RISC-V the upper half is the kernel's.
        let is_kernel = address >> 63 == 1;
        let state = match (of.state, is_kernel) {
            (VcpuState::Guest, _) if address == 0 => VcpuState::Guest,
            (VcpuState::Guest, true) => VcpuState::GuestKernel,
            (VcpuState::Guest, false) => VcpuState::GuestUser,
            (state, _) => state,
        };
        if !is_kernel && address != 0 {
            let module = Some(USER_MODULE.to_owned());
            return (state, CodeFrame { symbol: None, module, address: None });
        }
        // Of a guest inside this one, this one's symbols say nothing.
        let kallsyms = self.kallsyms.filter(|_| of.level == 1);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let frame = match kallsyms.and_then(|one| one.function(address)) {
            Some(symbol) => CodeFrame {
                symbol: Some(text(symbol.name)),
                module: symbol.module.map(text),
                address: None,
            },
            None => CodeFrame {
                symbol: None,
                module: None,
                address: Some(address).filter(|&address| address != 0),
            },
        };
        (state, frame)
    }

    fn row(
        &self,
        vcpu: usize,
        (level, state, exit, task, frame, evidence): RowKey,
        time: SampledTime,
        reasons: &mut [ReasonNames],
    ) -> ProfileRow {
        let reason =
            exit.and_then(|(isa, code)| Some(reasons.get_mut(self.recording)?.name(isa, code)));
        let comm = task.zip(self.guest).and_then(|(task, guest)| match task {
            0 => Some("<idle>".to_owned()),
            task => self.name(guest, task),
        });
        ProfileRow { vcpu, level, state, reason, comm, frame, evidence, time }
    }

    fn name(&self, recording: usize, thread: u32) -> Option<String> {
        self.states.pass.names.get(recording)?.of(thread).map(str::to_owned)
    }
}
