//! Runs a recording through the vCPU state machines to find its exits.

use std::ops::ControlFlow;

use sources::Recording;

use crate::arch;
use crate::exit_span::Detail;
use crate::extract::{Extractor, OnlyVcpus};
use crate::lanes::{Fed, Follow, Lanes};
use crate::losses::Losses;
use crate::rounds::{self, Consume, Input};
use crate::thread_batch::ThreadBatch;
use crate::thread_event::{KindSet, ThreadEvent};
use crate::vcpu::ExitSink;
use crate::vcpus::{VcpuInfo, Vcpus};

/// The result of a pass over the exits, besides what the sink collected.
#[derive(Debug)]
pub struct ExitPass<S> {
    /// The vCPU threads; an [`ExitSink`] receives their indices.
    pub vcpus: Vec<VcpuInfo>,
    /// Switches of vCPU threads that must have happened but were not recorded, although no event
    /// was lost: time around them may be in the wrong part. Linux 6.18 misses about one in some
    /// hundreds.
    pub switches_unseen: u64,
    /// Event kinds in the recording.
    pub seen: KindSet,
    /// Losses of the recording.
    pub losses: Losses,
    /// Names of buffers whose exits were skipped because another buffer has them, too.
    pub repeated_buffers: Vec<String>,
    /// The sink with its results.
    pub sink: S,
}

impl<S> ExitPass<S> {
    /// Separates the sink from the other results.
    #[must_use]
    pub fn split(self) -> (S, ExitPass<()>) {
        let Self { vcpus, switches_unseen, seen, losses, repeated_buffers, sink } = self;
        (sink, ExitPass { vcpus, switches_unseen, seen, losses, repeated_buffers, sink: () })
    }
}

/// Converts the events of vCPU threads to exits.
#[derive(Debug)]
pub(crate) struct ExitFollower<S> {
    vcpus: Vcpus,
    sink: S,
}

impl<S: ExitSink> ExitFollower<S> {
    pub(crate) fn new(sink: S) -> Self {
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

/// Ends a recording after all its exits.
pub(crate) fn finish<S: ExitSink>(
    lanes: Lanes<ExitFollower<S>>,
    recording: &Recording,
) -> ExitPass<S> {
    let Fed { follower, seen, losses, repeated_buffers } = lanes.finish(recording);
    let ExitFollower { vcpus, mut sink } = follower;
    let (vcpus, switches_unseen) = vcpus.finish_and_count(&mut sink);
    ExitPass { vcpus, switches_unseen, seen, losses, repeated_buffers, sink }
}

/// Passes every exit of `recording` to `sink`. `details` are read if requested; `tick` is called
/// with the number of bytes done.
pub fn each_exit<S: ExitSink + Send>(
    recording: &Recording,
    details: bool,
    sink: S,
    progress: &(dyn Fn(u64) + Sync),
) -> ExitPass<S> {
    let extractor = Extractor::new(recording, details);
    let inputs = Input::all_of(recording);
    let mut lanes = Lanes::new(&inputs, ExitFollower::new(sink), Losses::of_container(recording));
    rounds::run(&inputs, &extractor, &mut lanes, progress);
    finish(lanes, recording)
}

/// The vCPU threads of `recording` that [`each_exit`] finds, in a fraction of its time.
pub fn find_vcpus(recording: &Recording, progress: &(dyn Fn(u64) + Sync)) -> Vec<VcpuInfo> {
    vcpus_of_every(1, recording, progress)
}

/// A guess reads one of this many blocks.
const GUESS_STEP: usize = 16;
/// Minimum blocks for a guess: with fewer, finding all vCPUs is fast enough.
const MIN_GUESSED: usize = 16;

/// The vCPU threads in a sample of `recording` that is spread evenly: most likely, all that
/// [`find_vcpus`] finds. `None` if its streams have no common clock, or if it is too small for a
/// guess.
#[must_use]
pub fn guess_vcpus(recording: &Recording) -> Option<Vec<VcpuInfo>> {
    let inputs = Input::all_of(recording);
    let blocks: usize = inputs.iter().map(|input| input.stream.block_count()).sum();
    let on_clock = Input::on_clock_of(recording).len();
    let is_worth_it = blocks / GUESS_STEP >= MIN_GUESSED && on_clock == inputs.len();
    is_worth_it.then(|| vcpus_of_every(GUESS_STEP, recording, &|_| ()))
}

/// The vCPU threads in the first of each `step` blocks.
fn vcpus_of_every(
    step: usize,
    recording: &Recording,
    progress: &(dyn Fn(u64) + Sync),
) -> Vec<VcpuInfo> {
    let extractor = OnlyVcpus(Extractor::of_vcpus(recording));
    let inputs = Input::all_of(recording);
    let mut lanes = Lanes::new(&inputs, ExitFollower::new(()), Losses::of_container(recording));
    rounds::run_every(step, &inputs, &extractor, &mut lanes, progress);
    finish(lanes, recording).vcpus
}

/// Finds vCPUs as [`find_vcpus`] does while another task reads the same blocks; stops at the first
/// vCPU that was not expected.
#[derive(Debug)]
pub(crate) struct VcpuFinder<'r> {
    recording: &'r Recording,
    lanes: Lanes<ExitFollower<()>>,
    /// Number of expected vCPUs.
    known: usize,
}

impl<'r> VcpuFinder<'r> {
    pub(crate) fn new(recording: &'r Recording, inputs: &[Input<'_>]) -> Self {
        let losses = Losses::of_container(recording);
        let lanes = Lanes::new(inputs, ExitFollower::new(()), losses);
        Self { recording, lanes, known: 0 }
    }

    /// The next batch of an input.
    pub(crate) fn take(&mut self, input: usize, batch: ThreadBatch) {
        self.lanes.take(input, batch);
    }

    /// All events before `horizon_ns` have arrived; breaks off if they have an unexpected vCPU.
    pub(crate) fn advance(
        &mut self,
        horizon_ns: u64,
        is_expected: &dyn Fn(u32) -> bool,
        spent: &mut Vec<ThreadBatch>,
    ) -> ControlFlow<()> {
        let flow = self.lanes.advance(horizon_ns, spent);
        let found = self
            .lanes
            .follower
            .vcpus
            .found_after(self.known)
            .try_fold(0, |found, thread| is_expected(thread).then_some(found + 1));
        let Some(found) = found else { return ControlFlow::Break(()) };
        self.known += found;
        flow
    }

    /// All vCPUs.
    pub(crate) fn finish(self) -> Vec<VcpuInfo> {
        finish(self.lanes, self.recording).vcpus
    }
}

/// Whether `recording` has events with this detail.
#[must_use]
pub fn has_detail(recording: &Recording, detail: Detail) -> bool {
    let is_of =
        |format| arch::detail_for(format).is_some_and(|(event_detail, _)| event_detail == detail);
    recording.formats().iter().any(|(_, format)| is_of(format))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_blocks_show_the_vcpus_that_all_show() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fixtures/x86-svm/nested.dat");
        let recording = sources::open(path.as_ref()).unwrap();
        let threads =
            |found: Vec<VcpuInfo>| found.iter().map(|vcpu| vcpu.thread).collect::<Vec<_>>();
        let bytes_of = |step| {
            let read = std::sync::atomic::AtomicU64::new(0);
            let progress = |bytes| _ = read.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
            let found = threads(vcpus_of_every(step, &recording, &progress));
            (found, read.into_inner())
        };
        let (all, (some, of_some)) = (bytes_of(1), bytes_of(8));
        assert_eq!((&some, all.1), (&all.0, recording.stored_len()));
        assert!(!some.is_empty() && of_some < all.1 / 4, "{of_some} of {}", all.1);
        assert_eq!(guess_vcpus(&recording).map(threads), Some(all.0));
    }
}
