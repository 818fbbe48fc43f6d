//! The longest times that a vCPU was away while it had work.

use shmring::spans::{Activity, Span};

use crate::exits::{ExitKey, Exits};

/// Max absences per interval.
pub(crate) const MOST: usize = 5;

/// From one entry to the guest to the next: an exit, with everything that happened meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Absence {
    /// The vCPU.
    pub vcpu: u32,
    /// Its begin, on the guest's TSC.
    pub start_tsc: u64,
    pub end_tsc: u64,
    /// Activities of the vCPU's thread.
    pub parts: Exits,
    /// The exit: level, `isa` and code.
    pub exit: Option<ExitKey>,
}

impl Absence {
    fn begin(vcpu: u32, span: &Span) -> Self {
        let exit = span.code.map(|code| (span.level, span.isa, code));
        let (start_tsc, end_tsc) = (span.start_tsc, span.start_tsc);
        Self { vcpu, start_tsc, end_tsc, parts: Exits::default(), exit }
    }

    fn add(&mut self, span: &Span) {
        self.end_tsc = span.end_tsc();
        self.exit = self.exit.or(span.code.map(|code| (span.level, span.isa, code)));
        let at = Activity::ALL.iter().position(|activity| *activity == span.activity);
        if let Some(ticks) = at.and_then(|at| self.parts.ticks.get_mut(at)) {
            *ticks = ticks.saturating_add(span.ticks);
        }
    }

    /// Ticks that the guest may have missed: without sleep, which the guest requested, and without unknown time, which
    /// may have been guest time.
    #[must_use]
    pub fn missed(&self) -> u64 {
        let idle = self
            .parts
            .ticks_of(Activity::Asleep)
            .saturating_add(self.parts.ticks_of(Activity::Unknown));
        self.parts.total().saturating_sub(idle)
    }
}

/// Tracks a vCPU's absences.
#[derive(Debug, Default)]
pub(crate) struct Absences {
    open: Option<Absence>,
}

impl Absences {
    /// Adds the next span; an absence that ended before it goes to `longest`.
    pub(crate) fn take(&mut self, vcpu: u32, span: &Span, longest: &mut Vec<Absence>) {
        // The host's work may begin before the exit is published.
        let is_its = |open: &Absence| !span.begins_exit || open.exit.is_none();
        let goes_on = |open: &Absence| open.end_tsc == span.start_tsc && is_its(open);
        if !self.open.as_ref().is_some_and(goes_on) {
            self.close(longest);
        }
        self.open.get_or_insert_with(|| Absence::begin(vcpu, span)).add(span);
    }

    /// Ends an absence before `known_to`: the vCPU has run since.
    pub(crate) fn until(&mut self, known_to: u64, longest: &mut Vec<Absence>) {
        if self.open.as_ref().is_some_and(|open| open.end_tsc < known_to) {
            self.close(longest);
        }
    }

    fn close(&mut self, longest: &mut Vec<Absence>) {
        let Some(absence) = self.open.take() else { return };
        longest.push(absence);
        if longest.len() > 4 * MOST {
            keep_longest(longest);
        }
    }
}

/// Keeps only the longest few, sorted.
pub(crate) fn keep_longest(longest: &mut Vec<Absence>) {
    longest.sort_by_key(|absence| (std::cmp::Reverse(absence.missed()), absence.start_tsc));
    longest.truncate(MOST);
}
