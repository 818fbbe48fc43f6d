//! A timeline small enough to draw: lanes of spans.
//!
//! A lane shows the states of a vCPU, a host CPU or a task over time. A recording of hours has more spans than a
//! page can hold, so a [`LaneSet`] has a limit: beyond it, short neighbours are merged, and the merged span keeps
//! the time per state.

mod arrows;
mod merge;
mod of_calls;
mod of_states;
mod packed;
mod state;

pub(crate) use arrows::ArrowSink;
pub use arrows::{Arrow, Arrows, LanePlaces};
pub use merge::Item;
pub use of_states::LaneMachine;
pub(crate) use of_states::LaneSink;
pub use state::State;

use std::collections::HashMap;

use merge::Items;
use of_states::Subject;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LaneKind {
    /// A CPU of the recorded machine, with its running threads.
    Cpu,
    /// A vCPU thread: in the guest, or handling an exit.
    Vcpu,
    /// Any other thread of the recorded machine.
    Thread,
    /// A task of a guest.
    Task,
    /// Functions of a thread at one stack depth.
    Call,
}

impl LaneKind {
    /// Name in pages and scripts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Vcpu => "vcpu",
            Self::Thread => "thread",
            Self::Task => "task",
            Self::Call => "call",
        }
    }
}

/// A row of the timeline.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The recorded machine: `host`, or a guest's name.
    pub machine: String,
    pub kind: LaneKind,
    /// Name within the machine.
    pub name: String,
    /// The VM's name in the exits report.
    pub vm: Option<String>,
    /// Stack depth of a lane of calls.
    pub depth: Option<u32>,
    /// Not shown by default: other threads or tasks ran longer.
    pub quiet: bool,
    /// The thread, CPU or vCPU; `None` for lanes of calls.
    subject: Option<Subject>,
    items: Items,
}

impl Lane {
    /// A lane without spans.
    #[must_use]
    pub fn new(machine: &str, kind: LaneKind, name: &str) -> Self {
        Self {
            machine: machine.to_owned(),
            kind,
            name: name.to_owned(),
            vm: None,
            depth: None,
            quiet: false,
            subject: None,
            items: Items::default(),
        }
    }

    /// Sum of its spans' durations.
    fn covered_ns(&self) -> u64 {
        self.items.covered_ns()
    }

    /// Number of spans; merged neighbours count as one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Spans in the order of time; merged neighbours are one span.
    pub fn items(&self) -> impl Iterator<Item = Item> {
        self.items.iter()
    }

    /// Gives `take` the lane's columns in the page's format (`docs/formats/report.md`), as pieces of bytes. Times
    /// are relative to `origin_ns`.
    ///
    /// # Errors
    ///
    /// Errors of `take`.
    pub fn columns<E>(
        &self,
        origin_ns: u64,
        take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.items.columns(origin_ns, take)
    }

    /// Contents of the merged spans, in order.
    #[cfg(test)]
    fn merged(&self) -> impl Iterator<Item = merge::Merged> {
        self.items.merged()
    }

    /// Start of the first span and end of the last; `None` without spans.
    fn range_ns(&self) -> Option<(u64, u64)> {
        Some((self.items().next()?.from_ns, self.items.last()?.to_ns()))
    }
}

/// A state of a lane from start to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Start.
    pub from_ns: u64,
    /// End, exclusive.
    pub to_ns: u64,
    pub state: State,
    /// Number of its label from [`LaneSet::label`]; 0: none.
    pub label: u32,
}

/// Limits for the lanes of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneRoom {
    /// Max spans; merged neighbours count as one.
    pub spans: usize,
    /// Max bytes of memory for the spans.
    pub bytes: usize,
}

/// Lanes with a limit on the number of spans and on their memory.
#[derive(Debug)]
pub struct LaneSet {
    lanes: Vec<Lane>,
    labels: Vec<String>,
    label_numbers: HashMap<String, u32>,
    room: LaneRoom,
    used_room: LaneRoom,
    /// Short neighbours are merged if they are shorter than this; 0: no merging.
    merged_below_ns: u64,
    spans: u64,
    left_out: u64,
}

/// Max lanes while reading; most of them are dropped at the end.
const MAX_LANES: usize = 1 << 16;

/// Max labels: more than the threads that a host runs in a day.
const MAX_LABELS: usize = 1 << 20;

/// Min limits: a page with less shows nothing.
const MIN_ROOM: LaneRoom = LaneRoom { spans: 1000, bytes: 1 << 20 };

/// The first merge threshold, once there are too many spans.
const FIRST_MERGE_NS: u64 = 64;

impl LaneSet {
    /// An empty set; limits below `MIN_ROOM` are raised.
    #[must_use]
    pub fn new(room: LaneRoom) -> Self {
        Self {
            lanes: Vec::new(),
            labels: vec![String::new()],
            label_numbers: HashMap::new(),
            room: LaneRoom {
                spans: room.spans.max(MIN_ROOM.spans),
                bytes: room.bytes.max(MIN_ROOM.bytes),
            },
            used_room: LaneRoom { spans: 0, bytes: 0 },
            merged_below_ns: 0,
            spans: 0,
            left_out: 0,
        }
    }

    /// Adds a lane and returns its number. Beyond `MAX_LANES` lanes are dropped, with all their spans.
    pub fn add(&mut self, lane: Lane) -> usize {
        if self.lanes.len() >= MAX_LANES {
            self.left_out += 1;
            return usize::MAX;
        }
        self.lanes.push(lane);
        self.lanes.len() - 1
    }

    /// The lane with this number.
    pub fn lane_mut(&mut self, at: usize) -> Option<&mut Lane> {
        self.lanes.get_mut(at)
    }

    /// The number of a label; 0 if there are too many labels.
    pub fn label(&mut self, text: &str) -> u32 {
        if text.is_empty() || self.labels.len() >= MAX_LABELS {
            return 0;
        }
        if let Some(&known) = self.label_numbers.get(text) {
            return known;
        }
        let number = u32::try_from(self.labels.len()).unwrap_or(0);
        self.labels.push(text.to_owned());
        self.label_numbers.insert(text.to_owned(), number);
        number
    }

    /// Adds a span to a lane. Spans of one lane arrive almost in the order of time. Overlapping parts are cut off,
    /// empty spans are dropped.
    pub fn push(&mut self, at: usize, span: Span) {
        let Some(lane) = self.lanes.get_mut(at) else { return };
        let before = (lane.items.len(), lane.items.bytes());
        if !lane.items.push(span, self.merged_below_ns) {
            return;
        }
        self.spans += 1;
        self.used_room.spans += lane.items.len() - before.0;
        // A lane that packs its spans can shrink.
        self.used_room.bytes = self.used_room.bytes + lane.items.bytes() - before.1;
        if self.used_room.spans > self.room.spans {
            self.merge_to(LaneRoom { spans: self.room.spans / 2, ..self.room });
        }
        if self.used_room.bytes > self.room.bytes {
            self.merge_to(LaneRoom { bytes: self.room.bytes / 2, ..self.room });
        }
    }

    /// Raises the merge threshold until the spans fit into `goal`.
    fn merge_to(&mut self, goal: LaneRoom) {
        while self.used_room.spans > goal.spans || self.used_room.bytes > goal.bytes {
            let Some(next_ns) = self.next_merge_ns() else { return };
            self.merged_below_ns = next_ns;
            for lane in &mut self.lanes {
                lane.items.compact(next_ns);
            }
            self.count_taken();
        }
    }

    fn next_merge_ns(&self) -> Option<u64> {
        if self.merged_below_ns == 0 {
            return Some(FIRST_MERGE_NS);
        }
        self.merged_below_ns.checked_mul(2)
    }

    #[must_use]
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Labels by number; the first is empty.
    #[must_use]
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// Changes the text of a label, for names that are only known at the end of a recording.
    fn rename_label(&mut self, number: u32, text: String) {
        if let Some(label) = self.labels.get_mut(number as usize) {
            *label = text;
        }
    }

    /// Drops the lanes for which `keep` is false.
    fn retain(&mut self, keep: impl Fn(&Lane) -> bool) {
        self.lanes.retain(keep);
        self.count_taken();
    }

    /// Replaces the lanes from `first` on with those in `order`; `left_out` is the number of dropped lanes.
    fn keep_from(&mut self, first: usize, order: &[usize], left_out: u64) {
        let mut added: Vec<Option<Lane>> = self.lanes.drain(first..).map(Some).collect();
        let wanted = order.iter().filter_map(|at| added.get_mut(at.checked_sub(first)?)?.take());
        self.lanes.extend(wanted);
        self.left_out += left_out;
        self.count_taken();
    }

    fn count_taken(&mut self) {
        self.used_room = LaneRoom {
            spans: self.lanes.iter().map(Lane::len).sum(),
            bytes: self.lanes.iter().map(|lane| lane.items.bytes()).sum(),
        };
    }

    /// Keeps the `max` busiest lanes of a kind on each machine; those after the first `shown` are quiet.
    fn keep_busiest(&mut self, kind: LaneKind, shown: usize, max: usize) {
        let mut by_machine: HashMap<&str, Vec<u64>> = HashMap::new();
        for lane in self.lanes.iter().filter(|lane| lane.kind == kind) {
            by_machine.entry(&lane.machine).or_default().push(lane.covered_ns());
        }
        let mut least: HashMap<String, (u64, u64)> = HashMap::new();
        for (machine, mut times) in by_machine {
            times.sort_unstable_by(|a, b| b.cmp(a));
            let threshold = |first: usize| times.get(first).map_or(0, |&ns| ns + 1);
            least.insert(machine.to_owned(), (threshold(shown), threshold(max)));
        }
        let before = self.lanes.len();
        self.lanes.retain_mut(|lane| {
            if lane.kind != kind {
                return true;
            }
            let (shown_ns, kept_ns) = least.get(&lane.machine).copied().unwrap_or((0, 0));
            let covered_ns = lane.covered_ns();
            lane.quiet = covered_ns < shown_ns;
            covered_ns >= kept_ns
        });
        self.left_out += (before - self.lanes.len()) as u64;
        self.count_taken();
    }

    /// Sorts lanes by kind, machine and number; threads by busy time, descending.
    fn sort(&mut self) {
        self.lanes.sort_by_cached_key(|lane| {
            let numbered = matches!(lane.kind, LaneKind::Cpu | LaneKind::Vcpu);
            let number = lane.name.rsplit(' ').next().and_then(|digits| digits.parse().ok());
            let place = if numbered { number.unwrap_or(0) } else { u64::MAX - lane.covered_ns() };
            (lane.kind, lane.machine.clone(), lane.vm.clone(), place, lane.name.clone())
        });
    }

    /// Number of spans that were added, merged or not.
    #[must_use]
    pub fn spans(&self) -> u64 {
        self.spans
    }

    /// Number of lanes that were dropped.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Merge threshold: spans shorter than this may have been merged with neighbours; 0: none were.
    #[must_use]
    pub fn merged_below_ns(&self) -> u64 {
        self.merged_below_ns
    }

    /// Earliest start and latest end of all lanes.
    #[must_use]
    pub fn range_ns(&self) -> Option<(u64, u64)> {
        let ends = self.lanes.iter().filter_map(Lane::range_ns);
        ends.reduce(|all, range| (all.0.min(range.0), all.1.max(range.1)))
    }
}

#[cfg(test)]
mod tests;
