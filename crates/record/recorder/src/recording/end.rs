//! The end of a recording: its session is written.

use std::fs;
use std::io;

use channel::Deadline;
use tracefs::{CpuStats, Instance};
use vms::Vm;

use super::{FOLDER, Recording, own_cpu_ns};
use crate::assemble::{self, About, Tick};
use crate::ending::STOP_MESSAGE;
use crate::error::{RecordError, Result};
use crate::guest::HostClock;
use crate::guests;
use crate::hypercalls;
use crate::losses::{CpuLosses, keep_counts};
use crate::pages_folder::header;
use crate::pump::Pump;
use crate::samples;
use crate::session::{self, Recorded};
use crate::session_folder::HOST_FILE;
use crate::tracer::TracerSummary;

impl Recording {
    /// Ends the recording and writes the session. `tick` gets the number of bytes as they are written.
    ///
    /// # Errors
    /// When something can't be written; the pages stay in their folder then.
    pub fn end(mut self, tick: &dyn Fn(u64)) -> Result<Recorded> {
        let mut faults = self.stop_guests();
        let collector = self.collector.take().map(hypercalls::end);
        let sampler = self.sampler.take().map(|(sampler, hz)| samples::end(sampler, hz));
        let soon = Deadline::after(STOP_MESSAGE);
        // What they write should end no later than the events that it goes with.
        collector.as_ref().map(|one| one.is_over(soon));
        sampler.as_ref().map(|one| one.is_over(soon));
        self.instance.set("tracing_on", "0")?;
        let duration = self.begun.elapsed();
        self.stop.give();
        let folder = self.pages_folder()?;
        let pumped = end_pumps(self.pumps, &self.instance, &mut faults)?;
        let until = self.ending.threads_until();
        faults.extend(self.flusher.take().and_then(|flusher| flusher.end(until)));
        faults.extend(self.quota.fault());
        let mut guests = self.guests.lock().end();
        let not_all = "hypercalls were not collected to the end";
        let collector = collector.and_then(|one| one.end(until, not_all, &mut faults));
        let not_all = "CPUs were not sampled to the end";
        let sampler = sampler.and_then(|one| one.end(until, not_all, &mut faults));
        let stats: Vec<(u32, String)> =
            pumped.iter().map(|(losses, text)| (losses.cpu, text.clone())).collect();
        let cpus = pumped.into_iter().map(|(losses, _)| losses).collect();
        let tracer = self.tracer.as_ref().map(|one| TracerSummary::new(one, self.traced));
        let modules = self.modules.into_iter().map(|module| module.end(until)).collect();
        // A guest that has shut down meanwhile was seen when it was asked.
        let of_guests = guests.iter().filter_map(|guest| guest.vm().cloned()).collect();
        let vms = match self.of_vm {
            true => self.vms,
            false => seen(seen(self.vms, of_guests), vms::running()),
        };
        let recorder_cpu_ns = own_cpu_ns().saturating_sub(self.own_cpu_ns);
        let cmdlines = fs::read(self.tracefs.root().join("saved_cmdlines")).unwrap_or_default();
        // A recording that is read from its folder has names, too.
        let _ = folder.overwrite("saved_cmdlines", &cmdlines);
        for (cpu, text) in &stats {
            // A recorder that is killed from here on leaves them next to the pages; without them it is
            // unknown what was lost, and readers say so.
            let _ = keep_counts(&folder, *cpu, text);
        }
        drop(self.instance);
        drop(self.probes);
        let recorded = Recorded {
            recorder: Recorded::default().recorder,
            clock: self.clock.name.clone(),
            events: self.events,
            buffer_kib: self.buffer_kib,
            begun_unix_ns: self.begun_unix_ns,
            duration_ns: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
            cpus,
            recorder_cpu_ns,
            faults,
            vms,
            guests: guests.iter().map(|guest| guest.summary().clone()).collect(),
            modules,
            collector,
            sampler,
            tracer,
        };
        session::write(&recorded, &self.to)?;
        let host = HostClock {
            name: self.clock.name.clone(),
            tsc_conversion: self.clock.tsc_conversion,
            trace_id: self.trace_id,
        };
        let about = About {
            header: header(&self.texts),
            clock: &self.clock.name,
            clock_line: &self.clock.line,
            tsc_conversion: self.clock.tsc_conversion,
            trace_id: self.trace_id,
            uname: assemble::uname(),
            guests: recorded.vms.iter().map(|vm| guests::option(vm, &guests)).collect(),
            time_shift: None,
            cpus: stats.iter().map(|(cpu, _)| *cpu).collect(),
            stats: &stats,
            cmdlines,
        };
        let outside = self.outside.clone();
        let tick: Tick<'_> = &|bytes| {
            tick(bytes);
            if outside.leaves() { Err(stopped_again()) } else { Ok(()) }
        };
        if outside.leaves() {
            return Err(RecordError::StoppedAgain);
        }
        assemble::write(self.texts, about, &folder, (&self.to, HOST_FILE), tick)?;
        self.to.remove_all(FOLDER).map_err(RecordError::io("remove", folder.path()))?;
        for guest in &mut guests {
            guests::write(guest, &host, &self.to, tick)?;
        }
        Ok(recorded)
    }
}

impl Recording {
    /// Asks guests to stop. The host is recorded on until all of them have, for what their last
    /// events cause on it, but no longer than for a moment: then they send the rest during what is
    /// done here. What went wrong with guests that never came.
    fn stop_guests(&mut self) -> Vec<String> {
        self.outside.end();
        let (stop_sent, until) = (Deadline::after(STOP_MESSAGE), Deadline::after(self.guest_wait));
        self.ending.begin(until);
        let stop_sent = stop_sent.min(until);
        let faults = self
            .pending_guests
            .take()
            .map_or_else(Vec::new, |pending_guests| pending_guests.end(stop_sent));
        self.guests.lock().are_over(stop_sent, &self.ending);
        faults
    }
}

/// The error of a file that is not assembled to its end.
fn stopped_again() -> io::Error {
    io::Error::other(RecordError::StoppedAgain.to_string())
}

/// Waits for what pumps still have to write: what each CPU lost, and the kernel's own text of that.
fn end_pumps(
    pumps: Vec<Pump>,
    instance: &Instance,
    faults: &mut Vec<String>,
) -> Result<Vec<(CpuLosses, String)>> {
    let mut end = |pump: Pump| {
        let cpu = pump.cpu;
        let (bytes, ended) = pump.join();
        if let Err(error) = ended {
            faults.push(format!("CPU {cpu}: its pages were not written to the end: {error}"));
        }
        let (counts, text) = CpuStats::now(instance, cpu)?;
        Ok((CpuLosses::new(&counts, bytes), text))
    };
    pumps.into_iter().map(&mut end).collect()
}

/// VMs that ran when the recording began, and those that run when it ends: some were started in
/// between, or had vCPUs added.
fn seen(mut vms: Vec<Vm>, now: Vec<Vm>) -> Vec<Vm> {
    for vm in now {
        match vms.iter_mut().find(|known| known.pid == vm.pid) {
            Some(known) if vm.vcpus.len() >= known.vcpus.len() => *known = vm,
            Some(_) => {}
            None => vms.push(vm),
        }
    }
    vms
}
