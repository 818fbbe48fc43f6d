//! Ends a recording and writes its session.

use std::io;

use session_json::{CpuLosses, Recorded};
use tracefs::UnixPair;
use vms::Vm;

use super::{FOLDER, Recording};
use crate::assemble::{self, About, Tick};
use crate::error::{RecordError, Result};
use crate::guest::{GuestRecorded, HostClock};
use crate::guests;
use crate::host_identity;
use crate::losses::{hold, keep_counts};
use crate::nanoseconds::nanoseconds;
use crate::session;
use crate::session_folder::HOST_FILE;
use crate::tracer;

impl Recording {
    /// Ends the recording and writes the session. `progress` gets the number of bytes written.
    ///
    /// # Errors
    /// When a write fails; then the pages stay in their folder.
    pub fn end(mut self, progress: &dyn Fn(u64)) -> Result<Recorded> {
        self.outside.end();
        let mut faults = self.guest_side.stop();
        let streams = self.streams.stop();
        let interference = self.session.off()?;
        let duration = self.start.at.elapsed();
        let ended = UnixPair::now(self.session.clock());
        self.pages.stop().set();
        let folder = self.pages_folder()?;
        let (cpus, stats) = self.pages.end(&self.session, &mut faults)?.into_iter().unzip();
        let (cpus, stats): (Vec<CpuLosses>, Vec<String>) = (cpus, stats);
        // Incomplete counts are omitted: a reader of the file alone would take them for complete.
        let text = |text| if interference.is_some() { String::new() } else { text };
        let stats: Vec<(u32, String)> =
            cpus.iter().map(|cpu| cpu.cpu).zip(stats.into_iter().map(text)).collect();
        faults.extend(interference.iter().map(ToString::to_string));
        let until = self.guest_side.ending.threads_until();
        faults.extend(self.pages.settle(until));
        let mut guests = self.guest_side.guests.lock().end();
        let (collector, sampler) = streams.end(until, &mut faults);
        let modules = self.guest_side.end_modules(until);
        let vms = self.vms_seen(&guests);
        let recorder_cpu_ns = sys::process_cpu_ns().saturating_sub(self.start.own_cpu_ns);
        let cmdlines = self.session.thread_names();
        // For readers of the folder.
        let _ = folder.overwrite("saved_cmdlines", &cmdlines);
        for (cpu, text) in stats.iter().filter(|(_, text)| !text.is_empty()) {
            // For readers of the folder, if the recorder is killed from here on: without counts they report unknown
            // losses.
            let _ = keep_counts(&folder, *cpu, text);
        }
        let Self { pages, session, to, outside, start, trace_id, .. } = self;
        let tracer = session.tracer().map(|tracer| tracer::summary(tracer, session.traced()));
        let mut recorded = Recorded {
            recorder: session::by_this_version().recorder,
            clock: session.clock().name.clone(),
            events: session.events().to_vec(),
            buffer_kib: session.buffer_kib(),
            begun_unix_ns: start.unix_ns,
            duration_ns: nanoseconds(duration),
            host: Some(host_identity::here()),
            clock_pairs: start.clocks.into_iter().chain(ended).map(session::clock_pair).collect(),
            cpus,
            recorder_cpu_ns,
            faults,
            vms,
            guests: guests.iter().map(|guest| guest.summary().clone()).collect(),
            modules,
            collector,
            sampler,
            tracer,
            flight: None,
        };
        drop(pages);
        let (texts, clock) = session.release();
        session::write(&recorded, &to)?;
        let host = HostClock::new(&clock, trace_id);
        let options = recorded.vms.iter().map(|vm| guests::option(vm, &guests)).collect();
        let about = About::of_host(&texts, &clock, trace_id, options, &stats, cmdlines);
        let progress: Tick<'_> = &|bytes| {
            progress(bytes);
            if outside.leaves() { Err(stopped_again()) } else { Ok(()) }
        };
        if outside.leaves() {
            return Err(RecordError::StoppedAgain);
        }
        let held = assemble::write(texts, about, &folder, (&to, HOST_FILE), progress)?;
        recorded.faults.extend(hold(&mut recorded.cpus, &held));
        to.remove_all(FOLDER).map_err(RecordError::io("remove", folder.path()))?;
        for guest in &mut guests {
            guests::write(guest, &host, &to, progress)?;
        }
        recorded.guests = guests.iter().map(|guest| guest.summary().clone()).collect();
        session::write(&recorded, &to)?;
        Ok(recorded)
    }
}

impl Recording {
    /// The recorded VM, or all that ran meanwhile.
    fn vms_seen(&mut self, guests: &[GuestRecorded]) -> Vec<Vm> {
        let vms = std::mem::take(&mut self.vms);
        if self.of_vm {
            return vms;
        }
        // A guest that has shut down meanwhile was running at the request.
        let of_guests = guests.iter().filter_map(|guest| guest.vm().cloned()).collect();
        seen(seen(vms, of_guests), vms::running())
    }
}

/// The error of a file whose assembly was interrupted.
fn stopped_again() -> io::Error {
    io::Error::other(RecordError::StoppedAgain.to_string())
}

/// VMs that ran at the begin or at the end: some were started in between, or got more vCPUs.
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
