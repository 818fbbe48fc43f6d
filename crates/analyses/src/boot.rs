//! How a guest boots and goes down: by level of its kernel's initcalls, then in user space up to a
//! mark, then step by step to its last event; with what each of that cost its host.
//!
//! ```text
//!  host   first entry                                                          last exit
//!  guest    │ before │ console │ … │ early │ … │ late │ … │ init … mark │ … │ down │ after │
//! ```
//! The guest tells by `initcall:*` events that its kernel records from its command line on, exits by
//! the host's recording of the same time, events in the guest by their bytes.

mod events;
mod follow;
mod host;
mod initcalls;
mod shutdown;
mod told;
mod tracing;

use std::collections::BTreeMap;

use sources::Recording;
use timeline::{Losses, Parts};

use crate::reasons::{Code, ReasonNames, is_waiting};
use crate::{GuestAlignment, KnownParts, Recorded, find_vms};

pub use events::Weight;
pub use tracing::{EventCost, TracingCost};

/// Where phases begin that no event of a kernel's own tells.
#[derive(Clone, Debug, Default)]
pub struct BootMarks {
    /// The boot is over at the first mark that has this in it; unset: at the first mark of all.
    pub until: Option<String>,
    /// The shutdown begins at the first mark that has this in it.
    pub down: Option<String>,
}

impl BootMarks {
    fn is_until(&self, text: &str) -> bool {
        self.until.as_ref().is_none_or(|until| text.contains(until))
    }

    fn is_down(&self, text: &str) -> bool {
        self.down.as_ref().is_some_and(|down| text.contains(down))
    }
}

/// Levels that a kernel is believed to have: each is a phase, and there are nine.
const MOST_LEVELS: usize = 256;

/// What a phase is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhaseKind {
    /// Before the guest's first event: firmware, and the kernel until it can trace.
    Before,
    /// The kernel, beside initcalls.
    Kernel,
    /// Initcalls of a level.
    Level,
    /// User space, until the mark.
    User,
    /// After the mark.
    Running,
    /// On the way down.
    Shutdown,
    /// After the guest's last event, until its vCPUs run no more.
    After,
}

impl HostCost {
    /// Exit to entry, without exits that wait for work.
    #[must_use]
    pub fn working_ns(&self) -> u64 {
        self.time_ns.saturating_sub(self.waiting_ns)
    }
}

impl PhaseKind {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Kernel => "kernel",
            Self::Level => "level",
            Self::User => "user",
            Self::Running => "running",
            Self::Shutdown => "shutdown",
            Self::After => "after",
        }
    }
}

/// A phase: from its own beginning to that of the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What it is.
    pub kind: PhaseKind,
    /// Which: a level's name, a program's path, a mark's text, a step of a shutdown.
    pub name: String,
    /// When it begins.
    pub from_ns: u64,
    /// When it ends.
    pub to_ns: u64,
    /// What the guest tells of it; `None` where it tells nothing.
    pub guest: Option<InPhase>,
    /// What it cost the host; `None` where that was not recorded.
    pub host: Option<HostCost>,
}

impl Phase {
    /// How long it lasts.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// What a guest tells of a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InPhase {
    /// Initcalls that begin in it, modules' among them.
    pub initcalls: u64,
    /// Those that did not end.
    pub unfinished: u64,
    /// Time in initcalls, those within others left out.
    pub initcalls_ns: u64,
    /// The same by section of the kernel's table, with its number of initcalls, in order; empty where
    /// symbols don't tell.
    pub sections: Vec<(String, u64, u64)>,
    /// Threads that were made.
    pub forks: u64,
    /// Programs that were started.
    pub execs: u64,
    /// Modules that were loaded.
    pub modules: u64,
    /// Events that the guest's kernel recorded.
    pub weight: Weight,
}

/// What a stretch of a guest's time cost its host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostCost {
    /// Exits of the guest's vCPUs that begin in it.
    pub exits: u64,
    /// Those with a time.
    pub paired: u64,
    /// The sum of their times, from exit to entry.
    pub time_ns: u64,
    /// Of that, the time of exits that wait for work.
    pub waiting_ns: u64,
    /// Where all of it went, as far as that is recorded.
    pub parts: KnownParts,
    /// By reason, those first that took longest.
    pub reasons: Vec<ReasonCost>,
}

/// Exits of one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonCost {
    /// The kernel's symbol.
    pub reason: String,
    /// The raw code.
    pub code: Code,
    /// How many.
    pub exits: u64,
    /// Exit to entry, of those with a time.
    pub time_ns: u64,
    /// They wait for work.
    pub waiting: bool,
}

/// A call of a function that initializes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initcall {
    /// Its name; `None` where symbols don't tell.
    pub function: Option<String>,
    /// The function.
    pub address: u64,
    /// The module, or the part of the kernel; `None` where it is not known.
    pub module: Option<String>,
    /// Whether it came with a module that was loaded.
    pub is_loaded: bool,
    /// The section of the kernel's table it is in.
    pub section: Option<String>,
    /// The level; `None`: a module's.
    pub level: Option<String>,
    /// When it began.
    pub from_ns: u64,
    /// When it ended; `None`: that was not seen.
    pub to_ns: Option<u64>,
    /// What it returned.
    pub result: Option<i64>,
    /// How many others of the same thread it is within.
    pub depth: usize,
    /// What the guest recorded meanwhile; `None` for those within others and those without an end.
    pub weight: Option<Weight>,
    /// What that time cost the host; `None` where that is not known.
    pub host: Option<HostCost>,
}

impl Initcall {
    /// How long it took.
    #[must_use]
    pub fn duration_ns(&self) -> Option<u64> {
        Some(self.to_ns?.saturating_sub(self.from_ns))
    }
}

/// A machine that boots, or goes down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootedMachine {
    /// The VM's name; `None` for a guest's recording without its host's.
    pub vm: Option<String>,
    /// Index of the host's recording.
    pub host: Option<usize>,
    /// Index of its own recording.
    pub guest: Option<usize>,
    /// In order, without gaps.
    pub phases: Vec<Phase>,
    /// In the order in which they began.
    pub initcalls: Vec<Initcall>,
    /// Ends of initcalls whose beginnings were not seen.
    pub strays: u64,
    /// The first program of its first process, and when it was started.
    pub init: Option<(String, u64)>,
    /// The mark that ended the boot, and when.
    pub mark: Option<(String, u64)>,
    /// Its vCPUs; 0 where its host was not recorded.
    pub vcpus: usize,
    /// Exits of its vCPUs in the whole recording.
    pub exits: Option<u64>,
    /// Pages of its own recording that can't be read.
    pub damaged: u64,
    /// What an event costs it; `None`: nobody has measured that. Recordings don't tell: whoever knows sets it.
    pub event_cost: Option<EventCost>,
    /// Whether times are nanoseconds.
    pub nanoseconds: bool,
}

impl BootedMachine {
    /// Whether its own recording tells anything of it.
    fn is_told(&self) -> bool {
        let is_step = |phase: &Phase| matches!(phase.kind, PhaseKind::Level | PhaseKind::Shutdown);
        !self.initcalls.is_empty() || self.phases.iter().any(is_step)
    }
}

/// Machines that boot or go down in some recordings that are read as one.
#[derive(Debug)]
pub struct Boot {
    /// Guests first that have a recording of their own.
    pub machines: Vec<BootedMachine>,
    /// By host's recording.
    pub losses: Vec<Losses>,
}

/// How machines boot and go down. `guests` says which recording is whose guest, and must have been
/// applied; `tick` hears of the bytes done, and more than once of the same.
#[must_use]
pub fn boot(
    recordings: &[Recording],
    guests: &[GuestAlignment],
    marks: &BootMarks,
    tick: &(dyn Fn(u64) + Sync),
) -> Boot {
    let mut machines: Vec<BootedMachine> = Vec::new();
    // Of a host that has several machines, once.
    let mut losses = BTreeMap::new();
    let placed = |at: usize| guests.iter().find(|one| one.guest == at && one.chosen.is_some());
    for (at, recording) in recordings.iter().enumerate() {
        let alignment = placed(at);
        let machine = events::tells(recording).then(|| own(recording, marks, tick));
        let Some(mut machine) = machine.filter(|one| one.is_told()) else { continue };
        machine.guest = Some(at);
        if let Some(one) = alignment {
            (machine.host, machine.vm) = (Some(one.host), Some(one.vm.clone()));
            let host = recordings.get(one.host);
            losses.extend(host.map(|host| (one.host, host::add(&mut machine, host, tick))));
        }
        machines.push(machine);
    }
    for (at, recording) in recordings.iter().enumerate() {
        // What a guest that is placed hosts itself is not asked here.
        if placed(at).is_some() {
            continue;
        }
        for vm in find_vms(recording, &|_| ()) {
            let has_own = |one: &BootedMachine| {
                one.host == Some(at) && one.vm.as_deref() == Some(vm.name.as_str())
            };
            if !machines.iter().any(has_own) {
                let mut machine = told::machine(recording, &vm, marks, tick);
                machine.host = Some(at);
                losses.insert(at, host::add(&mut machine, recording, tick));
                machines.push(machine);
            }
        }
    }
    Boot { machines, losses: losses.into_values().collect() }
}

/// What a guest's own recording tells.
fn own(recording: &Recording, marks: &BootMarks, tick: &(dyn Fn(u64) + Sync)) -> BootedMachine {
    let story = events::story(recording, tick);
    let mut machine = follow::follow(recording, &story, marks);
    let edges = edges(&machine);
    let weights = events::weigh(recording, &edges, story.buffer, tick);
    let sum = |from_ns: u64, to_ns: u64| {
        let mut sum = Weight::default();
        for weight in segments(&edges, from_ns, to_ns).filter_map(|at| weights.phases.get(at)) {
            sum.add(weight);
        }
        sum
    };
    let last = machine.phases.len().saturating_sub(1);
    for (at, phase) in machine.phases.iter_mut().enumerate() {
        // The last event is in the last phase.
        let to_ns = if at == last { u64::MAX } else { phase.to_ns };
        let weight = sum(phase.from_ns, to_ns);
        if let Some(guest) = &mut phase.guest {
            guest.weight = weight;
        }
    }
    for initcall in measured_mut(&mut machine) {
        initcall.weight = initcall.to_ns.map(|to_ns| sum(initcall.from_ns, to_ns));
    }
    machine.damaged = weights.damaged;
    machine
}

/// Initcalls whose costs are added up: those within no other, as far as a kernel has so many. In a
/// damaged recording all may be within all.
const MOST_MEASURED: usize = 4096;

fn measured_mut(machine: &mut BootedMachine) -> impl Iterator<Item = &mut Initcall> {
    machine.initcalls.iter_mut().filter(|one| one.depth == 0).take(MOST_MEASURED)
}

/// All times at which a phase or an initcall begins or ends, in order.
fn edges(machine: &BootedMachine) -> Vec<u64> {
    let phases = machine.phases.iter().flat_map(|phase| [phase.from_ns, phase.to_ns]);
    let outer = machine.initcalls.iter().filter(|one| one.depth == 0);
    let initcalls =
        outer.take(MOST_MEASURED).flat_map(|one| [Some(one.from_ns), one.to_ns]).flatten();
    let mut edges: Vec<u64> = phases.chain(initcalls).collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Numbers of the segments between two edges: segment 0 lies before the first edge, 1 begins there.
fn segments(edges: &[u64], from_ns: u64, to_ns: u64) -> std::ops::Range<usize> {
    let at = |ns: u64| edges.partition_point(|&edge| edge < ns);
    at(from_ns) + 1..at(to_ns) + 1
}

/// Phases that begin so and end where the next one begins, the last one at `last_ns`.
fn phases(
    begins: Vec<(u64, PhaseKind, String)>,
    last_ns: u64,
    guest: Option<&InPhase>,
) -> Vec<Phase> {
    let ends: Vec<u64> = begins.iter().skip(1).map(|(ns, ..)| *ns).chain([last_ns]).collect();
    let phase = |((from_ns, kind, name), to_ns)| Phase {
        kind,
        name,
        from_ns,
        to_ns,
        guest: guest.cloned(),
        host: None,
    };
    begins.into_iter().zip(ends).map(phase).collect()
}

impl Weight {
    fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.bytes += other.bytes;
        self.losses += other.losses;
        self.lost = self.lost.saturating_add(other.lost);
    }
}

/// Costs in the making: by raw code.
#[derive(Clone, Debug, Default)]
struct Tally {
    exits: u64,
    paired: u64,
    parts: Parts,
    user_return_unseen: u64,
    poll_unknown: u64,
    /// By instruction set and code: exits and time.
    codes: BTreeMap<(u8, u64), (u64, u64)>,
}

impl Tally {
    fn merge(&mut self, other: &Self) {
        self.exits += other.exits;
        self.paired += other.paired;
        self.parts.add(&other.parts);
        self.user_return_unseen += other.user_return_unseen;
        self.poll_unknown += other.poll_unknown;
        for (code, (exits, time_ns)) in &other.codes {
            let sum = self.codes.entry(*code).or_default();
            (sum.0, sum.1) = (sum.0 + exits, sum.1.saturating_add(*time_ns));
        }
    }

    fn named(&self, names: &mut ReasonNames, recorded: &Recorded) -> HostCost {
        let mut waiting_ns = 0_u64;
        let mut reasons = Vec::new();
        for ((isa, code), (exits, time_ns)) in &self.codes {
            let (exits, time_ns) = (*exits, *time_ns);
            let waiting = is_waiting(names.isa(*isa), *code);
            if waiting {
                waiting_ns = waiting_ns.saturating_add(time_ns);
            }
            let (reason, code) = (names.name(*isa, *code), Code::new(names.isa(*isa), *code));
            reasons.push(ReasonCost { reason, code, exits, time_ns, waiting });
        }
        reasons.sort_by_key(|one| std::cmp::Reverse((one.time_ns, one.exits)));
        let tally = crate::Tally {
            parts: self.parts,
            user_return_unseen: self.user_return_unseen,
            poll_unknown: self.poll_unknown,
            ..crate::Tally::default()
        };
        HostCost {
            exits: self.exits,
            paired: self.paired,
            time_ns: self.parts.total_ns(),
            waiting_ns,
            parts: KnownParts::new(&tally, recorded),
            reasons,
        }
    }
}
