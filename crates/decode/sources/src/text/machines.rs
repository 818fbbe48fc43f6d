//! The recordings in a text: a tool that prints several recordings puts their names before the
//! lines.
//!
//! `trace-cmd report` does so for files and for the buffers of a file, `hyperscope events` for
//! machines. A name is a buffer if the file's top-level buffer has lines without a name.

use std::path::{Path, PathBuf};

use sys::FileMap;

use super::first_look::FirstLook;
use super::line::{Line, Read, Why};
use super::lines;
use super::refusal::Refusal;

/// Maximum recordings in a text, and buffers of a recording.
const MAX_NAMES: usize = 64;

/// All recordings in a text, after the first pass over all lines.
#[derive(Debug, Default)]
pub(super) struct Machines {
    list: Vec<Machine>,
    /// The recording of lines without a name, which belong to its top-level buffer.
    unnamed: Option<usize>,
    /// Recording and buffer of the previous line.
    current: Option<(usize, usize)>,
    /// The previous line reports a loss.
    after_loss: bool,
    in_dump: bool,
    pub(super) refusal: Refusal,
}

/// A recording in a text.
#[derive(Debug, Default)]
pub(super) struct Machine {
    /// The name that the tool prints; empty if it prints none.
    pub(super) name: String,
    pub(super) look: FirstLook,
}

impl Machines {
    pub(super) fn read(file: &FileMap) -> Self {
        let mut machines = Self::default();
        for (number, at) in (1_u64..).zip(lines(file)) {
            let text = at.text();
            let Read { recording, is_of_log, line } = Read::new(&text);
            machines.refusal.see(number, &text);
            if let Line::Unreadable(why) = line {
                machines.refusal.line(&text, why);
            }
            machines.in_dump ^= line == Line::DumpBorder;
            let is_message = is_of_log && !machines.in_dump;
            if is_message && matches!(line, Line::Unreadable(_)) {
                continue;
            }
            let place = machines.place(recording, &line);
            machines.current = place.or(machines.current);
            let (machine, buffer) = place.unwrap_or_default();
            let line = if place.is_none() { Line::Unreadable(Why::Recording) } else { line };
            if let Some(machine) = machines.list.get_mut(machine) {
                machine.look.line(number, &at, buffer, &line);
            }
        }
        machines.finish();
        machines
    }

    /// The recordings that have events or losses.
    pub(super) fn traces(self) -> Vec<Machine> {
        self.list
    }

    /// Recording and buffer of a line; `None` if there are too many.
    fn place(&mut self, name: Option<&str>, line: &Line<'_>) -> Option<(usize, usize)> {
        let is_of_recording = matches!(line, Line::Event(_) | Line::Lost { .. } | Line::Cpus(_));
        let follows_loss =
            std::mem::replace(&mut self.after_loss, matches!(line, Line::Lost { .. }));
        match name.filter(|_| is_of_recording) {
            Some(name) => self.named(name),
            // trace-cmd prints the recording's name before the loss, and not before the event after
            // it.
            None if follows_loss && self.current.is_some() => self.current,
            None => {
                let is_of_trace = is_of_recording || matches!(line, Line::Head(_));
                if self.unnamed.is_none()
                    && is_of_trace
                    && self.list.iter().all(|machine| machine.name.is_empty())
                {
                    self.unnamed = Some(self.unnamed_place());
                }
                let unnamed = self.unnamed.filter(|_| is_of_trace).map(|at| (at, 0));
                unnamed.or(self.current).or_else(|| Some((self.unnamed_place(), 0)))
            }
        }
    }

    /// Index of the recording without a name, which may be new.
    fn unnamed_place(&mut self) -> usize {
        let known = self.list.iter().position(|machine| machine.name.is_empty());
        known.unwrap_or_else(|| self.add(""))
    }

    fn named(&mut self, name: &str) -> Option<(usize, usize)> {
        if let Some(at) = self.unnamed {
            let buffers = &mut self.list.get_mut(at)?.look.buffers;
            let known = buffers.iter().position(|buffer| buffer == name);
            let buffer = known.unwrap_or(buffers.len());
            if known.is_none() && buffer < MAX_NAMES {
                buffers.push(name.to_owned());
            }
            return (buffer < MAX_NAMES).then_some((at, buffer));
        }
        let known = self.list.iter().position(|machine| machine.name == name);
        let at = known.or_else(|| (self.list.len() < MAX_NAMES).then(|| self.add(name)))?;
        Some((at, 0))
    }

    fn add(&mut self, name: &str) -> usize {
        let mut machine = Machine { name: name.to_owned(), look: FirstLook::default() };
        machine.look.buffers.push(String::new());
        self.list.push(machine);
        self.list.len() - 1
    }

    /// Lines before the first name belong to the first recording.
    fn finish(&mut self) {
        let lines: u64 = self
            .list
            .iter()
            .filter(|machine| !machine.look.is_trace())
            .map(|machine| machine.look.before)
            .sum();
        self.list.retain(|machine| machine.look.is_trace());
        if let Some(machine) = self.list.first_mut() {
            machine.look.before += lines;
        }
        self.list.iter_mut().for_each(|machine| machine.look.finish());
    }
}

impl Machine {
    /// The path of its recording, with its name if the text has several.
    pub(super) fn path(&self, text: &Path, several: bool) -> PathBuf {
        if !several {
            return text.to_owned();
        }
        let mut path = text.as_os_str().to_owned();
        path.push(format!(":{}", if self.name.is_empty() { "host" } else { &self.name }));
        path.into()
    }

    /// The VM name for a recording with this name.
    pub(super) fn vm(&self) -> &str {
        let name = self.name.strip_suffix(".dat").unwrap_or(&self.name);
        name.strip_prefix("guest-").unwrap_or(name)
    }
}

/// Which of several machines is the host: the one with this name, otherwise the first that runs
/// guests, otherwise the first.
pub(super) fn host(machines: &[Machine]) -> usize {
    let is_called = |machine: &Machine| matches!(machine.name.as_str(), "" | "host" | "host.dat");
    let called = machines.iter().position(is_called);
    let runs_guests = || machines.iter().position(|machine| machine.look.events.has("kvm"));
    called.or_else(runs_guests).unwrap_or(0)
}
