//! Exits in a time range by raw code, before reasons have names.

use std::collections::BTreeMap;

use timeline::reasons::{Code, ReasonNames};
use timeline::{ExitSpan, Outcome, Parts};

use super::sums::Add;
use super::{HostCost, ReasonCost};
use crate::known_parts::KnownParts;
use crate::recorded::RecordedParts;

/// Sums by raw code.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    exits: u64,
    paired: u64,
    parts: Parts,
    user_return_unseen: u64,
    poll_unknown: u64,
    /// By instruction set and code: number of exits and their time.
    codes: BTreeMap<(u8, u64), (u64, u64)>,
}

impl Tally {
    /// Adds an exit with this code.
    pub(super) fn exit(&mut self, span: &ExitSpan, code: (u8, u64)) {
        let code = self.codes.entry(code).or_default();
        (self.exits, code.0) = (self.exits + 1, code.0 + 1);
        if span.outcome == Outcome::Paired {
            self.paired += 1;
            self.parts.add(&span.parts);
            self.user_return_unseen += u64::from(span.user_return_unseen);
            self.poll_unknown += u64::from(span.poll_unknown);
            code.1 = code.1.saturating_add(span.duration_ns());
        }
    }

    pub(super) fn named(&self, names: &mut ReasonNames, recorded: &RecordedParts) -> HostCost {
        let mut waiting_ns = 0_u64;
        let mut reasons = Vec::new();
        for ((isa, code), (exits, time_ns)) in &self.codes {
            let (exits, time_ns) = (*exits, *time_ns);
            let waiting = names.isa(*isa).waits(*code);
            if waiting {
                waiting_ns = waiting_ns.saturating_add(time_ns);
            }
            let (reason, code) = (names.name(*isa, *code), Code::new(names.isa(*isa), *code));
            reasons.push(ReasonCost { reason, code, exits, time_ns, waiting });
        }
        reasons.sort_by_key(|reason| std::cmp::Reverse((reason.time_ns, reason.exits)));
        let tally = crate::tally::Tally {
            parts: self.parts,
            user_return_unseen: self.user_return_unseen,
            poll_unknown: self.poll_unknown,
            ..crate::tally::Tally::default()
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

impl Add for Tally {
    fn add(&mut self, other: &Self) {
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
}
