//! A packed list of all exits of a recording, so that a page can compute statistics of any time range.
//!
//! A list contains all exits or none: with missing exits, statistics would be wrong.

mod packed;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::arch::Isa;
use timeline::reasons::{Code, ReasonNames};
use timeline::{Detail, ExitSink, ExitSpan};

use crate::exit_question::{ExitQuestion, FoundExits};
use crate::recorded::RecordedParts;
use crate::vms::VmsByVcpu;
use packed::{PackedExits, ValueTable};

pub use packed::KeptExit;

/// Max exits in the lists of all recordings together: some 2 MB of a page.
pub const MAX_LISTED_EXITS: usize = 400_000;

/// Limits for the lists of all recordings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListRoom {
    pub exits: usize,
    /// Bytes of memory.
    pub bytes: usize,
}

impl ListRoom {
    /// The limits that remain after `list`.
    #[must_use]
    pub fn next_to(self, list: &ExitList) -> Self {
        Self {
            exits: self.exits.saturating_sub(list.exits),
            bytes: self.bytes.saturating_sub(list.bytes),
        }
    }
}

/// Exits of one vCPU that have level, reason and code in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedGroup {
    pub vm: String,
    /// The vCPU's number in the VM.
    pub vcpu: u32,
    /// Level of the guest that exited.
    pub level: u8,
    pub isa: Isa,
    /// The kernel's name of the reason.
    pub reason: String,
    /// Its raw code.
    pub code: Code,
}

/// All exits of a recording, or none.
#[derive(Debug)]
pub struct ExitList {
    /// Number of the recording, as given to [`EachExitOf`].
    pub recording: u32,
    /// Parts of an exit that the recording has events for.
    pub recorded: RecordedParts,
    /// Texts that exits refer to: details, and places in the guest.
    pub values: Vec<String>,
    groups: BTreeMap<ListedGroup, PackedExits>,
    exits: usize,
    bytes: usize,
    is_whole: bool,
}

impl ExitList {
    /// Whether it holds all exits; otherwise it is empty.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Groups with their number of exits.
    pub fn groups(&self) -> impl Iterator<Item = (&ListedGroup, usize)> {
        self.groups.iter().map(|(group, exits)| (group, exits.len()))
    }

    /// Exits by group, each group in the order of time.
    pub fn exits(&self) -> impl Iterator<Item = impl Iterator<Item = KeptExit>> {
        self.groups.values().map(PackedExits::iter)
    }

    /// Start of the first exit.
    #[must_use]
    pub fn first_ns(&self) -> Option<u64> {
        self.exits().filter_map(|mut group| group.next()).map(|exit| exit.start_ns).min()
    }
}

/// Lists every exit of the recording with this number, within limits.
#[derive(Clone, Copy, Debug)]
pub struct EachExitOf(pub u32, pub ListRoom);

impl ExitQuestion for EachExitOf {
    type Sink = EachExit;
    type Answer = ExitList;

    fn needs_details(&self, _: &Recording) -> bool {
        // Without room for exits, the list stays empty and no page reads it.
        self.1.exits > 0
    }

    fn sink(&self) -> EachExit {
        EachExit { room: self.1, ..EachExit::default() }
    }

    fn answer(&self, found: &FoundExits<'_>, sink: EachExit) -> ExitList {
        let mut names = ReasonNames::new(found.recording);
        let bytes = sink.bytes();
        let homes = VmsByVcpu::new(&found.vms);
        let mut groups: BTreeMap<ListedGroup, PackedExits> = BTreeMap::new();
        let mut is_whole = !sink.is_over;
        for (key, exits) in sink.groups {
            let isa = names.isa(key.isa);
            let home = homes.find(key.vcpu as usize);
            let (vm, vcpu) =
                home.map(|(vm, vcpu)| (vm.name.clone(), vcpu.vcpu)).unwrap_or_default();
            let (reason, code) = (names.name(key.isa, key.code), Code::new(isa, key.code));
            let group = ListedGroup { vm, vcpu, level: key.level, isa, reason, code };
            // Two threads that were the same vCPU one after the other would have to be merged by time.
            is_whole &= groups.insert(group, exits).is_none();
        }
        if !is_whole {
            groups.clear();
        }
        let texts = sink.values.all().iter().map(|value| text_of(*value, found.recording));
        ExitList {
            recording: self.0,
            recorded: RecordedParts::new(found.recording, found.pass.seen),
            values: if is_whole { texts.collect() } else { Vec::new() },
            exits: groups.values().map(PackedExits::len).sum(),
            bytes: if is_whole { bytes } else { 0 },
            groups,
            is_whole,
        }
    }
}

/// Text of an exit's detail, or of the place in the guest.
fn text_of((detail, value): (Option<Detail>, u64), recording: &Recording) -> String {
    match detail {
        Some(Detail::Msr) => match crate::msr_names::msr_name(value) {
            Some(name) => format!("MSR {value:#x} ({name})"),
            None => format!("MSR {value:#x}"),
        },
        Some(Detail::Port) => format!("port {value:#x}"),
        Some(Detail::Gpa) => format!("guest physical address {value:#x}"),
        Some(Detail::Hypercall) => format!("hypercall {value:#x}"),
        Some(Detail::CpuidLeaf) => format!("cpuid leaf {value:#x}"),
        Some(Detail::VmcbClean) => format!("clean bits of the VMCB {value:#x}"),
        None => match recording.guest_symbol(value) {
            Some(symbol) => format!("{value:#x} ({symbol})"),
            None => format!("{value:#x}"),
        },
    }
}

/// Exits with equal keys form a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    vcpu: u32,
    level: u8,
    isa: u8,
    code: u64,
}

/// Stores exits within limits.
#[derive(Debug, Default)]
pub struct EachExit {
    groups: FxHashMap<Key, PackedExits>,
    values: ValueTable,
    exits: usize,
    packed_bytes: usize,
    room: ListRoom,
    is_over: bool,
}

impl EachExit {
    fn bytes(&self) -> usize {
        self.packed_bytes.saturating_add(self.values.bytes())
    }

    fn keep(&mut self, key: Key, span: &ExitSpan) -> bool {
        let pc = self.values.number(None, span.guest_pc);
        let about = span.detail.map_or(0, |(kind, value)| self.values.number(Some(kind), value));
        let group = self.groups.entry(key).or_default();
        let before = group.bytes();
        let is_in_order = group.push(KeptExit::new(span, pc, about));
        self.packed_bytes = self.packed_bytes.saturating_add(group.bytes().saturating_sub(before));
        self.exits = self.exits.saturating_add(1);
        is_in_order && self.exits <= self.room.exits && self.bytes() <= self.room.bytes
    }
}

impl ExitSink for EachExit {
    fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
        if self.is_over {
            return;
        }
        let vcpu = u32::try_from(vcpu).unwrap_or(u32::MAX);
        let key = Key { vcpu, level: span.level, isa: span.isa, code: span.code };
        if !self.keep(key, span) {
            let room = self.room;
            *self = Self { room, is_over: true, ..Self::default() };
        }
    }
}
