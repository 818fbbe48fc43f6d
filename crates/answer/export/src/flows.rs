//! Arrows between tracks: wake-ups, injections, steps of requests, and causes of waits.

use analyses::critical::{CriticalStep, CriticalWait};
use analyses::path::{Actor, FlowEnd, FlowSink, Handover, HandoverKind, Place};

use crate::walk::Walk;
use crate::{Scene, TimelineWriter};

/// An arrow through two or more tracks.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    /// Its unique number.
    pub id: u64,
    /// Its kind: `wakes`, `injects`, `request` or `critical`.
    pub name: &'static str,
    /// Tracks and times, at least two, in order of time.
    pub ends: &'a [(usize, u64)],
}

/// The track of a thread; `None` for an interrupt, which belongs to no thread.
fn track(scene: &Scene, place: Place, on: Actor) -> Option<usize> {
    let is_thread = on != Actor::Interrupt && place.thread != 0;
    is_thread.then(|| scene.of_thread(place.recording.into(), place.thread)).flatten()
}

/// Writes an arrow from each thread that was waited for to the next one, and on to the waiting thread; threads without
/// a track are skipped.
pub(crate) fn write_wait<W: TimelineWriter>(walk: &mut Walk<'_, W>, wait: &CriticalWait) {
    let scene = walk.scene;
    let track = |(recording, thread): (u16, u32)| scene.of_thread(recording.into(), thread);
    let step = |step: &CriticalStep| Some((track(step.of_thread?)?, step.from_ns));
    let last = track(wait.of_thread).map(|track| (track, wait.to_ns));
    let mut ends: Vec<(usize, u64)> = wait.steps.iter().filter_map(step).chain(last).collect();
    ends.dedup_by_key(|(track, _)| *track);
    ends.retain(|end| walk.is_there(*end));
    if ends.len() > 1 {
        walk.flow("critical", &ends);
    }
}

impl<W: TimelineWriter> FlowSink for Walk<'_, W> {
    fn handover(&mut self, handover: &Handover) {
        let by = if handover.in_interrupt { Actor::Interrupt } else { Actor::Host };
        let from = track(self.scene, handover.from, by);
        let to = track(self.scene, handover.to, Actor::Host);
        let name = match handover.kind {
            HandoverKind::Wake => "wakes",
            HandoverKind::Inject => "injects",
        };
        if let (Some(from), Some(to)) = (from, to) {
            self.flow(name, &[(from, handover.from_ns), (to, handover.to_ns)]);
        }
    }

    fn request(&mut self, steps: &[FlowEnd]) {
        let scene = self.scene;
        let end = |step: &FlowEnd| Some((track(scene, step.place, step.on)?, step.ts_ns));
        let ends: Vec<(usize, u64)> = steps.iter().filter_map(end).collect();
        if ends.len() > 1 {
            self.flow("request", &ends);
        }
    }
}
