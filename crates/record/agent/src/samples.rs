//! Samples of what this machine's CPUs run, on their way to the host.
//!
//! The sampler's thread fills a queue, the one that serves the host empties it. A full queue holds the sampler
//! up: the kernel counts what its rings have no room for meanwhile.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::{Duration, Instant};

use confine::Unconfined;
use printable::with_causes;
use sampler::{Opened, SampleError, SampleSink, SampledEvent, Sampler, SamplerPlan};
use wire::{
    MAX_PAYLOAD_BYTES, Message, SampleEvent, SampleFile, SamplePart, SampleRequest, SamplesEnd,
};

use crate::error::Result;
use crate::link::Host;

/// Bytes of a part, and a bit: its head is part of a message's payload.
const PART_BYTES: usize = MAX_PAYLOAD_BYTES - 64;
/// Parts that wait: what comes in a second of 50,000 samples of 150 bytes.
const MOST_PARTS: usize = 256;
/// How often the queue is emptied at least.
pub(crate) const EVERY: Duration = Duration::from_millis(250);
/// How long the rest may take to come.
const REST: Duration = Duration::from_secs(10);
/// The longest wait for one part of the rest.
const LOOK: Duration = Duration::from_millis(20);

type Part = (SampleFile, Vec<u8>);

/// Puts samples into the queue.
struct Queue(SyncSender<Part>);

impl Queue {
    /// Puts bytes there in parts: messages have a longest payload.
    fn put(&self, file: SampleFile, bytes: &[u8]) -> sampler::Result<()> {
        let mut parts = bytes.chunks(PART_BYTES);
        parts.try_for_each(|part| {
            self.0.send((file, part.to_vec())).map_err(|_| SampleError::NotTaken)
        })
    }
}

impl SampleSink for Queue {
    fn samples(&mut self, records: &[u8]) -> sampler::Result<()> {
        self.put(SampleFile::Samples, records)
    }

    fn clocks(&mut self, entries: &[u8]) -> sampler::Result<()> {
        self.put(SampleFile::Clocks, entries)
    }
}

/// Sampling that goes on, or why it could not begin.
#[derive(Debug)]
pub(crate) struct Samples {
    sampler: std::result::Result<Sampler, String>,
    parts: Parts,
}

/// What the sampler has filled, and how much of each file was sent.
#[derive(Debug)]
struct Parts {
    queue: Receiver<Part>,
    sample_bytes: u64,
    clock_bytes: u64,
}

impl Parts {
    /// Sends those that wait.
    fn send(&mut self, host: &mut Host<'_>, session: u64) -> Result<()> {
        while let Ok(part) = self.queue.try_recv() {
            self.send_one(part, host, session)?;
        }
        Ok(())
    }

    fn send_one(&mut self, (file, bytes): Part, host: &mut Host<'_>, session: u64) -> Result<()> {
        let sent = match file {
            SampleFile::Samples => &mut self.sample_bytes,
            SampleFile::Clocks => &mut self.clock_bytes,
        };
        let offset = *sent;
        *sent = sent.saturating_add(bytes.len() as u64);
        host.send(session, &Message::Samples(SamplePart { file, offset, bytes }))
    }

    /// Sends the rest of a sampler that was asked to stop.
    fn send_rest(&mut self, sampler: &Sampler, host: &mut Host<'_>, session: u64) -> Result<()> {
        let until = Instant::now() + REST;
        while !sampler.is_finished() && Instant::now() < until {
            if let Ok(part) = self.queue.recv_timeout(LOOK) {
                self.send_one(part, host, session)?;
            }
        }
        self.send(host, session)
    }
}

impl Samples {
    /// Begins to sample, with the recording's clock. `starter` begins it: it may look into all processes, and see what
    /// they have mapped.
    pub(crate) fn begin(
        request: SampleRequest,
        clock: &str,
        trace_id: u64,
        cpus: &[u32],
        starter: &Unconfined,
    ) -> Self {
        let event = match request.event {
            SampleEvent::Best => None,
            SampleEvent::Cycles => Some(SampledEvent::Cycles),
            SampleEvent::CpuClock => Some(SampledEvent::CpuClock),
        };
        let clock = clock.to_owned();
        let plan = SamplerPlan { hz: request.hz, event, clock, trace_id, only: None };
        let (to, queue) = mpsc::sync_channel(MOST_PARTS);
        let cpus = cpus.to_vec();
        let begun = starter.run(move || Opened::open(plan, &cpus)?.begin(Queue(to)));
        let sampler = match begun {
            Ok(begun) => begun.map_err(|error| with_causes(&error)),
            Err(error) => Err(error.to_string()),
        };
        Self { sampler, parts: Parts { queue, sample_bytes: 0, clock_bytes: 0 } }
    }

    /// Sends what waits.
    pub(crate) fn send(&mut self, host: &mut Host<'_>, session: u64) -> Result<()> {
        self.parts.send(host, session)
    }

    /// Ends it, and sends the rest and how it went.
    pub(crate) fn end(self, host: &mut Host<'_>, session: u64) -> Result<()> {
        let Self { sampler, mut parts } = self;
        if let Ok(sampler) = &sampler {
            sampler.stop();
            parts.send_rest(sampler, host, session)?;
        }
        let Parts { queue, sample_bytes, .. } = parts;
        // A thread that is not done finds that nobody takes more.
        drop(queue);
        let ended = sampler.and_then(|one| one.end().map_err(|error| with_causes(&error)));
        let end = match ended {
            Ok(sampled) => SamplesEnd {
                event: sampled.event.name().to_owned(),
                samples: sampled.samples,
                lost: sampled.lost,
                throttled: sampled.throttled,
                sample_bytes,
                fault: None,
            },
            Err(why) => SamplesEnd { sample_bytes, fault: Some(why), ..SamplesEnd::default() },
        };
        host.send(session, &Message::SamplesEnd(end))
    }
}
