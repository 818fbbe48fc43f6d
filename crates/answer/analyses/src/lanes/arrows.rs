//! Arrows between lanes: from the waker to the woken thread, and from the source of an interrupt to the vCPU.
//!
//! A recording of hours has more arrows than a page can hold: beyond the limit, the shortest ones are dropped and
//! counted.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{LaneKind, LaneSet, Subject};
use crate::align::GuestAlignment;
use crate::path::{Actor, Handover, HandoverKind, HandoverSink, Place};
use crate::states::States;
use crate::vms::VmsByVcpu;

/// Min arrows that always fit.
const MIN_ARROWS: usize = 64;

/// An arrow between two lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrow {
    pub kind: HandoverKind,
    /// Number of the lane at its start.
    pub from_lane: u32,
    /// Start time.
    pub from_ns: u64,
    /// Number of the lane at its end.
    pub to_lane: u32,
    /// End time.
    pub to_ns: u64,
}

/// Lanes by place of an event.
#[derive(Clone, Debug, Default)]
pub struct LanePlaces {
    /// Lanes by recording and thread.
    threads: FxHashMap<(u16, u32), u32>,
    /// Lanes by recording and CPU; a guest's CPU maps to its vCPU's lane.
    cpus: FxHashMap<(u16, u16), u32>,
}

impl LanePlaces {
    pub(super) fn new(set: &LaneSet, states: &States, guests: &[GuestAlignment]) -> Self {
        let mut places = Self::default();
        let homes: Vec<_> = states.vms.iter().map(|vms| VmsByVcpu::new(vms)).collect();
        for (at, lane) in (0u32..).zip(set.lanes()) {
            match lane.subject {
                Some(Subject::Cpu(cpu)) => {
                    places.cpus.insert((cpu.recording, cpu.cpu), at);
                }
                Some(Subject::Thread(recording, thread) | Subject::Task(recording, thread)) => {
                    places.threads.insert((recording, thread), at);
                }
                Some(Subject::Vcpu(vcpu)) => {
                    let home = homes.get(usize::from(vcpu.recording));
                    if let Some((_, found)) = home.and_then(|all| all.find(vcpu.index as usize)) {
                        // A thread that ran several vCPUs has the lane of the first one.
                        places.threads.entry((vcpu.recording, found.thread)).or_insert(at);
                    }
                }
                None => (),
            }
        }
        guests.iter().for_each(|guest| places.add_guest(set, guest));
        places
    }

    fn add_guest(&mut self, set: &LaneSet, guest: &GuestAlignment) {
        let Ok(recording) = u16::try_from(guest.guest) else { return };
        let vcpus = vcpu_lanes(set, &guest.vm);
        for row in guest.result().into_iter().flat_map(|result| &result.rows) {
            let Ok(cpu) = u16::try_from(row.guest_cpu) else { continue };
            if let Some(&at) = vcpus.get(format!("vCPU {}", row.vcpu).as_str()) {
                self.cpus.insert((recording, cpu), at);
            }
        }
    }

    /// The lane of an event: of its thread, or of its CPU for an interrupt; `None` if no lane shows it.
    #[must_use]
    pub fn lane(&self, place: Place, on: Actor) -> Option<u32> {
        let cpu = || self.cpus.get(&(place.recording, place.cpu)).copied();
        let thread = || self.threads.get(&(place.recording, place.thread)).copied();
        match on {
            Actor::Interrupt => cpu(),
            // An interrupt of an idle guest is shown in the lane of its CPU.
            Actor::Guest if place.thread == 0 => cpu(),
            _ => thread(),
        }
    }

    /// The lane of a thread, by recording and id.
    #[must_use]
    pub fn of_thread(&self, thread: (u16, u32)) -> Option<u32> {
        self.threads.get(&thread).copied()
    }
}

/// The first lane with each name among a VM's vCPUs.
fn vcpu_lanes<'s>(set: &'s LaneSet, vm: &str) -> FxHashMap<&'s str, u32> {
    let mut by_name = FxHashMap::default();
    for (at, lane) in (0u32..).zip(set.lanes()) {
        if lane.kind == LaneKind::Vcpu && lane.vm.as_deref() == Some(vm) {
            by_name.entry(lane.name.as_str()).or_insert(at);
        }
    }
    by_name
}

/// Arrows between a page's lanes.
#[derive(Clone, Debug, Default)]
pub struct Arrows {
    /// Ordered by end time.
    pub list: Vec<Arrow>,
    /// Shorter arrows may be missing; 0: none are.
    pub left_out_below_ns: u64,
    /// Number of dropped arrows, which were the shortest.
    pub left_out: u64,
    /// Number of arrows with an end outside of all lanes or of a lane's spans.
    pub without_lane: u64,
    /// Lanes by place.
    pub places: LanePlaces,
}

/// Stores hand-overs up to a limit.
#[derive(Debug)]
pub(crate) struct ArrowSink {
    all: Vec<Handover>,
    most: usize,
    below_ns: u64,
    left_out: u64,
}

impl ArrowSink {
    /// `bytes` is the max memory.
    pub(crate) fn new(bytes: usize) -> Self {
        let max = (bytes / size_of::<Handover>()).max(MIN_ARROWS);
        Self { all: Vec::new(), most: max, below_ns: 0, left_out: 0 }
    }

    /// Drops the shorter half.
    fn thin_out(&mut self) {
        let took_ns = |handover: &Handover| handover.to_ns - handover.from_ns;
        let mut times: Vec<u64> = self.all.iter().map(took_ns).collect();
        let middle = times.len() / 2;
        let (_, &mut median, _) = times.select_nth_unstable(middle);
        self.below_ns = median.max(self.below_ns) + 1;
        let before = self.all.len();
        self.all.retain(|handover| took_ns(handover) >= self.below_ns);
        self.left_out += (before - self.all.len()) as u64;
    }

    pub(crate) fn answer(self, set: &LaneSet, places: LanePlaces) -> Arrows {
        let arrow = |handover: &Handover| {
            let on = if handover.in_interrupt { Actor::Interrupt } else { Actor::Host };
            Some(Arrow {
                kind: handover.kind,
                from_lane: places.lane(handover.from, on)?,
                from_ns: handover.from_ns,
                to_lane: places.lane(handover.to, Actor::Host)?,
                to_ns: handover.to_ns,
            })
        };
        let list: Vec<Arrow> = self.all.iter().filter_map(arrow).collect();
        let is_shown = shown_in(set, &list);
        let shown = list.into_iter().zip(is_shown).filter(|(_, is_shown)| *is_shown);
        let mut list: Vec<Arrow> = shown.map(|(arrow, _)| arrow).collect();
        list.sort_by_key(|arrow| arrow.to_ns);
        Arrows {
            left_out_below_ns: self.below_ns,
            left_out: self.left_out,
            without_lane: (self.all.len() - list.len()) as u64,
            list,
            places,
        }
    }
}

impl HandoverSink for ArrowSink {
    fn handover(&mut self, handover: &Handover) {
        if self.all.len() >= self.most {
            self.thin_out();
        }
        if handover.to_ns.saturating_sub(handover.from_ns) < self.below_ns {
            self.left_out += 1;
        } else {
            self.all.push(*handover);
        }
    }
}

/// For each arrow: whether both ends are within spans of their lanes. Interrupts can also hit an idle CPU between
/// two spans.
fn shown_in(set: &LaneSet, list: &[Arrow]) -> Vec<bool> {
    let mut ends: Vec<(u32, u64, usize)> = list
        .iter()
        .enumerate()
        .flat_map(|(at, arrow)| {
            [(arrow.from_lane, arrow.from_ns, at), (arrow.to_lane, arrow.to_ns, at)]
        })
        .collect();
    ends.par_sort_unstable();
    let lanes: Vec<&[(u32, u64, usize)]> = ends.chunk_by(|end, other| end.0 == other.0).collect();
    let outside: Vec<usize> =
        lanes.into_par_iter().flat_map_iter(|lane_ends| outside(set, lane_ends)).collect();
    let mut shown = vec![true; list.len()];
    for at in outside {
        if let Some(shown) = shown.get_mut(at) {
            *shown = false;
        }
    }
    shown
}

/// Arrows of one lane, in the order of time, whose end the lane does not show.
fn outside(set: &LaneSet, ends: &[(u32, u64, usize)]) -> Vec<usize> {
    let Some(lane) = ends.first().and_then(|end| set.lanes().get(end.0 as usize)) else {
        return Vec::new();
    };
    let mut items = lane.items().peekable();
    let begins_ns = items.peek().map_or(u64::MAX, |item| item.from_ns);
    let is_outside = |&&(_, ns, _): &&(u32, u64, usize)| {
        while items.next_if(|item| item.to_ns() < ns).is_some() {}
        let is_cpu = lane.kind == LaneKind::Cpu && begins_ns <= ns;
        !items.peek().is_some_and(|item| is_cpu || item.from_ns <= ns)
    };
    ends.iter().filter(is_outside).map(|end| end.2).collect()
}
