//! The guest's side of time synchronisation: answers each round of the host.

use std::io;
use std::time::Duration;

use channel::wire::trace_cmd::kvm::{self, Relation};
use channel::wire::trace_cmd::ptp::{self, Offset, Sample, Start};
use channel::wire::trace_cmd::{Message, TimeSync};
use channel::{Stream, TraceCmd};
use os::waits::{Signal, Wait};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tracefs::{Mark, Marks, Tracefs};

use crate::error::Result;

/// Max time for the peer's next message in a round.
const ANSWER: Duration = Duration::from_secs(10);
/// Max time until the next round: as long as a recording runs.
const NEXT_ROUND: Duration = Duration::from_secs(24 * 3600);
/// The only clock that KVM's numbers describe.
const TSC: &str = "x86-tsc";

/// A protocol that both sides support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Kvm,
    Ptp,
}

impl Protocol {
    /// The best protocol that the host offers.
    pub(super) fn choose(offered: &[String], clock: &str) -> Option<Self> {
        let offers = |name: &str| offered.iter().any(|offer| offer == name);
        if offers(kvm::NAME) && clock == TSC {
            return Some(Self::Kvm);
        }
        offers(ptp::NAME).then_some(Self::Ptp)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kvm => kvm::NAME,
            Self::Ptp => ptp::NAME,
        }
    }
}

/// The guest's side.
#[derive(Debug)]
pub(super) struct Guest {
    protocol: Protocol,
    marks: Marks,
    series: u32,
    // Last: it contains the marks.
    _tracefs: Tracefs,
}

impl Guest {
    pub(super) fn new(protocol: Protocol, clock: &str) -> Result<Self> {
        let tracefs = Tracefs::find()?;
        let marks = Marks::make(&tracefs, clock)?;
        Ok(Self { protocol, marks, series: 0, _tracefs: tracefs })
    }

    /// Answers until the host stops or disconnects, or `stop` is set.
    pub(super) fn run(mut self, stream: Stream, stop: &Signal) -> io::Result<()> {
        let mut host = TraceCmd::new(stream).prompt();
        let affinity = sched_getaffinity(None);
        loop {
            let stop_fds = [stop.fd()];
            let wait = Wait::at_most(NEXT_ROUND).or(&stop_fds);
            let probed = match host.receive(wait) {
                Ok(Some(Message::TimeSync(sync))) => sync.probed_cpu(),
                _ => None,
            };
            let Some(cpu) = probed else { return Ok(()) };
            // A round measures this CPU's clock. If the thread can't be pinned, any CPU will do: nothing can relate
            // trace clocks that differ between CPUs.
            let mut cpu_set = CpuSet::new();
            if usize::from(cpu) < CpuSet::MAX_CPU {
                cpu_set.set(cpu.into());
                let _ = sched_setaffinity(None, &cpu_set);
            }
            let done = match self.protocol {
                Protocol::Kvm => self.kvm(&mut host),
                Protocol::Ptp => self.ptp(&mut host),
            };
            if let Ok(affinity) = &affinity {
                let _ = sched_setaffinity(None, affinity);
            }
            done?;
        }
    }

    /// Sends a time, and discards the answer: only the host needs the relation.
    fn kvm(&mut self, host: &mut TraceCmd) -> io::Result<()> {
        self.marks.make_mark(0)?;
        let time = self.marks.take()?.last().map_or(0, |mark| mark.time);
        send(host, Relation::request(time.cast_signed()))?;
        receive(host, Relation::responded).map(drop)
    }

    fn ptp(&mut self, host: &mut TraceCmd) -> io::Result<()> {
        self.series = self.series.wrapping_add(1);
        let flags = ptp::FASTEST | ptp::MARKS;
        send(host, Start { series: self.series, flags }.message())?;
        receive(host, Start::parse)?;
        self.marks.take()?;
        for number in 1..=ptp::ROUND_TRIPS {
            self.marks.make_mark(number << 1)?;
            send(host, ptp::probe(number))?;
            receive(host, |message| ptp::probed(message).filter(|&probed| probed == number))?;
            self.marks.make_mark(number << 1 | 1)?;
        }
        send(host, ptp::end())?;
        let (_, theirs) = receive(host, ptp::sampled)?;
        let best =
            fastest(&self.marks.take()?, &theirs).unwrap_or(Offset { guest_time: 0, offset: 0 });
        send(host, best.message())
    }
}

/// The result of the shortest round trip: the host's mark is assumed to be in its middle. `marks` have twice the number
/// of the round trip, plus one on return.
fn fastest(marks: &[Mark], theirs: &[Sample]) -> Option<Offset> {
    let mark = |number: u32| marks.iter().find(|mark| mark.number == number);
    let trips = theirs.iter().filter_map(|sample| {
        let sent = mark(sample.number.checked_mul(2)?)?.time;
        let back = mark(sample.number.checked_mul(2)?.checked_add(1)?)?.time;
        let took = back.checked_sub(sent)?;
        let middle = sent.checked_add(took / 2)?.cast_signed();
        Some((took, Offset { guest_time: middle, offset: sample.time.checked_sub(middle)? }))
    });
    trips.min_by_key(|(took, _)| *took).map(|(_, offset)| offset)
}

fn send(host: &mut TraceCmd, message: TimeSync) -> io::Result<()> {
    host.send(&Message::TimeSync(message))
}

/// Waits for one message, which must be the expected one.
fn receive<T>(host: &mut TraceCmd, read: impl Fn(&TimeSync) -> Option<T>) -> io::Result<T> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    match host.receive(Wait::at_most(ANSWER)) {
        Ok(Some(Message::TimeSync(sync))) => {
            read(&sync).ok_or_else(|| wrong("unexpected message during time synchronisation"))
        }
        Ok(Some(_)) => Err(wrong("expected a message of time synchronisation")),
        Ok(None) => Err(io::ErrorKind::TimedOut.into()),
        Err(error) => Err(io::Error::other(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_protocol_that_fits_the_clock() {
        let offered =
            |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let both = offered(&["ptp", "kvm"]);
        assert_eq!(Protocol::choose(&both, "x86-tsc"), Some(Protocol::Kvm));
        assert_eq!(Protocol::choose(&both, "local"), Some(Protocol::Ptp));
        assert_eq!(Protocol::choose(&offered(&["kvm"]), "mono"), None);
        assert_eq!(Protocol::choose(&[], "x86-tsc"), None);
    }

    #[test]
    fn the_fastest_round_trip_counts() {
        let mark = |number, time| Mark { number, time };
        let marks = [mark(2, 100), mark(3, 180), mark(4, 200), mark(5, 210), mark(6, 300)];
        let sample = |number, time| Sample { time, number };
        // The first took 80, the second 10; the third never came back, the fourth is made up.
        let theirs = [sample(1, 1000), sample(2, 1105), sample(3, 9), sample(u32::MAX, 9)];
        let expected = Offset { guest_time: 205, offset: 900 };
        assert_eq!(fastest(&marks, &theirs), Some(expected));
        assert_eq!(fastest(&marks, &[]), None);
    }
}
