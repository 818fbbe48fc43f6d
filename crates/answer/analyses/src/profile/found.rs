//! Results of a pass over recordings and their samples, with the code of places.

use std::cell::RefCell;

use ftrace::eventfmt::{Coverage, Kallsyms};
use rustc_hash::FxHashMap;
use sources::{Recording, Samples};
use symbols::{KernelCode, Machine, Names, Processes};
use timeline::Vm;
use timeline::reasons::ReasonNames;

use super::code::Code;
use super::guest_symbols::GuestSymbols;
use super::instruction::KeptCode;
use super::sample_log::SampleLog;
use super::slices::SliceGrid;
use super::sums::{ProfileSums, Stratum, StratumSum};
use super::without_vcpus::{self, MachineWeights};
use crate::align::GuestAlignment;
use crate::states::{States, states};
use crate::view::View;

/// Max memory for places and times by slices, if samples are logged.
const SLICE_BYTES: usize = 64 << 20;

#[derive(Debug)]
pub(super) struct ProfileParts<'s> {
    pub(super) states: States,
    pub(super) strata: FxHashMap<Stratum, StratumSum>,
    /// CPU time of sampled host threads, by recording and thread.
    pub(super) threads: FxHashMap<(u16, u32), StratumSum>,
    /// Exit reasons by recording.
    pub(super) reasons: Vec<ReasonNames>,
    /// Log of single samples, if requested.
    pub(super) log: Option<SampleLog>,
    /// Slices of time, if requested.
    pub(super) grid: Option<SliceGrid>,
    /// Sampled machines, if no vCPU is recorded.
    pub(super) without_vcpus: Vec<MachineWeights>,
    guests: &'s [GuestAlignment],
    samples: &'s [Option<Samples>],
    /// Given symbols of guests' kernels, in addition to the recordings'.
    given: &'s [GuestSymbols],
    /// By recording: sampled machines, and guests.
    machines: Vec<Option<Machine<'s>>>,
    /// Stacks by number: frames, innermost first.
    stacks: Vec<Box<[symbols::Place]>>,
    names: RefCell<Names>,
    /// If instructions are requested: kernel code by recording, and the number of preceding instructions.
    pub(super) kept_code: Option<(&'s [Option<KernelCode>], usize)>,
}

impl<'s> ProfileParts<'s> {
    /// Makes the pass; see [`super::profile`]. Includes samples without vCPUs.
    pub(super) fn gather(
        view: View<'s>,
        samples: &'s [Option<Samples>],
        progress: &(dyn Fn(u64) + Sync),
    ) -> Self {
        let mut sums = ProfileSums::new(view, samples);
        let states = states(view, &mut sums, progress);
        Self::of_all(sums, states, view, samples)
    }

    /// The results from `sums` after their pass, including samples without vCPUs.
    pub(super) fn of_all(
        mut sums: ProfileSums<'s>,
        states: States,
        view: View<'s>,
        samples: &'s [Option<Samples>],
    ) -> Self {
        let View { recordings, .. } = view;
        let without_vcpus =
            without_vcpus::gather(&mut sums.samples, &states, recordings, sums.grid.as_mut());
        Self { without_vcpus, ..Self::new(sums, states, view, samples) }
    }

    /// Makes the pass with a log of single samples, and times by slices.
    pub(super) fn gather_each(
        view: View<'s>,
        samples: &'s [Option<Samples>],
        progress: &(dyn Fn(u64) + Sync),
    ) -> Self {
        let View { recordings, .. } = view;
        let mut sums = ProfileSums::by_slice(view, samples, SLICE_BYTES);
        sums.log = Some(SampleLog::default());
        let states = states(view, &mut sums, progress);
        if let Some(log) = &mut sums.log {
            without_vcpus::log_first(&mut sums.samples, &states, recordings, log);
        }
        Self::new(sums, states, view, samples)
    }

    /// The results from `sums` after their pass.
    fn new(
        sums: ProfileSums<'s>,
        states: States,
        view: View<'s>,
        samples: &'s [Option<Samples>],
    ) -> Self {
        let View { recordings, guests } = view;
        let ProfileSums { strata, threads, reasons, samples: seen, log, grid, .. } = sums;
        let (mut machines, stacks) = seen.finish();
        machines.resize_with(recordings.len(), || None);
        for at in guests.iter().map(|alignment| alignment.guest) {
            // An unsampled guest still has the kernel symbols of its recording.
            if let (Some(machine @ None), Some(guest)) = (machines.get_mut(at), recordings.get(at))
            {
                *machine = Some(Machine::elsewhere(guest.kallsyms(), Processes::default()));
            }
        }
        let names = RefCell::new(Names::of_files_here());
        Self {
            states,
            strata: strata.into_map(),
            threads,
            reasons,
            log,
            grid,
            without_vcpus: Vec::new(),
            guests,
            samples,
            given: &[],
            machines,
            stacks,
            names,
            kept_code: None,
        }
    }

    /// Uses given symbols for guests whose recordings lack complete ones.
    pub(super) fn give_symbols(&mut self, given: &'s [GuestSymbols], recordings: &'s [Recording]) {
        self.given = given;
        for alignment in self.guests {
            let Some(kernel) = GuestSymbols::find(given, &alignment.vm, 1) else { continue };
            let own_coverage =
                recordings.get(alignment.guest).map(|guest| guest.kallsyms().coverage());
            if let Some(Some(machine)) = self.machines.get_mut(alignment.guest)
                && own_coverage != Some(Coverage::Whole)
            {
                machine.set_kernel(kernel);
            }
        }
    }

    /// Symbols of a VM's guest kernel: from its recording, or given ones.
    pub(super) fn kernel_of(&self, recording: usize, vm: &Vm) -> Option<&Kallsyms> {
        let guest = self.guest_of(recording, vm);
        let recorded = guest.and_then(|at| self.machines.get(at)?.as_ref()).map(Machine::kernel);
        recorded.or_else(|| GuestSymbols::find(self.given, &vm.name, 1))
    }

    /// The recording of the guest in a VM.
    pub(super) fn guest_of(&self, recording: usize, vm: &Vm) -> Option<usize> {
        let alignment = self
            .guests
            .iter()
            .find(|alignment| alignment.host == recording && alignment.vm == vm.name);
        alignment.map(|alignment| alignment.guest)
    }

    /// The samples of a recording.
    pub(super) fn samples_of(&self, recording: usize) -> Option<&'s Samples> {
        self.samples.get(recording)?.as_ref()
    }

    /// Names of places in a VM, or for `None` in the host's other threads.
    pub(super) fn code(&self, recording: usize, vm: Option<&Vm>) -> Code<'_> {
        let machine = |at: usize| self.machines.get(at).and_then(Option::as_ref);
        let guest = vm.and_then(|vm| self.guest_of(recording, vm));
        Code {
            guest: guest.and_then(machine),
            host: machine(recording),
            guest_kernel: vm.and_then(|vm| self.kernel_of(recording, vm)),
            nested: vm.and_then(|vm| GuestSymbols::find(self.given, &vm.name, 2)),
            processes: guest.and_then(|at| self.samples_of(at)).map(Samples::processes),
            names: &self.names,
            stacks: &self.stacks,
            kept_code: self.kept_code.map(|(all, before)| {
                let code_of = |at: usize| all.get(at).and_then(Option::as_ref);
                KeptCode { guest: guest.and_then(code_of), host: code_of(recording), before }
            }),
        }
    }
}
