//! Facts that are needed before the first row of a recording: the vCPUs of exits, the architecture, and
//! the time range.

use analyses::Isa;
use analyses::recorded::RecordedParts;
use sources::Recording;
use timeline::reasons::ReasonNames;
use timeline::{ExitSink, ExitSpan, Losses, Outcome, VcpuInfo, Vm, each_exit, group_vms};

/// The VM and the number of a vCPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) vm: String,
    /// Its number there.
    pub(crate) vcpu: i32,
}

/// The result of a first pass over a recording's exits.
#[derive(Debug)]
pub(crate) struct Survey {
    /// By the vCPU index of exits.
    pub(crate) homes: Vec<Home>,
    pub(crate) vms: Vec<Vm>,
    /// Threads of vCPUs, by the same index.
    pub(crate) vcpus: Vec<VcpuInfo>,
    pub(crate) recorded: RecordedParts,
    pub(crate) losses: Losses,
    /// Exits that spanned a loss.
    pub(crate) dropped: u64,
    /// Architecture of its first exit.
    pub(crate) isa: Option<Isa>,
    /// First and last event.
    pub(crate) ends_ns: Option<(u64, u64)>,
}

#[derive(Debug, Default)]
struct Count {
    dropped: u64,
    isa: Option<u8>,
}

impl ExitSink for Count {
    fn exit(&mut self, _: usize, span: &ExitSpan) {
        self.dropped += u64::from(span.outcome == Outcome::LostIn);
        self.isa.get_or_insert(span.isa);
    }
}

impl Survey {
    /// Reads a recording once.
    pub(crate) fn read(
        recording: &Recording,
        range_ns: Option<(u64, u64)>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Self {
        let (count, pass) = each_exit(recording, false, Count::default(), progress).split();
        let vms = group_vms(recording, &pass.vcpus);
        let mut homes = vec![Home::default(); pass.vcpus.len()];
        for (vm, vcpu) in vms.iter().flat_map(|vm| vm.vcpus.iter().map(move |vcpu| (vm, vcpu))) {
            if let Some(home) = homes.get_mut(vcpu.index) {
                let number = i32::try_from(vcpu.vcpu).unwrap_or(i32::MAX);
                *home = Home { vm: vm.name.clone(), vcpu: number };
            }
        }
        let names = ReasonNames::new(recording);
        Self {
            homes,
            vms,
            vcpus: pass.vcpus,
            recorded: RecordedParts::new(recording, pass.seen),
            losses: pass.losses,
            dropped: count.dropped,
            isa: count.isa.map(|isa| names.isa(isa)),
            ends_ns: ends_of(recording, range_ns),
        }
    }

    /// The homes of a thread's vCPUs, in order of time.
    pub(crate) fn homes_of(&self, thread: u32) -> impl Iterator<Item = &Home> {
        let of_thread = move |(info, home): (&VcpuInfo, _)| (info.thread == thread).then_some(home);
        self.vcpus.iter().zip(&self.homes).filter_map(of_thread)
    }

    /// Whether the recording reports missing events.
    pub(crate) fn has_losses(&self) -> bool {
        let Losses { events_lost, uncounted_losses, .. } = &self.losses;
        *events_lost > 0 || *uncounted_losses > 0 || self.losses.pages_damaged() > 0
    }
}

/// The range of a recording, or the range that it was limited to.
pub(crate) fn ends_of(recording: &Recording, range_ns: Option<(u64, u64)>) -> Option<(u64, u64)> {
    range_ns.or_else(|| recording.first_and_last_ns())
}
