//! The host's side of time synchronisation: a round for each CPU at the begin and at the end.

use std::io;

use channel::wire::trace_cmd::kvm::{self, Relation};
use channel::wire::trace_cmd::{Message, ReadError, TimeSync as SyncMessage, ptp};
use channel::{Stream, TraceCmd};
use os::confine::Unconfined;
use os::waits::Wait;
use tracedat::ShiftSample;
use tracefs::{Marks, Tracefs};
use vms::Vm;

use super::ptp as ptp_round;
use crate::guest::{ClockSamples, TSC};
use crate::relation::to_host;

/// Protocols to offer to a guest.
#[derive(Debug)]
pub(super) struct Offered {
    /// The VM's process, if KVM shows its offsets.
    kvm_pid: Option<u32>,
    clock: String,
}

/// The protocol that the agent has chosen.
#[derive(Debug)]
pub(super) enum Protocol {
    Kvm(u32),
    Ptp(Marks),
}

impl Offered {
    pub(super) fn new(clock: &str, vm: Option<&Vm>) -> Self {
        let has_offsets = |vm: &&Vm| {
            !vm.vcpus.is_empty() && vm.vcpus.iter().all(|vcpu| vcpu.tsc_offset.is_some())
        };
        let kvm_pid = vm.filter(|_| clock == TSC).filter(has_offsets).map(|vm| vm.pid);
        Self { kvm_pid, clock: clock.to_owned() }
    }

    pub(super) fn names(&self) -> Vec<String> {
        let kvm = self.kvm_pid.map(|_| kvm::NAME.to_owned());
        kvm.into_iter().chain([ptp::NAME.to_owned()]).collect()
    }

    /// Resolves the agent's choice; `None` if it chose no protocol.
    pub(super) fn chosen(self, name: &str) -> io::Result<Option<Protocol>> {
        match (name, self.kvm_pid) {
            ("", _) => Ok(None),
            (kvm::NAME, Some(pid)) => Ok(Some(Protocol::Kvm(pid))),
            (ptp::NAME, _) => {
                let tracefs = Tracefs::find().map_err(io::Error::other)?;
                let marks = Marks::make(&tracefs, &self.clock).map_err(io::Error::other)?;
                Ok(Some(Protocol::Ptp(marks)))
            }
            (other, _) => {
                let text =
                    format!("it chose {other:?} for time synchronisation, which was not offered");
                Err(io::Error::new(io::ErrorKind::InvalidData, text))
            }
        }
    }
}

/// Time synchronisation with an agent.
#[derive(Debug)]
pub(super) struct TimeSync {
    protocol: Protocol,
    agent: TraceCmd,
    samples: ClockSamples,
    /// Reads KVM's files, for which the receiving thread has no permission.
    outside: Unconfined,
}

impl TimeSync {
    /// Runs the first round of each CPU, within the deadline.
    pub(super) fn begin(
        protocol: Protocol,
        stream: Stream,
        cpus: usize,
        outside: Unconfined,
        wait: Wait<'_>,
    ) -> io::Result<Self> {
        let interpolates = matches!(protocol, Protocol::Ptp(_));
        let samples = ClockSamples { interpolates, cpus: vec![Vec::new(); cpus] };
        let agent = TraceCmd::new(stream).prompt();
        let mut sync = Self { protocol, agent, samples, outside };
        sync.rounds(wait)?;
        Ok(sync)
    }

    /// The samples so far, after the peer disconnected.
    pub(super) fn abandon(self) -> ClockSamples {
        let Self { protocol, samples, outside, .. } = self;
        // Drop removes the instance of marks.
        let _ = outside.run(move || drop(protocol));
        samples
    }

    /// Runs the last rounds, and ends within the deadline; returns all samples, and the error, if any.
    pub(super) fn end(mut self, wait: Wait<'_>) -> (ClockSamples, io::Result<()>) {
        let ended = self.rounds(wait);
        let stop = Message::TimeSync(SyncMessage::stop());
        let stopped = self.agent.send_within(&stop, wait);
        (self.abandon(), ended.and(stopped))
    }

    fn rounds(&mut self, wait: Wait<'_>) -> io::Result<()> {
        for cpu in 0..self.samples.cpus.len() {
            if wait.is_over() {
                let text = format!("there was only time to synchronise {cpu} CPUs");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            self.round(cpu, wait).map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("time synchronisation with CPU {cpu}: {error}"),
                )
            })?;
        }
        Ok(())
    }

    fn round(&mut self, cpu: usize, wait: Wait<'_>) -> io::Result<()> {
        let Ok(number) = u16::try_from(cpu) else { return Ok(()) };
        let probe = Message::TimeSync(SyncMessage::probe(number));
        self.agent.send_within(&probe, wait)?;
        let sample = match &mut self.protocol {
            Protocol::Kvm(pid) => kvm_round(&mut self.agent, (*pid, &self.outside), number, wait)?,
            Protocol::Ptp(marks) => {
                let offset = ptp_round::round(&mut self.agent, marks, wait)?;
                let time = u64::try_from(offset.guest_time).unwrap_or(0);
                Some(ShiftSample { time, offset: offset.offset, scaling: 1, fraction: 0 })
            }
        };
        // A time of zero means that nothing was measured.
        if let Some(sample) = sample.filter(|sample| sample.time > 0) {
            self.samples.add(cpu, sample);
        }
        Ok(())
    }
}

/// Answers the agent's question for KVM's offset at its time.
fn kvm_round(
    agent: &mut TraceCmd,
    (pid, outside): (u32, &Unconfined),
    cpu: u16,
    wait: Wait<'_>,
) -> io::Result<Option<ShiftSample>> {
    let time = receive(agent, wait, Relation::requested)?;
    // Read again: the offset changes when the guest writes its TSC.
    let vcpus = outside.run(move || vms::vcpus(pid))?;
    let vcpu = vcpus.into_iter().find(|vcpu| vcpu.vcpu == u32::from(cpu));
    let sample = vcpu.and_then(|vcpu| to_host(&vcpu, u64::try_from(time).unwrap_or(0)));
    let relation =
        sample.map_or(Relation { guest_time: time, ..Relation::default() }, |sample| Relation {
            guest_time: time,
            offset: sample.offset,
            scaling: sample.scaling.cast_signed(),
            fraction: sample.fraction.cast_signed(),
        });
    agent.send_within(&Message::TimeSync(relation.response()), wait)?;
    Ok(sample)
}

/// Waits for one message, which must be the expected one.
pub(super) fn receive<T>(
    agent: &mut TraceCmd,
    wait: Wait<'_>,
    read: impl Fn(&SyncMessage) -> Option<T>,
) -> io::Result<T> {
    let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
    match agent.receive(wait) {
        Ok(Some(Message::TimeSync(sync))) => {
            read(&sync).ok_or_else(|| wrong("the agent sent an unexpected message"))
        }
        Ok(Some(_)) => Err(wrong("the agent sent unexpected data")),
        Ok(None) => {
            let text = "the agent did not answer in time";
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        }
        Err(ReadError::Io(error)) => Err(error),
        Err(error) => Err(io::Error::other(error)),
    }
}
