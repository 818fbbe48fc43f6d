//! Opens the recordings named on the command line.
//!
//! A path is a recording (a trace.dat, or a folder with ring-buffer pages or a CTF trace) or a session: a
//! folder with the recordings of one run, `host.dat` and `guest-*.dat`. `-` is standard input.

use std::fs;
use std::path::{Path, PathBuf};

use analyses::machine_names::guest_of;
use anyhow::{Context, bail};
use sources::{OpenError, OpenFault, Recording, guest_named};

use crate::Misuse;
use crate::belonging::{refuse_guest_of_another, refuse_other_processor};
use crate::say;
use crate::vm_names::{VmNames, name_vms};

/// The host's recording in a session folder.
const HOST: &str = "host.dat";
/// The pages and metadata that a killed recorder leaves instead of [`HOST`].
const UNFINISHED: &str = "host.pages";
/// The first file of a folder that `perf record --threads` writes.
const OF_PERF: &str = "data";

/// Opens all files, in their order; those of a session in the order host, guests.
///
/// # Errors
/// At the first file that is no recording, is unreadable throughout, or is named twice.
pub(crate) fn open_all(paths: &[PathBuf], names: &VmNames) -> anyhow::Result<Vec<Recording>> {
    let mut expanded = Vec::new();
    for path in paths {
        let members = expand(path)?;
        let is_session = members.len() > 1;
        expanded.extend(members.into_iter().map(|member| (member, is_session)));
    }
    let members: Vec<PathBuf> = expanded.iter().map(|(path, _)| path.clone()).collect();
    refuse_twice(&members)?;
    let mut recordings = Vec::new();
    for (path, is_session) in &expanded {
        let opened = sources::open_each(path)?;
        match refuse_unreadable(path, &opened) {
            // A guest's bad file must not make the rest of its session unreadable.
            Err(why) if *is_session && guest_named(path).is_some() => say(&format!("{why:#}")),
            readable => readable?,
        }
        recordings.extend(opened);
    }
    name_vms(&mut recordings, names)?;
    Ok(recordings)
}

/// Refuses a path whose recordings are unreadable throughout.
fn refuse_unreadable(path: &Path, recordings: &[Recording]) -> anyhow::Result<()> {
    for recording in recordings {
        // A recorder that was killed early leaves a folder without any events.
        let has_begun =
            !recording.streams().is_empty() || path.extension() != Some("pages".as_ref());
        if let Some(why) = recording.nothing_readable().filter(|_| has_begun) {
            return Err(
                OpenError::new(recording.path(), OpenFault::Refused(why.to_string())).into()
            );
        }
    }
    Ok(())
}

/// The recordings' names without their folders, for a title.
#[must_use]
pub fn file_names(recordings: &[Recording]) -> String {
    let names = recordings.iter().filter_map(|recording| recording.path().file_name());
    let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
    names.join(", ")
}

/// The recordings that a path names.
fn expand(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if path == Path::new("-") {
        return Ok(vec![PathBuf::from("/dev/stdin")]);
    }
    if !path.is_dir() || path.join("events").is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut guests = Vec::new();
    for entry in fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))? {
        let entry = entry.with_context(|| format!("cannot read {}", path.display()))?;
        if is_guest(&entry.path()) {
            guests.push(entry.path());
        }
    }
    guests.sort();
    let (host, unfinished) = (path.join(HOST), path.join(UNFINISHED));
    let host = if host.is_file() { Some(host) } else { unfinished.is_dir().then_some(unfinished) };
    let recordings: Vec<PathBuf> = host.into_iter().chain(guests).collect();
    // The reader of this file explains why folders of `perf record --threads` are not supported.
    let of_perf = path.join(OF_PERF);
    if recordings.is_empty() && of_perf.is_file() {
        return Ok(vec![of_perf]);
    }
    if recordings.is_empty() && sources::is_ctf(path)? {
        return Ok(vec![path.to_owned()]);
    }
    if recordings.is_empty() {
        let why = format!(
            "no recording found: a session folder contains {HOST} or guest-NAME.dat, a folder of ring-buffer pages contains an \
             events folder, and a CTF trace contains a file called metadata"
        );
        return Err(OpenError::new(path, OpenFault::Refused(why)).into());
    }
    Ok(recordings)
}

/// Whether a path is `guest-NAME.dat`, or the folder of pages that a killed recorder left instead.
fn is_guest(path: &Path) -> bool {
    let is = |kind: &str| path.extension().is_some_and(|extension| extension == kind);
    let is_unfinished =
        || is("pages") && path.join("events").is_dir() && !path.with_extension("dat").exists();
    guest_named(path).is_some() && (is("dat") || is_unfinished())
}

/// Refuses a file that is named twice, by whatever path: its events would count twice.
///
/// # Errors
/// When there is such a file.
pub fn refuse_twice(paths: &[PathBuf]) -> anyhow::Result<()> {
    let mut seen = Vec::new();
    for path in paths {
        // A path that can't be resolved can't be opened either: opening it reports the error.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        if seen.contains(&place) {
            bail!(Misuse(format!("{} is given twice; give each recording once", path.display())));
        }
        seen.push(place);
    }
    Ok(())
}

/// Whether a recording was made inside a guest: another recording names it so, or it does itself.
#[must_use]
pub fn is_of_guest(recording: &Recording, all: &[Recording]) -> bool {
    recording.peer().is_some() || all.iter().any(|host| guest_of(recording, host).is_some())
}

/// Prints a note if a verb that analyses hosts gets only recordings of guests.
pub(crate) fn note_guests_alone(recordings: &[Recording]) {
    if recordings.iter().all(|recording| is_of_guest(recording, recordings)) {
        for recording in recordings {
            say(&format!(
                "{}: recorded in a guest; add the recording of its host to see what the host did",
                recording.path().display()
            ));
        }
    }
}

/// Gives each host's recording the symbols of the guest recorded with it.
///
/// # Errors
/// When a host was recorded with several guests: an exit's address doesn't identify its guest.
pub(crate) fn name_guest_functions(recordings: &mut [Recording]) -> anyhow::Result<()> {
    let mut pairs = Vec::new();
    for (at, host) in recordings.iter().enumerate() {
        let guests: Vec<usize> = (0..recordings.len())
            .filter(|&other| {
                let belongs = |guest| other != at && runs_on(guest, host);
                recordings.get(other).is_some_and(belongs)
            })
            .collect();
        match guests.as_slice() {
            [] => {}
            [guest] => pairs.push((at, *guest)),
            _ => bail!(
                "--by symbol can name the functions of only one guest at a time; pass {} with the recording of one guest",
                host.path().display()
            ),
        }
    }
    // Recordings without information about each other, given as "host guest".
    if let ([], [host, guest]) = (pairs.as_slice(), &*recordings) {
        refuse_other_processor(guest, host)?;
        refuse_guest_of_another(guest, recordings)?;
        pairs.push((0, 1));
    }
    if pairs.is_empty() {
        say("no guest recording given: guest functions are shown as addresses");
    }
    for (host, guest) in pairs {
        if let Ok([host, guest]) = recordings.get_disjoint_mut([host, guest]) {
            host.set_guest_symbols(guest);
        }
    }
    Ok(())
}

/// Whether either recording names the other as its guest or its host.
fn runs_on(guest: &Recording, host: &Recording) -> bool {
    let aligned = guest.peer().is_some() && guest.peer() == host.trace_id();
    aligned || guest_of(guest, host).is_some()
}
