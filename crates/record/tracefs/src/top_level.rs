//! The top-level buffers and settings, borrowed from other programs. A file notes the settings before anything changes.
//! They are restored at the end, or by the next recorder if the borrower was killed.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Result, TracefsError};
use crate::instance::Instance;
use crate::mounted::{self, Tracefs, append};
use crate::owner::is_removable;

/// Folder of the notes. Only root writes there. A reboot empties it and resets the kernel's settings as well.
const FOLDER: &str = "/run";
const PREFIX: &str = "hyperscope-";
const SUFFIX: &str = ".tracefs";

/// The restored settings, in this order. `tracing_on` comes last, after all others are restored.
const SETTINGS: [&str; 11] = [
    "current_tracer",
    "set_ftrace_filter",
    "set_ftrace_notrace",
    "set_graph_function",
    "set_graph_notrace",
    "max_graph_depth",
    "set_ftrace_pid",
    "set_event_pid",
    "trace_clock",
    "buffer_size_kb",
    "tracing_on",
];

/// Filters of what is traced: opening these lists for writing empties them.
const NARROW: [&str; 6] = [
    "set_ftrace_filter",
    "set_ftrace_notrace",
    "set_graph_function",
    "set_graph_notrace",
    "set_ftrace_pid",
    "set_event_pid",
];

/// Borrows the top-level buffers, and empties them.
///
/// # Errors
/// When another program traces with them, or their settings can't be saved.
pub(crate) fn take(tracefs: &Tracefs) -> Result<Instance> {
    let top = Instance::top(tracefs);
    let tracer = top.get("current_tracer")?;
    if tracer.trim() != "nop" || !top.enabled()?.is_empty() {
        return Err(TracefsError::TopLevelInUse);
    }
    let mut note = String::new();
    for name in SETTINGS {
        // A file that the kernel lacks needs no restore.
        let Ok(text) = top.get(name) else { continue };
        let lines: Vec<&str> = text.lines().collect();
        note += &format!("{name} {}\n{text}", lines.len());
        note += if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    }
    let path = path(std::process::id());
    let written = fs::create_dir_all(FOLDER).and_then(|()| {
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(note.as_bytes())?;
        file.sync_all()
    });
    written.map_err(TracefsError::io("write", &path))?;
    let top = top.borrowed(std::process::id());
    top.set("tracing_on", "0")?;
    // Empties the buffers, and resets their counts.
    top.set("trace", "")?;
    for name in NARROW.into_iter().filter(|name| top.file(name).exists()) {
        top.set(name, "")?;
    }
    if top.file("max_graph_depth").exists() {
        top.set("max_graph_depth", "0")?;
    }
    Ok(top)
}

/// Whether a process has borrowed the buffers.
pub(crate) fn is_taken_by(pid: u32) -> bool {
    path(pid).is_file()
}

/// Restores what a process has borrowed, then removes the note.
pub(crate) fn give_back(root: &Path, pid: u32) {
    let path = path(pid);
    let Ok(note) = fs::read_to_string(&path) else { return };
    let _ = mounted::write(&root.join("tracing_on"), "0");
    let _ = mounted::write(&root.join("events/enable"), "0");
    let _ = mounted::write(&root.join("trace"), "");
    for (name, text) in settings(&note) {
        let _ = set(&root.join(name), name, &text);
    }
    let _ = fs::remove_file(path);
}

/// Restores what dead processes have borrowed.
pub(crate) fn remove_stale(root: &Path) {
    for entry in fs::read_dir(FOLDER).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX));
        if let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok())
            && is_removable(pid)
        {
            give_back(root, pid);
        }
    }
}

fn path(pid: u32) -> PathBuf {
    Path::new(FOLDER).join(format!("{PREFIX}{pid}{SUFFIX}"))
}

/// The known settings in a note, with their text.
fn settings(note: &str) -> Vec<(&'static str, String)> {
    let mut lines = note.lines();
    let mut found = Vec::new();
    while let Some((name, count)) = lines.next().and_then(|line| line.split_once(' ')) {
        let count = count.parse().unwrap_or(0);
        let text: Vec<&str> = lines.by_ref().take(count).collect();
        if let Some(known) = SETTINGS.iter().find(|known| **known == name) {
            found.push((*known, text.join("\n")));
        }
    }
    found
}

/// Writes a tracefs file so that it reads as before.
fn set(path: &Path, name: &str, text: &str) -> Result<()> {
    match name {
        // The selected clock is in brackets.
        "trace_clock" => {
            let chosen =
                text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
            mounted::write(path, chosen.unwrap_or("local"))
        }
        // Kernels show "7 (expanded: 1408)" for a buffer that was never used. If the CPUs have different sizes, they
        // show X, which can't be set with one write.
        "buffer_size_kb" => {
            let digits = text.rsplit(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty());
            digits.map_or(Ok(()), |kib| mounted::write(path, kib))
        }
        "current_tracer" | "max_graph_depth" | "tracing_on" => mounted::write(path, text.trim()),
        // Lists: a line that begins with # means an empty list. Opening the file for writing empties it.
        _ => {
            mounted::write(path, "")?;
            let is_entry = |line: &&str| !line.starts_with('#') && *line != "no pid";
            for line in text.lines().filter(is_entry) {
                // Lines like "function:traceon:unlimited" are another program's commands, which stay anyway.
                let _ = append(path, &format!("{line}\n"));
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_were_written() {
        let note = "current_tracer 1\nnop\nset_ftrace_filter 2\nschedule\nvfs_read [x]\nelse 1\na\n\
                    set_event_pid 0\ntrace_clock 1\nlocal [global] mono\n";
        let read = settings(note);
        let expected = [
            ("current_tracer", "nop"),
            ("set_ftrace_filter", "schedule\nvfs_read [x]"),
            ("set_event_pid", ""),
            ("trace_clock", "local [global] mono"),
        ];
        assert!(read.iter().map(|(name, text)| (*name, text.as_str())).eq(expected), "{read:?}");
    }

    #[test]
    fn files_get_back_what_they_showed() {
        let folder = std::env::temp_dir().join(format!("hyperscope-top-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let back = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, "something else").unwrap();
            set(&path, name, text).unwrap();
            fs::read_to_string(path).unwrap()
        };
        assert_eq!(back("trace_clock", "local [global] mono"), "global");
        assert_eq!(back("buffer_size_kb", "7 (expanded: 1408)"), "1408");
        assert_eq!(back("buffer_size_kb", "X"), "something else");
        assert_eq!(back("set_ftrace_filter", "#### all functions enabled ####").trim(), "");
        assert_eq!(back("set_graph_function", "schedule\nvfs_read").trim(), "schedule\nvfs_read");
        assert_eq!(back("set_event_pid", "no pid").trim(), "");
        assert_eq!(back("tracing_on", "1"), "1");
        fs::remove_dir_all(folder).unwrap();
    }
}
