//! The task that passes a sink its wanted events.

use std::fmt;

use sources::Recording;

use super::Reading;
use super::task::{AnyConsumer, AnyDecoder, BlockTask, Task};
use crate::trace_events::{
    Decoder, Merger, TraceEventPass, TraceEventSink, WantsTraceEvents, nothing_yet,
};

/// Passes a sink its wanted events: see [`Reading::trace_events`].
pub struct TraceEventTask<'t, S>(BlockTask<Decoder<'t>, Merger<'t, S>>);

impl<S> fmt::Debug for TraceEventTask<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceEventTask").finish_non_exhaustive()
    }
}

impl<'t, S: WantsTraceEvents> TraceEventTask<'t, S> {
    pub(super) fn new(reading: &'t Reading<'_>, sink: &'t mut S) -> Self {
        let Reading { recordings, inputs, owners } = reading;
        let decoder = Decoder::new(recordings, owners, sink);
        let consumer = Merger::new(inputs, owners, nothing_yet(recordings), sink);
        Self(BlockTask { decoder, consumer })
    }

    /// The result of the reading, besides what the sink received.
    #[must_use]
    pub fn finish(self) -> TraceEventPass {
        let Self(BlockTask { decoder, consumer }) = self;
        TraceEventPass { event_ids: decoder.seen(), ..consumer.finish() }
    }
}

impl<S: TraceEventSink> Task for TraceEventTask<'_, S> {
    fn split(&mut self) -> (&dyn AnyDecoder, Box<dyn AnyConsumer + '_>) {
        self.0.split()
    }
}

/// Passes `sink` its wanted events of `recordings` in time order; `progress` receives the number of
/// bytes read.
///
/// If several buffers of a recording have an event, a thread's events come from the buffer in which
/// the event first appears. Streams on another clock than their recording's are skipped.
pub fn each_trace_event<S: WantsTraceEvents>(
    recordings: &[Recording],
    sink: &mut S,
    progress: &(dyn Fn(u64) + Sync),
) -> TraceEventPass {
    let reading = Reading::on_one_clock(recordings);
    let mut events = reading.trace_events(sink);
    reading.run(&mut [&mut events], progress);
    events.finish()
}
