//! Follows one vCPU from an exit of level 2 to level 2 running again: which exits of level 1 belong
//! to which exit of level 2.

use timeline::{ExitSpan, Handler, Outcome};

/// A kind of exit: the `isa` field and the raw code.
pub(crate) type RawReason = (u8, u64);

/// What an exit is within the way from level 2 back into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An exit of level 2, reflected into level 1 or not.
    Level2 { reflected: bool },
    /// An exit of level 1 that a reflected exit of level 2, begun at `since_ns`, brought about.
    Ancillary {
        level2_reason: RawReason,
        /// See above.
        since_ns: u64,
    },
    /// With that exit level 2 runs again; its own way there was seen whole. Level 1 itself ran for
    /// `level1_ns` of it.
    Back {
        /// The reason of the exit of level 2.
        level2_reason: RawReason,
        /// When that happened.
        since_ns: u64,
        /// See above.
        level1_ns: u64,
    },
    /// After a reflected exit level 2 was not seen to run again.
    Unfinished { level2_reason: RawReason },
    /// An exit of level 1 that belongs to none of level 2.
    Level1,
}

/// A reflected exit of level 2 whose guest has not run again yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    reason: RawReason,
    start_ns: u64,
    level1_ns: u64,
}

/// One vCPU on its way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Follower {
    pending: Option<Pending>,
}

impl Follower {
    /// Takes the vCPU's next exit, and emits what it is.
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
            // The way back into level 2 may lie in the gap.
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

    /// Level 2 is not seen to run again after the pending exit.
    pub fn abandon(&mut self, mut emit: impl FnMut(Step)) {
        if let Some(pending) = self.pending.take() {
            emit(Step::Unfinished { level2_reason: pending.reason });
        }
    }
}
