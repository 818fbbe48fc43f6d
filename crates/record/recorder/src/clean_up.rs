//! Finishes the session of a killed recorder. Its guard does this, otherwise the next recorder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use os::folder::{Folder, Modes};
use tracefs::{Clock, CpuStats, Instance, LeftOver, RawPages, Texts, Tracefs, page_size};

use crate::ending::stop_signal;
use crate::error::{RecordError, Result};
use crate::losses::keep_counts;
use crate::pages_folder::pages;
use crate::pump::Pump;
use crate::quota::Quota;
use crate::session_folder::{PAGES_FOLDER, SessionFolder};

/// Result of a cleanup after a killed recorder.
#[derive(Debug)]
pub struct Finished {
    /// The recorder's process id.
    pub pid: u32,
    /// The folder of its last events: its session, or a new folder if the session is not usable.
    pub saved: PathBuf,
    /// Bytes of pages that were still in the kernel, or why they are still there.
    pub result: Result<u64>,
}

/// Max folders for one recorder's leftovers.
const MAX_FOLDERS: u32 = 100;
/// The inode of the initial PID namespace in all kernels (`PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// Finishes sessions of recorders that were killed together with their guards. Remaining pages in the kernel are saved
/// in their sessions, or in a new folder in `fallback` if a session is gone or belongs to another user. Then removes
/// instances and probes, except those whose pages can't be saved.
///
/// # Errors
/// When this user has no permission to trace.
pub fn finish_left_overs(fallback: &Path) -> Result<Vec<Finished>> {
    let tracefs = Tracefs::find()?;
    let left_overs = LeftOver::all(&tracefs)?;
    Ok(left_overs
        .into_iter()
        .filter_map(|left_over| finish(&tracefs, left_over, Some(fallback)))
        .collect())
}

/// Waits until the recorder with this process id ends, and finishes its session.
///
/// # Errors
/// When the remaining pages can't be saved. They stay in the kernel for the next recorder.
pub fn clean_up(pid: u32) -> Result<()> {
    let tracefs = Tracefs::find()?;
    let finished = LeftOver::wait_for(pid)?.and_then(|left_over| finish(&tracefs, left_over, None));
    finished.map_or(Ok(()), |finished| finished.result.map(drop))
}

fn finish(tracefs: &Tracefs, left_over: LeftOver, fallback: Option<&Path>) -> Option<Finished> {
    if !left_over.is_noted() && (left_over.is_in_use() || !is_first_namespace()) {
        // The recorder of an earlier version, or of another namespace, where it may still run.
        return None;
    }
    let pid = left_over.pid();
    let own_session =
        left_over.session().and_then(|note| Some((note, SessionFolder::take_over(note).ok()?)));
    let instance = left_over.instance(tracefs);
    let finished = instance.and_then(|instance| {
        let rest = Rest { tracefs, instance, pid };
        match &own_session {
            Some((_, session)) => rest.save_in(session),
            None if left_over.session().is_none() && left_over.is_noted() => None,
            None => {
                let above = left_over.session().and_then(|note| note.path.parent());
                rest.save_in_new([above, fallback].into_iter().flatten())
            }
        }
    });
    if let Some((note, session)) = own_session {
        session.give_back();
        // After a failure the session stays with root.
        let _ = note.owner.map(|(user, group)| session.give_to(user, group));
    }
    if finished.as_ref().is_none_or(|finished| finished.result.is_ok()) {
        left_over.remove(tracefs);
    }
    finished
}

/// Inside another PID namespace, a process can't see whether processes outside of it run.
fn is_first_namespace() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link == Path::new(FIRST_NAMESPACE))
}

/// Pages that are still in the kernel.
struct Rest<'t> {
    tracefs: &'t Tracefs,
    instance: Instance,
    pid: u32,
}

impl Rest<'_> {
    /// Saves them in the recorder's folder of pages. If that does not exist, the recorder has recorded nothing yet, or
    /// has finished.
    fn save_in(self, session: &SessionFolder) -> Option<Finished> {
        let folder = session.existing_subfolder(PAGES_FOLDER).ok()?;
        // A recorder killed while it was making that folder left no texts that decode pages, and recorded nothing.
        let has_texts =
            folder.existing_subfolder("events").is_ok_and(|events| events.holds("header_page"));
        if !has_texts && !self.holds_events() {
            return None;
        }
        Some(self.save(session.path().to_owned(), |_| Ok(folder)))
    }

    /// Saves them in a new folder, with the texts that decode them, in the first place where a folder can be made.
    fn save_in_new<'p>(self, places: impl Iterator<Item = &'p Path>) -> Option<Finished> {
        self.instance.set("tracing_on", "0").ok()?;
        if !self.holds_events() {
            return None;
        }
        let name = format!("recovered-{}", self.pid);
        let mut made = Err(io::ErrorKind::NotFound.into());
        let mut at = PathBuf::from(&name);
        for place in places {
            made = new_folder(place, &name);
            at = place.join(&name);
            if made.is_ok() {
                break;
            }
        }
        let at = made.as_ref().map_or(at, |folder| folder.path().to_owned());
        Some(self.save(at.clone(), |rest| {
            let folder = made.and_then(|session| session.subfolder(PAGES_FOLDER));
            let folder = folder.map_err(RecordError::io("make", &at))?;
            rest.write_texts(&folder)?;
            Ok(folder)
        }))
    }

    fn holds_events(&self) -> bool {
        let cpus = self.instance.cpus().unwrap_or_default();
        cpus.iter().any(|&cpu| {
            CpuStats::now(&self.instance, cpu).is_ok_and(|(stats, _)| stats.entries > 0)
        })
    }

    fn write_texts(&self, folder: &Folder) -> Result<()> {
        // Another recorder's probes may be gone: events without a format have no names, but are kept.
        let has_format = |event: &String| {
            self.instance.file("events").join(event.replacen(':', "/", 1)).join("format").exists()
        };
        let events: Vec<_> = self.instance.enabled()?.into_iter().filter(has_format).collect();
        let clock = Clock::current(&self.instance)?;
        Ok(Texts::read(self.tracefs.root(), &self.instance, &events)?.write(folder, &clock.line)?)
    }

    /// Saves the pages, then removes the instance.
    fn save(self, saved: PathBuf, folder: impl FnOnce(&Self) -> Result<Folder>) -> Finished {
        let result = folder(&self).and_then(|folder| {
            let bytes = drain(&self.instance, &folder)?;
            let names = fs::read(self.tracefs.root().join("saved_cmdlines")).unwrap_or_default();
            let named = folder.overwrite("saved_cmdlines", &names).and_then(|()| folder.sync());
            named.map_err(RecordError::io("write", folder.path()))?;
            Ok(bytes)
        });
        if result.is_err() {
            self.instance.keep();
        }
        Finished { pid: self.pid, saved, result }
    }
}

/// Makes a folder that did not exist.
fn new_folder(place: &Path, name: &str) -> io::Result<Folder> {
    let mut number = 1;
    loop {
        let end = if number == 1 { String::new() } else { format!("-{number}") };
        let made = Folder::make(&place.join(format!("{name}{end}.hscope")), Modes::default());
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MAX_FOLDERS => {
                number += 1;
            }
            made => return made,
        }
    }
}

/// Appends the remaining pages to the files of their CPUs; returns the number of bytes. A failure of one CPU's file
/// does not prevent saving the others.
fn drain(instance: &Instance, folder: &Folder) -> Result<u64> {
    instance.set("tracing_on", "0")?;
    let stop = stop_signal()?;
    stop.set();
    let header = folder.existing_subfolder("events").and_then(|events| events.read("header_page"));
    let header = header.and_then(io::read_to_string);
    let header =
        header.map_err(RecordError::io("read", &folder.path().join("events/header_page")))?;
    let page_size = page_size(&header) as usize;
    let drain_cpu = |cpu| {
        let raw = RawPages::open(instance, cpu, page_size)?;
        let (bytes, ended) =
            Pump::start(cpu, raw, folder, stop.clone(), Quota::default(), None)?.join();
        ended.map_err(RecordError::io("write", &folder.path().join(pages(cpu))))?;
        // Together with all pages, the kernel's counts show what was lost.
        let (_, stats) = CpuStats::now(instance, cpu)?;
        let written = keep_counts(folder, cpu, &stats);
        written.map_err(RecordError::io("write", &folder.path().join("per_cpu")))?;
        Ok(bytes)
    };
    let drained: Vec<Result<u64>> = instance.cpus()?.into_iter().map(drain_cpu).collect();
    drained.into_iter().sum()
}
