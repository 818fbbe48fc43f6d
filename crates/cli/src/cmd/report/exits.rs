//! The exits of a page: one pass over each recording on its own clock, and one more over guests on their hosts'
//! clock.

use analyses::advice::{EvidenceOf, ExitEvidence};
use analyses::each_exit::{EachExitOf, ExitList, ListRoom};
use analyses::exit_question::ask;
use analyses::exits::{Exits, ExitsBy};
use analyses::group::By;
use analyses::latencies::{Latencies, LatenciesOf};
use analyses::nested::OfLevelTwo;
use report::{ExitsReport, NestedReport, Source};
use session::{Session, View};
use sources::Recording;

/// The results of one pass over each recording's exits.
pub(super) struct AllExits {
    pub(super) exits: ExitsReport,
    /// `None` without exits of nested guests.
    pub(super) nested: Option<NestedReport>,
    /// Exits over time, without those of aligned guests, which are on the host's clock.
    pub(super) over_time_of: ExitsOverTime,
    /// By recording, the evidence for advice.
    pub(super) evidence: Vec<ExitEvidence>,
}

/// Exits over time, and their durations.
pub(super) struct ExitsOverTime {
    pub(super) latencies: Latencies,
    pub(super) each_exit: Vec<ExitList>,
    room: ListRoom,
}

impl ExitsOverTime {
    fn question(&self, at: usize) -> (LatenciesOf, EachExitOf) {
        let number = u32::try_from(at).unwrap_or(u32::MAX);
        (LatenciesOf(number), EachExitOf(number, self.room))
    }

    fn add(&mut self, (latencies, list): (Latencies, ExitList)) {
        self.latencies.merge(latencies);
        self.room = self.room.next_to(&list);
        self.each_exit.push(list);
    }

    /// Adds the exits of aligned guests, on their hosts' clock.
    pub(super) fn add_guests(&mut self, view: View<'_>, progress: &(dyn Fn(u64) + Sync)) {
        for at in view.guests.iter().map(|guest| guest.guest) {
            if let Some(recording) = view.recordings.get(at) {
                self.add(ask(recording, &self.question(at), progress));
            }
        }
    }
}

impl AllExits {
    /// Reads each recording on its own clock.
    pub(super) fn read(
        session: &mut Session,
        room: ListRoom,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Self {
        session.on_own_clocks();
        let (mut sources, mut nested, mut evidence) = (Vec::new(), Vec::new(), Vec::new());
        let (latencies, each_exit) = (Latencies::default(), Vec::new());
        let mut over_time_of = ExitsOverTime { latencies, each_exit, room };
        for (at, recording) in session.recordings().iter().enumerate() {
            let is_aligned = session.view().alignment(at).is_some();
            let over_time = (!is_aligned).then(|| over_time_of.question(at));
            let question = (((ExitsBy(&By::DEFAULT), OfLevelTwo), EvidenceOf), over_time);
            let (((exits, of_level_two), seen), over_time) = ask(recording, &question, progress);
            evidence.push(seen);
            let source = source(session, at, recording, exits);
            nested.push((source.path.clone(), of_level_two));
            sources.push(source);
            over_time.into_iter().for_each(|exits| over_time_of.add(exits));
        }
        let has_nested = nested.iter().any(|(_, nested)| !nested.rows.is_empty());
        Self {
            exits: ExitsReport { sources, top: None, sorted_by: None },
            nested: has_nested.then_some(NestedReport { sources: nested }),
            over_time_of,
            evidence,
        }
    }
}

fn source(session: &Session, at: usize, recording: &Recording, exits: Exits) -> Source {
    let reported = session.reported().get(at).cloned().unwrap_or_default();
    Source {
        path: recording.path().display().to_string(),
        exits,
        of_guest: session.is_of_guest(recording),
        recorder_cost: reported.cost,
        processes: reported.processes,
    }
}
