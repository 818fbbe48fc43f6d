//! What happened when, small enough to be drawn: lanes of spans.
//!
//! A lane is a vCPU, a host CPU or a task with what it did from when to when. A recording of hours
//! has more spans than a page can hold, so a [`LaneSet`] keeps no more than it was asked to: beyond
//! that, neighbours that are short are merged, and the time that each state took in them is kept.

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
    /// A CPU of the recorded machine: which thread runs.
    Cpu,
    /// A vCPU thread: guest, or the handler of its exit.
    Vcpu,
    /// A thread of the recorded machine that is no vCPU.
    Thread,
    /// A task of a guest.
    Task,
    /// Functions that a thread was in at one depth of its stack.
    Call,
}

impl LaneKind {
    /// The name that pages and scripts know it by.
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

/// One thing that time is drawn for.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The machine that was recorded: `host`, or a guest's name.
    pub machine: String,
    pub kind: LaneKind,
    /// Its name within the machine.
    pub name: String,
    /// The VM it belongs to, by the name that the exits report gives.
    pub vm: Option<String>,
    /// Of a lane of calls: how many calls are around them.
    pub depth: Option<u32>,
    /// Its thread or task ran less than those that are shown at first.
    pub quiet: bool,
    /// What it is of; `None` for those of calls.
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

    /// How much time its spans cover.
    fn covered_ns(&self) -> u64 {
        self.items.covered_ns()
    }

    /// How many spans it has, neighbours that were merged as one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its spans in time order, neighbours that were merged as one.
    pub fn items(&self) -> impl Iterator<Item = Item> {
        self.items.iter()
    }

    /// Gives `take` their columns as a page has them (`docs/formats/report.md`), as bytes, piece by piece. Times begin at
    /// `origin_ns`.
    ///
    /// # Errors
    /// What `take` gives.
    pub fn columns<E>(
        &self,
        origin_ns: u64,
        take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.items.columns(origin_ns, take)
    }

    /// What is in those that were merged, in their order.
    #[cfg(test)]
    fn merged(&self) -> impl Iterator<Item = merge::Merged> {
        self.items.merged()
    }

    /// First and last moment; `None` without spans.
    fn range_ns(&self) -> Option<(u64, u64)> {
        Some((self.items().next()?.from_ns, self.items.last()?.to_ns()))
    }
}

/// From when to when a lane was in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First moment.
    pub from_ns: u64,
    /// First moment after it.
    pub to_ns: u64,
    pub state: State,
    /// What it was about, as [`LaneSet::label`] numbers it; 0: nothing.
    pub label: u32,
}

/// What the lanes of a recording may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneRoom {
    /// Spans in all, neighbours that were merged as one.
    pub spans: usize,
    /// Bytes of memory that those take.
    pub bytes: usize,
}

/// Lanes that hold a bounded number of spans between them, in a bounded number of bytes.
#[derive(Debug)]
pub struct LaneSet {
    lanes: Vec<Lane>,
    labels: Vec<String>,
    label_numbers: HashMap<String, u32>,
    room: LaneRoom,
    used_room: LaneRoom,
    /// Spans shorter than this are merged with short neighbours; 0: none are.
    merged_below_ns: u64,
    spans: u64,
    left_out: u64,
}

/// Lanes that are gathered, of which few are kept at last.
const MAX_LANES: usize = 1 << 16;

/// Labels that are kept: more threads than a host runs in a day.
const MAX_LABELS: usize = 1 << 20;

/// Room that there is at least: a page with less shows nothing.
const MIN_ROOM: LaneRoom = LaneRoom { spans: 1000, bytes: 1 << 20 };

/// What spans are merged below at first, once there are too many.
const FIRST_MERGE_NS: u64 = 64;

impl LaneSet {
    /// No lanes, and some room for their spans.
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

    /// Adds a lane and gives its number. Of too many lanes further ones are left out: what is pushed
    /// to them is dropped.
    pub fn add(&mut self, lane: Lane) -> usize {
        if self.lanes.len() >= MAX_LANES {
            self.left_out += 1;
            return usize::MAX;
        }
        self.lanes.push(lane);
        self.lanes.len() - 1
    }

    /// The lane of that number, to be described further.
    pub fn lane_mut(&mut self, at: usize) -> Option<&mut Lane> {
        self.lanes.get_mut(at)
    }

    /// The number of a label; 0 where there are too many already.
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

    /// Adds a span to a lane. Those of one lane come almost in time order and don't overlap; what
    /// overlaps another one is cut off, what is empty is left out.
    pub fn push(&mut self, at: usize, span: Span) {
        let Some(lane) = self.lanes.get_mut(at) else { return };
        let before = (lane.items.len(), lane.items.bytes());
        if !lane.items.push(span, self.merged_below_ns) {
            return;
        }
        self.spans += 1;
        self.used_room.spans += lane.items.len() - before.0;
        // A lane that packs what it had can take less than before.
        self.used_room.bytes = self.used_room.bytes + lane.items.bytes() - before.1;
        if self.used_room.spans > self.room.spans {
            self.merge_to(LaneRoom { spans: self.room.spans / 2, ..self.room });
        }
        if self.used_room.bytes > self.room.bytes {
            self.merge_to(LaneRoom { bytes: self.room.bytes / 2, ..self.room });
        }
    }

    /// Merges longer spans, until no more than `goal` is taken.
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

    /// The labels by their numbers; the first is empty.
    #[must_use]
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// Gives a label another text, as when only the end of a recording has it.
    fn rename_label(&mut self, number: u32, text: String) {
        if let Some(label) = self.labels.get_mut(number as usize) {
            *label = text;
        }
    }

    /// Takes out the lanes that `keep` does not want.
    fn retain(&mut self, keep: impl Fn(&Lane) -> bool) {
        self.lanes.retain(keep);
        self.count_taken();
    }

    /// Keeps of the lanes from `first` on those in `order`, in that order; `left_out` is what
    /// the others are of.
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

    /// Takes out all lanes of a kind but the `most` of each machine that say most; of those all but the
    /// first `shown` are quiet.
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

    /// Puts lanes in an order to be read: by kind, machine and number, busy threads first.
    fn sort(&mut self) {
        self.lanes.sort_by_cached_key(|lane| {
            let numbered = matches!(lane.kind, LaneKind::Cpu | LaneKind::Vcpu);
            let number = lane.name.rsplit(' ').next().and_then(|digits| digits.parse().ok());
            let place = if numbered { number.unwrap_or(0) } else { u64::MAX - lane.covered_ns() };
            (lane.kind, lane.machine.clone(), lane.vm.clone(), place, lane.name.clone())
        });
    }

    /// Spans that were added, merged or not.
    #[must_use]
    pub fn spans(&self) -> u64 {
        self.spans
    }

    /// Lanes that are not there: too many, or taken out again.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Spans shorter than this may have been merged with neighbours; 0: none.
    #[must_use]
    pub fn merged_below_ns(&self) -> u64 {
        self.merged_below_ns
    }

    /// First and last moment of all lanes.
    #[must_use]
    pub fn range_ns(&self) -> Option<(u64, u64)> {
        let ends = self.lanes.iter().filter_map(Lane::range_ns);
        ends.reduce(|all, range| (all.0.min(range.0), all.1.max(range.1)))
    }
}

#[cfg(test)]
mod tests;
