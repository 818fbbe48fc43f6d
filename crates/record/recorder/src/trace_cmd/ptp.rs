//! The client's side of a `ptp` round: the agent measures, the host makes marks.

use std::io;

use channel::TraceCmd;
use channel::wire::trace_cmd::Message;
use channel::wire::trace_cmd::ptp::{self, Offset, Sample, Start};
use os::waits::Wait;
use sys::{ClockId, clock_ns};
use tracefs::{Mark, Marks};

use super::time_sync::receive;

/// Answers one round; returns the agent's result.
pub(super) fn round(agent: &mut TraceCmd, marks: &mut Marks, wait: Wait<'_>) -> io::Result<Offset> {
    let start = receive(agent, wait, Start::parse)?;
    agent.send_within(&Message::TimeSync(start.message()), wait)?;
    marks.take()?;
    let by_marks = start.flags & ptp::MARKS != 0;
    let mut stamps = Vec::new();
    // An agent of another version may make fewer round trips, not more.
    for _ in 0..=ptp::ROUND_TRIPS {
        let number = receive(agent, wait, |message| {
            ptp::probed(message).map(Some).or(ptp::is_end(message).then_some(None))
        })?;
        let Some(number) = number else { break };
        if by_marks {
            marks.make_mark(number)?;
        } else {
            stamps.push(Mark { number, time: clock_ns(ClockId::MonotonicRaw) });
        }
        agent.send_within(&Message::TimeSync(ptp::probe(number)), wait)?;
    }
    if by_marks {
        stamps = marks.take()?;
    }
    let samples = ptp::samples(start.series, &samples(&stamps));
    agent.send_within(&Message::TimeSync(samples), wait)?;
    receive(agent, wait, Offset::parse)
}

/// Stamps by round trip number, as the agent expects them.
fn samples(stamps: &[Mark]) -> Vec<Sample> {
    let stamp = |number: u32| {
        let mark = stamps.iter().find(|mark| mark.number == number);
        mark.map_or(Sample { time: 0, number: 0 }, |mark| Sample {
            time: mark.time.cast_signed(),
            number,
        })
    };
    (1..=ptp::ROUND_TRIPS).map(stamp).collect()
}
