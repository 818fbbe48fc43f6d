//! Assigns exits of level 1 to the exits of level 2 that caused them: follows one vCPU from a level-2 exit until
//! level 2 runs again.

use timeline::{ExitSpan, Handler, Outcome};

/// A kind of exit: the `isa` field and the raw code.
pub(crate) type RawReason = (u8, u64);

/// Classification of an exit on the way from level 2 back to level 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An exit of level 2, reflected into level 1 or not.
    Level2 { reflected: bool },
    /// An exit of level 1, caused by the reflected level-2 exit that started at `since_ns`.
    Ancillary {
        level2_reason: RawReason,
        /// Start of the level-2 exit.
        since_ns: u64,
    },
    /// Level 2 runs again after this exit, and no event was lost since the level-2 exit. Level 1 ran for
    /// `level1_ns` in between.
    Back {
        /// Reason of the level-2 exit.
        level2_reason: RawReason,
        /// Start of the level-2 exit.
        since_ns: u64,
        /// Time in level 1.
        level1_ns: u64,
    },
    /// Level 2 did not run again after a reflected exit.
    Unfinished { level2_reason: RawReason },
    /// An exit of level 1 without a cause in level 2.
    Level1,
}

/// A reflected level-2 exit before level 2 runs again.
#[derive(Clone, Copy, Debug)]
struct Pending {
    reason: RawReason,
    start_ns: u64,
    level1_ns: u64,
}

/// Follows one vCPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Follower {
    pending: Option<Pending>,
}

impl Follower {
    /// Classifies the vCPU's next exit.
    pub fn exit(&mut self, span: &ExitSpan, mut emit: impl FnMut(Step)) {
        if span.level == 2 {
            self.abandon(&mut emit);
            let reflected = span.handler == Handler::L1;
            emit(Step::Level2 { reflected });
            let reason = (span.isa, span.code);
            self.pending =
                reflected.then_some(Pending { reason, start_ns: span.start_ns, level1_ns: 0 });
        } else {
            self.level1_exit(span, &mut emit);
        }
        if span.outcome == Outcome::LostIn {
            // Level 2 may have run again during the loss.
            self.abandon(emit);
        }
    }

    fn level1_exit(&mut self, span: &ExitSpan, emit: &mut impl FnMut(Step)) {
        let Some(pending) = &mut self.pending else { return emit(Step::Level1) };
        pending.level1_ns = pending.level1_ns.saturating_add(span.guest_ns);
        let Pending { reason: level2_reason, start_ns: since_ns, level1_ns } = *pending;
        emit(Step::Ancillary { level2_reason, since_ns });
        if span.entered_l2 {
            if span.outcome == Outcome::Paired {
                emit(Step::Back { level2_reason, since_ns, level1_ns });
            }
            self.pending = None;
        }
    }

    /// Gives up the pending exit: level 2 does not run again.
    pub fn abandon(&mut self, mut emit: impl FnMut(Step)) {
        if let Some(pending) = self.pending.take() {
            emit(Step::Unfinished { level2_reason: pending.reason });
        }
    }
}
