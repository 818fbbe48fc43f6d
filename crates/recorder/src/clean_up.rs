//! What a recorder leaves that was killed, and how it is finished.

use std::fs;
use std::path::Path;

use tracefs::{Instance, Probes, RawPages, Tracefs, page_size};

use crate::error::{RecordError, Result};
use crate::hypercalls;
use crate::pages_folder::pages;
use crate::pump::{Pump, stop_signal};
use crate::recording::FOLDER;

/// Whether a folder has a recording in it already.
#[must_use]
pub fn holds_recording(folder: &Path) -> bool {
    let is_there = |name| folder.join(name).exists();
    is_there("host.dat") || is_there(FOLDER) || is_there(hypercalls::FILE)
}

/// Finishes what the recorder with this process id left, once it is gone: what is still in the
/// kernel's buffers goes to the session's folder, if it has one, which can be read as it is then; its
/// instance and its probes go.
///
/// # Errors
/// When the rest can't be written. The instance is gone all the same.
pub fn clean_up(pid: u32, session: Option<&Path>) -> Result<()> {
    let tracefs = Tracefs::find()?;
    let Some(instance) = Instance::of(&tracefs, pid) else { return Ok(()) };
    let folder = session.map(|session| session.join(FOLDER));
    // Else it wrote no pages, or somebody has taken them away.
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        drop(instance);
        Probes::remove_of(tracefs.root(), pid);
        return Ok(());
    };
    let drained = drain(&instance, &folder);
    let cmdlines = fs::read(tracefs.root().join("saved_cmdlines")).unwrap_or_default();
    let named = fs::write(folder.join("saved_cmdlines"), cmdlines);
    drop(instance);
    Probes::remove_of(tracefs.root(), pid);
    drained.and_then(|()| named.map_err(RecordError::io("write", &folder)))
}

/// Moves what is left in the buffers to the files of their CPUs.
fn drain(instance: &Instance, folder: &Path) -> Result<()> {
    instance.set("tracing_on", "0")?;
    let stop = stop_signal()?;
    stop.give();
    let header = tracefs::read(&folder.join("events/header_page"))?;
    let page_size = page_size(&header) as usize;
    for cpu in instance.cpus()? {
        let raw = RawPages::open(instance, cpu, page_size)?;
        let to = pages(folder, cpu);
        let (_, ended) = Pump::start(cpu, raw, &to, stop.clone())?.join();
        ended.map_err(RecordError::io("write", &to))?;
    }
    Ok(())
}
