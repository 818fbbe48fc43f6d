//! What a recorder leaves that was killed, and how it is finished.

use std::fs;
use std::path::Path;

use folder::{Folder, Modes};
use tracefs::{CpuStats, Instance, Probes, RawPages, Tracefs, page_size};

use crate::error::{RecordError, Result};
use crate::pages_folder::pages;
use crate::pump::{Pump, stop_signal};
use crate::quota::Quota;
use crate::recording::FOLDER;
use crate::session_folder::SessionFolder;

/// Whether this system lets this user trace.
///
/// # Errors
/// Why not.
pub fn check_access() -> Result<()> {
    Ok(Tracefs::find().map(drop)?)
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
    let session = session.and_then(|path| SessionFolder::take_over(path, Modes::default()).ok());
    // Else it wrote no pages, or somebody has taken them away.
    let folder = session.as_ref().and_then(|session| session.existing_subfolder(FOLDER).ok());
    let Some(folder) = folder else {
        drop(instance);
        Probes::remove_of(tracefs.root(), pid);
        return Ok(());
    };
    let drained = drain(&instance, &folder);
    let cmdlines = fs::read(tracefs.root().join("saved_cmdlines")).unwrap_or_default();
    let named = folder.write_anew("saved_cmdlines", &cmdlines);
    drop(instance);
    Probes::remove_of(tracefs.root(), pid);
    session.iter().for_each(SessionFolder::give_back);
    drained.and_then(|()| named.map_err(RecordError::io("write", folder.path())))
}

/// Moves what is left in the buffers to the files of their CPUs.
fn drain(instance: &Instance, folder: &Folder) -> Result<()> {
    instance.set("tracing_on", "0")?;
    let stop = stop_signal()?;
    stop.give();
    let header = tracefs::read(&folder.path().join("events/header_page"))?;
    let page_size = page_size(&header) as usize;
    for cpu in instance.cpus()? {
        let raw = RawPages::open(instance, cpu, page_size)?;
        let (_, ended) = Pump::start(cpu, raw, folder, stop.clone(), Quota::default())?.join();
        ended.map_err(RecordError::io("write", &folder.path().join(pages(cpu))))?;
        // With the kernel's counts beside all pages it is known what was lost.
        let (_, stats) = CpuStats::now(instance, cpu)?;
        let of_cpu =
            folder.subfolder("per_cpu").and_then(|all| all.subfolder(&format!("cpu{cpu}")));
        let written = of_cpu.and_then(|of_cpu| of_cpu.write_anew("stats", stats.as_bytes()));
        written.map_err(RecordError::io("write", &folder.path().join("per_cpu")))?;
    }
    Ok(())
}
