//! Runs a recording through the vCPU state machines: the way from a recording to its exits.

use sources::Recording;

use crate::arch;
use crate::exit_span::Detail;
use crate::extract::{Extractor, OnlyVcpus};
use crate::lanes::{Fed, Follow, Lanes};
use crate::losses::Losses;
use crate::rounds::{self, Consume, Decode, Input};
use crate::thread_event::{KindSet, ThreadEvent};
use crate::vcpu::ExitSink;
use crate::vcpus::{VcpuInfo, Vcpus};

/// What a pass over the exits leaves besides what the sink gathered.
#[derive(Debug)]
pub struct ExitPass<S> {
    /// The vCPU threads; an [`ExitSink`] gets the index.
    pub vcpus: Vec<VcpuInfo>,
    /// Switches of their threads that must have happened, and are not in the recording though no event was lost: the time
    /// about each may be in another part. Linux 6.18 does not trace one in some hundreds.
    pub switches_unseen: u64,
    /// Kinds of events the recording has.
    pub seen: KindSet,
    /// What was lost.
    pub losses: Losses,
    /// Names of buffers of which exits were left out because another buffer has them too.
    pub repeated_buffers: Vec<String>,
    /// The sink, filled.
    pub sink: S,
}

impl<S> ExitPass<S> {
    /// The sink, and what else the pass leaves.
    #[must_use]
    pub fn split(self) -> (S, ExitPass<()>) {
        let Self { vcpus, switches_unseen, seen, losses, repeated_buffers, sink } = self;
        (sink, ExitPass { vcpus, switches_unseen, seen, losses, repeated_buffers, sink: () })
    }
}

/// Makes exits of the events of vCPU threads.
#[derive(Debug)]
struct ExitFollower<S> {
    vcpus: Vcpus,
    sink: S,
}

impl<S: ExitSink> ExitFollower<S> {
    fn new(sink: S) -> Self {
        Self { vcpus: Vcpus::default(), sink }
    }
}

impl<S: ExitSink> Follow for ExitFollower<S> {
    fn feed(&mut self, thread: u32, events: &[ThreadEvent]) {
        self.vcpus.feed(thread, events, &mut self.sink);
    }

    fn vcpus(&mut self) -> &mut Vcpus {
        &mut self.vcpus
    }
}

/// The end of a recording whose exits a sink was given.
fn finish<S: ExitSink>(lanes: Lanes<ExitFollower<S>>, recording: &Recording) -> ExitPass<S> {
    let Fed { follower, seen, losses, repeated_buffers } = lanes.finish(recording);
    let ExitFollower { vcpus, mut sink } = follower;
    let (vcpus, switches_unseen) = vcpus.finish_and_count(&mut sink);
    ExitPass { vcpus, switches_unseen, seen, losses, repeated_buffers, sink }
}

/// Gives `sink` every exit of `recording`. `details` are read if asked for; `tick` hears of the
/// bytes done.
pub fn each_exit<S: ExitSink + Send>(
    recording: &Recording,
    details: bool,
    sink: S,
    tick: &(dyn Fn(u64) + Sync),
) -> ExitPass<S> {
    let extractor = Extractor::new(recording, details);
    let inputs = Input::all_of(recording);
    let mut lanes = Lanes::new(&inputs, ExitFollower::new(sink), Losses::of_container(recording));
    rounds::run(&inputs, &extractor, &mut lanes, tick);
    finish(lanes, recording)
}

/// The vCPU threads of `recording` that [`each_exit`] finds, in a fraction of its time.
pub fn find_vcpus(recording: &Recording, tick: &(dyn Fn(u64) + Sync)) -> Vec<VcpuInfo> {
    let extractor = Extractor::of_vcpus(recording);
    let inputs = Input::all_of(recording);
    let mut lanes = Lanes::new(&inputs, ExitFollower::new(()), Losses::of_container(recording));
    rounds::run(&inputs, &OnlyVcpus(&extractor), &mut lanes, tick);
    finish(lanes, recording).vcpus
}

/// [`each_exit`] without details, while another decoder reads the same blocks for `consumer`.
pub fn each_exit_and<S: ExitSink + Send, D: Decode, C: Consume<D::Batch>>(
    recording: &Recording,
    sink: S,
    decoder: &D,
    consumer: &mut C,
    tick: &(dyn Fn(u64) + Sync),
) -> ExitPass<S> {
    let extractor = Extractor::new(recording, false);
    let inputs = Input::all_of(recording);
    let mut lanes = Lanes::new(&inputs, ExitFollower::new(sink), Losses::of_container(recording));
    rounds::run(&inputs, &(&extractor, decoder), &mut (&mut lanes, consumer), tick);
    finish(lanes, recording)
}

/// Whether `recording` has events with this detail of exits.
#[must_use]
pub fn has_detail(recording: &Recording, detail: Detail) -> bool {
    let is_of = |format| arch::detail_for(format).is_some_and(|(of, _)| of == detail);
    recording.formats().iter().any(|(_, format)| is_of(format))
}
