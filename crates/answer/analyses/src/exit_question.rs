//! Analyses that receive every exit of a recording: several of them share one pass.

use sources::Recording;
use timeline::{ExitPass, ExitSink, Vm, each_exit, group_vms};

/// An analysis of every exit.
pub trait ExitQuestion {
    /// Receives the exits.
    type Sink: ExitSink + Send;
    /// The result.
    type Answer;

    /// Whether it needs the details of exits (see [`timeline::Detail`]), which takes a slower pass.
    fn needs_details(&self, recording: &Recording) -> bool;

    /// A new sink for the exits of one recording.
    fn sink(&self) -> Self::Sink;

    /// The result, after all exits were received; `found` has the VMs, their vCPUs and the losses.
    fn answer(&self, found: &FoundExits<'_>, sink: Self::Sink) -> Self::Answer;
}

/// A recording after its exits were read.
#[derive(Debug)]
pub struct FoundExits<'r> {
    pub recording: &'r Recording,
    pub vms: Vec<Vm>,
    /// The remaining results of the pass.
    pub pass: ExitPass<()>,
}

/// Answers `question` for `recording`; `progress` receives the number of bytes read.
pub fn ask<Q: ExitQuestion>(
    recording: &Recording,
    question: &Q,
    progress: &(dyn Fn(u64) + Sync),
) -> Q::Answer {
    let details = question.needs_details(recording);
    let (sink, pass) = each_exit(recording, details, question.sink(), progress).split();
    let vms = group_vms(recording, &pass.vcpus);
    question.answer(&FoundExits { recording, vms, pass }, sink)
}

impl<A: ExitQuestion, B: ExitQuestion> ExitQuestion for (A, B) {
    type Sink = (A::Sink, B::Sink);
    type Answer = (A::Answer, B::Answer);

    fn needs_details(&self, recording: &Recording) -> bool {
        self.0.needs_details(recording) || self.1.needs_details(recording)
    }

    fn sink(&self) -> Self::Sink {
        (self.0.sink(), self.1.sink())
    }

    fn answer(&self, found: &FoundExits<'_>, sink: Self::Sink) -> Self::Answer {
        (self.0.answer(found, sink.0), self.1.answer(found, sink.1))
    }
}

impl<Q: ExitQuestion> ExitQuestion for Option<Q> {
    type Sink = Option<Q::Sink>;
    type Answer = Option<Q::Answer>;

    fn needs_details(&self, recording: &Recording) -> bool {
        self.as_ref().is_some_and(|question| question.needs_details(recording))
    }

    fn sink(&self) -> Self::Sink {
        self.as_ref().map(ExitQuestion::sink)
    }

    fn answer(&self, found: &FoundExits<'_>, sink: Self::Sink) -> Self::Answer {
        self.as_ref().zip(sink).map(|(question, sink)| question.answer(found, sink))
    }
}
