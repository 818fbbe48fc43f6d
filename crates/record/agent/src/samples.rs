//! Samples of this machine's CPUs, and the kernel code around them, sent to the host.
//!
//! The sampler's thread fills a queue; the thread that serves the host empties it. A full queue blocks the sampler, and
//! the kernel counts what it drops meanwhile.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::{Duration, Instant};

use channel::wire::{
    CodePiece, CodeRequest, MAX_CODE_BYTES, MAX_PAYLOAD_BYTES, Message, SampleEvent, SampleFile,
    SamplePart, SampleRequest, SamplesEnd,
};
use os::confine::Unconfined;
use printable::with_causes;
use sampler::{KeptCode, Opened, SampleError, SampleSink, SampledEvent, Sampler, SamplerPlan};

use crate::error::Result;
use crate::link::Host;

/// Size of a part; its head needs some bytes of the message's payload.
const PART_BYTES: usize = MAX_PAYLOAD_BYTES - 64;
/// Max queued parts: a second of 50,000 samples of 150 bytes.
const MAX_PARTS: usize = 256;
/// Max time between two times that the queue is emptied.
pub(crate) const EVERY: Duration = Duration::from_millis(250);
/// Max time for the rest to arrive.
const REST: Duration = Duration::from_secs(10);
/// Max wait for one part of the rest.
const LOOK: Duration = Duration::from_millis(20);

/// Max bytes of kernel code to send, whatever the host requests.
const MAX_REQUESTED_BYTES: u32 = 4 << 20;

enum Part {
    File(SampleFile, Vec<u8>),
    Code(CodePiece),
}

/// Writes samples to the queue.
struct Queue {
    to: SyncSender<Part>,
    code: Option<CodeRequest>,
}

impl Queue {
    /// Queues bytes in parts that fit in messages.
    fn put(&self, file: SampleFile, bytes: &[u8]) -> sampler::Result<()> {
        let mut parts = bytes.chunks(PART_BYTES);
        parts.try_for_each(|part| self.send(Part::File(file, part.to_vec())))
    }

    fn send(&self, part: Part) -> sampler::Result<()> {
        self.to.send(part).map_err(|_| SampleError::NotTaken)
    }
}

impl SampleSink for Queue {
    fn samples(&mut self, records: &[u8]) -> sampler::Result<()> {
        self.put(SampleFile::Samples, records)
    }

    fn clocks(&mut self, entries: &[u8]) -> sampler::Result<()> {
        self.put(SampleFile::Clocks, entries)
    }

    fn most_code_bytes(&self) -> Option<u64> {
        self.code.map(|request| request.bytes.min(MAX_REQUESTED_BYTES).into())
    }

    fn code(&mut self, code: &KeptCode) -> sampler::Result<u64> {
        let max = self.code.map_or(0, |request| request.pieces);
        // Samples are complete without code, so a host that accepts no more code is not an error.
        let _ = pieces(code, max).try_for_each(|piece| self.send(Part::Code(piece)));
        Ok(code.bytes())
    }
}

/// The code in at most `max` pieces, and the end mark.
fn pieces(code: &KeptCode, max: u32) -> impl Iterator<Item = CodePiece> {
    let elf_machine = code.elf_machine();
    let of_run = |(address, run): (u64, &[u8])| {
        let piece = move |(at, bytes): (usize, &[u8])| {
            (address.saturating_add((at * MAX_CODE_BYTES) as u64), bytes.to_vec())
        };
        run.chunks(MAX_CODE_BYTES).enumerate().map(piece).collect::<Vec<_>>()
    };
    let all = code.runs().flat_map(of_run).take(usize::try_from(max).unwrap_or(usize::MAX));
    (0..).zip(all.chain([(0, Vec::new())])).map(move |(before, (address, bytes))| CodePiece {
        before,
        elf_machine,
        address,
        bytes,
    })
}

/// Running sampling, or the reason why it did not start.
#[derive(Debug)]
pub(crate) struct Samples {
    sampler: std::result::Result<Sampler, String>,
    parts: Parts,
}

/// The sampler's queue, and how much of each file was sent.
#[derive(Debug)]
struct Parts {
    queue: Receiver<Part>,
    sample_bytes: u64,
    clock_bytes: u64,
}

impl Parts {
    /// Sends all queued parts.
    fn send(&mut self, host: &mut Host<'_>, session: u64) -> Result<()> {
        while let Ok(part) = self.queue.try_recv() {
            self.send_one(part, host, session)?;
        }
        Ok(())
    }

    fn send_one(&mut self, part: Part, host: &mut Host<'_>, session: u64) -> Result<()> {
        let (file, bytes) = match part {
            Part::File(file, bytes) => (file, bytes),
            Part::Code(piece) => return host.send(session, &Message::Code(piece)),
        };
        let sent = match file {
            SampleFile::Samples => &mut self.sample_bytes,
            SampleFile::Clocks => &mut self.clock_bytes,
        };
        let offset = *sent;
        *sent = sent.saturating_add(bytes.len() as u64);
        host.send(session, &Message::Samples(SamplePart { file, offset, bytes }))
    }

    /// Sends the rest of a sampler that was stopped.
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
    /// Starts sampling with the recording's clock. `starter` opens the events, because it may read all processes and
    /// their mappings. `code`: kernel code is requested as well.
    pub(crate) fn begin(
        (request, code): (SampleRequest, Option<CodeRequest>),
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
        let (to, queue) = mpsc::sync_channel(MAX_PARTS);
        let cpus = cpus.to_vec();
        let outcome = starter.run(move || Opened::open(plan, &cpus)?.begin(Queue { to, code }));
        let sampler = match outcome {
            Ok(sampler) => sampler.map_err(|error| with_causes(&error)),
            Err(error) => Err(error.to_string()),
        };
        Self { sampler, parts: Parts { queue, sample_bytes: 0, clock_bytes: 0 } }
    }

    /// Sends all queued parts.
    pub(crate) fn send(&mut self, host: &mut Host<'_>, session: u64) -> Result<()> {
        self.parts.send(host, session)
    }

    /// Stops sampling, and sends the rest and the totals.
    pub(crate) fn end(self, host: &mut Host<'_>, session: u64) -> Result<()> {
        let Self { sampler, mut parts } = self;
        if let Ok(sampler) = &sampler {
            sampler.stop();
            parts.send_rest(sampler, host, session)?;
        }
        let Parts { queue, sample_bytes, .. } = parts;
        // A sampler that still runs sees that the receiver is gone.
        drop(queue);
        let ended = sampler.and_then(|sampler| sampler.end().map_err(|error| with_causes(&error)));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn code() -> KeptCode {
        let mut code = KeptCode::new(62, raw_bytes::ByteOrder::Little);
        code.push(0x1000, &vec![1; MAX_CODE_BYTES + 3]).unwrap();
        code.push(0xf_0000, &[2; 5]).unwrap();
        code
    }

    #[test]
    fn code_goes_in_pieces_and_an_end() {
        let pieces: Vec<CodePiece> = pieces(&code(), 100).collect();
        let shape = pieces.iter().map(|piece| (piece.before, piece.address, piece.bytes.len()));
        let second = 0x1000 + MAX_CODE_BYTES as u64;
        let expected = [(0, 0x1000, MAX_CODE_BYTES), (1, second, 3), (2, 0xf_0000, 5), (3, 0, 0)];
        assert_eq!(shape.collect::<Vec<_>>(), expected);
        let mut received = KeptCode::new(62, raw_bytes::ByteOrder::Little);
        pieces.iter().for_each(|piece| received.push(piece.address, &piece.bytes).unwrap());
        assert_eq!(received, code());
    }

    #[test]
    fn no_more_pieces_than_are_wanted() {
        for max in 0..4 {
            assert_eq!(pieces(&code(), max).count(), 1 + usize::try_from(max).unwrap().min(3));
        }
    }
}
