//! What is asked of every exit of a recording: several questions share one reading.

use sources::Recording;
use timeline::{ExitPass, ExitSink, Vm, each_exit, group_vms};

/// Something asked of every exit.
pub trait ExitQuestion {
    /// Takes the exits.
    type Sink: ExitSink + Send;
    /// What comes of it.
    type Answer;

    /// Whether it needs to know what exits were about (see [`timeline::Detail`]), which takes more reading.
    fn needs_details(&self, recording: &Recording) -> bool;

    /// What takes the exits of a recording.
    fn sink(&self) -> Self::Sink;

    /// The answer, once all exits were taken; `pass` has the VMs' vCPUs and what was lost.
    fn answer(&self, found: &FoundExits<'_>, sink: Self::Sink) -> Self::Answer;
}

/// A recording whose exits were read.
#[derive(Debug)]
pub struct FoundExits<'r> {
    pub recording: &'r Recording,
    /// Its VMs.
    pub vms: Vec<Vm>,
    /// What else was found on the way.
    pub pass: ExitPass<()>,
}

/// Answers a question of every exit of `recording`; `tick` receives the number of bytes read.
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
