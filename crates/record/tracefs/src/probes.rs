//! Probes on kernel functions, in an event group of this recording.

mod definition;
mod missed_hits;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::error::{Result, TracefsError};
use crate::events::similar;
use crate::mounted;
use crate::owner::is_removable;

pub(crate) use self::missed_hits::MissedHits;

/// Prefix of group names; the recorder's process id follows.
const PREFIX: &str = "hyperscope_";
/// The file that defines probes.
const DEFINITIONS: &str = "kprobe_events";
/// The list of functions that can be probed; some kernels lack or hide it.
const FUNCTIONS: &str = "available_filter_functions";

/// Probes that were set; drop removes them.
#[derive(Debug)]
pub struct Probes {
    file: PathBuf,
    names: Vec<String>,
}

impl Probes {
    /// Sets probes, each `FUNCTION [ARGUMENTS]`; their events are `hyperscope_PID:FUNCTION`.
    ///
    /// # Errors
    /// When the syntax is wrong, there is no such function, or the kernel refuses.
    pub fn set(tracefs: &Path, probes: &[String]) -> Result<Self> {
        // Checks all before it sets the first: all probes are set, or none.
        let functions =
            probes.iter().map(|probe| definition::function(probe)).collect::<Result<Vec<_>>>()?;
        let mut set = Self { file: tracefs.join(DEFINITIONS), names: Vec::new() };
        for (probe, function) in probes.iter().zip(functions) {
            check(tracefs, function)?;
            let name = event_name(function);
            let line = format!("p:{}/{name} {probe}\n", group());
            mounted::append(&set.file, &line)
                .map_err(|source| TracefsError::Probe { probe: probe.clone(), source })?;
            set.names.push(name);
        }
        Ok(set)
    }

    /// Whether a function can be probed, as far as the kernel lists it.
    #[must_use]
    pub fn can_probe(tracefs: &Path, function: &str) -> bool {
        match fs::File::open(tracefs.join(FUNCTIONS)) {
            Ok(_) => check(tracefs, function).is_ok(),
            Err(_) => is_symbol(function),
        }
    }

    /// Whether a return probe can read the arguments of the call: the tracefs `README` of kernels from 6.9 on says so
    /// (`kernel/trace/trace.c`).
    #[must_use]
    pub fn have_arguments_at_return(tracefs: &Path) -> bool {
        let text = mounted::read(&tracefs.join("README")).unwrap_or_default();
        text.lines().any(says_arguments_at_return)
    }

    /// Removes a dead recorder's probes.
    pub fn remove_of(tracefs: &Path, pid: u32) {
        remove_where(tracefs, |owner| owner == pid);
    }

    /// Counts hits of these probes that the kernel did not record; 0 if the kernel does not count them.
    pub(crate) fn missed_hits(&self) -> MissedHits {
        MissedHits::open(self.file.parent().unwrap_or(Path::new("")), &self.names)
    }

    /// The events, as `SYSTEM:NAME`.
    #[must_use]
    pub fn events(&self) -> Vec<String> {
        self.names.iter().map(|name| format!("{}:{name}", group())).collect()
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        for name in &self.names {
            // The event is disabled by now: its instance is gone.
            let _ = mounted::append(&self.file, &format!("-:{}/{name}\n", group()));
        }
    }
}

fn says_arguments_at_return(line: &str) -> bool {
    line.split_once("kernel return probes support:")
        .is_some_and(|(_, rest)| rest.contains("$arg<N>"))
}

fn group() -> String {
    format!("{PREFIX}{}", std::process::id())
}

/// A valid event name for a probe: `function+8` is not valid.
fn event_name(function: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    function.split(':').next_back().unwrap_or(function).chars().map(fits).collect()
}

/// Checks that the function can be probed. Without the list of functions, the kernel checks it later.
fn check(tracefs: &Path, function: &str) -> Result<()> {
    let function = function.strip_suffix(definition::RETURN).unwrap_or(function);
    let plain = function.split('+').next().unwrap_or(function);
    let plain = plain.split(':').next_back().unwrap_or(plain);
    let Ok(list) = fs::File::open(tracefs.join(FUNCTIONS)) else {
        return Ok(());
    };
    let lines = BufReader::new(list).lines().map_while(std::result::Result::ok);
    let mut names = Vec::new();
    for line in lines {
        let name = line.split_whitespace().next().unwrap_or("");
        if name == plain {
            return Ok(());
        }
        names.push(name.to_owned());
    }
    let similar = similar(plain, names.iter().map(String::as_str));
    Err(TracefsError::NoSuchFunction { name: plain.to_owned(), similar })
}

/// Whether the kernel has a symbol of this name.
fn is_symbol(name: &str) -> bool {
    let Ok(list) = fs::File::open("/proc/kallsyms") else { return false };
    let mut lines = BufReader::new(list).lines().map_while(std::result::Result::ok);
    lines.any(|line| line.split_whitespace().nth(2) == Some(name))
}

/// Removes the probes of killed recorders.
pub(crate) fn remove_stale(tracefs: &Path) {
    remove_where(tracefs, is_removable);
}

fn remove_where(tracefs: &Path, is_gone: impl Fn(u32) -> bool) {
    let file = tracefs.join(DEFINITIONS);
    let Ok(text) = mounted::read(&file) else { return };
    for line in text.lines() {
        // p:GROUP/NAME FUNCTION
        let event = line.split_whitespace().next().and_then(|word| word.split_once(':'));
        let Some(event) = event.map(|(_, event)| event) else { continue };
        let pid = event.strip_prefix(PREFIX).and_then(|rest| rest.split('/').next()?.parse().ok());
        if pid.is_some_and(&is_gone) {
            let _ = mounted::append(&file, &format!("-:{event}\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_of_a_list_with_one_that_is_no_probe() {
        let folder = std::env::temp_dir().join(format!("hyperscope-probes-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let definitions = folder.join(DEFINITIONS);
        fs::write(&definitions, "").unwrap();
        let probes = ["vfs_read x=%di".to_owned(), "vfs_write\n-:theirs/probe".to_owned()];
        let error = Probes::set(&folder, &probes).unwrap_err();
        assert!(matches!(error, TracefsError::NotAProbe { .. }), "{error}");
        assert_eq!(fs::read_to_string(&definitions).unwrap(), "");
        drop(Probes::set(&folder, &probes[..1]).unwrap());
        let group = group();
        let written = format!("p:{group}/vfs_read vfs_read x=%di\n-:{group}/vfs_read\n");
        assert_eq!(fs::read_to_string(&definitions).unwrap(), written);
        fs::remove_dir_all(folder).unwrap();
    }
}
