//! A running lab: its folder, its processes, sessions with its machines.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use labguest::wire::FrameError;

use crate::cache::Cache;
use crate::channel::Channel;
use crate::description::Description;
use crate::error::{LabError, Result, last_lines};
use crate::machine;
use crate::monitor::Monitor;
use crate::processes;
use crate::session::Session;
use crate::watch::Watch;

/// A lab, running or not.
#[derive(Clone, Debug)]
pub struct Lab {
    cache: Cache,
    name: String,
    run: PathBuf,
}

/// The data of `lab status`.
#[derive(Clone, Debug)]
pub struct Status {
    pub name: String,
    /// Its machines; `None` if it was never up.
    pub description: Option<Description>,
    /// The process of its first machine; `None` if it has ended.
    pub pid: Option<i32>,
    /// When it came up.
    pub since: Option<SystemTime>,
}

/// Max time for QEMU to end by itself.
const QUITTING: Duration = Duration::from_secs(3);
/// Max time for a running machine to answer.
const ANSWER: Duration = Duration::from_secs(30);
/// Max time for a machine to read its guest's counters.
const WATCHING: Duration = Duration::from_secs(10);
/// Max attempts to open a session.
const TRIES: u32 = 4;
/// Console lines shown in an error.
const CONSOLE_LINES: usize = 12;

impl Lab {
    /// The lab of this name; it need not be up.
    ///
    /// # Errors
    /// When the name can't be a folder's name.
    pub fn named(cache: &Cache, name: &str) -> Result<Self> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(fits) {
            let text = format!("{name:?} is not a valid lab name: use letters, digits, - and _");
            return Err(LabError::Usage(text));
        }
        let run = cache.run_folder(name);
        // The kernel limits a socket's path to 108 bytes.
        let longest = machine::control_socket(&run.display().to_string(), 0);
        if longest.len() > 100 {
            let text = format!(
                "{} is too long for sockets: set HYPERSCOPE_LAB_DIR to a shorter folder",
                run.display()
            );
            return Err(LabError::Usage(text));
        }
        Ok(Self { cache: cache.clone(), name: name.to_owned(), run })
    }

    /// All labs that are up, or have left files.
    ///
    /// # Errors
    /// When the lab's folder can't be read.
    pub fn all(cache: &Cache) -> Result<Vec<Self>> {
        let folder = cache.folder("run")?;
        let entries = fs::read_dir(&folder).map_err(LabError::io("cannot read", &folder))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut labs: Vec<Self> = names.filter_map(|name| Self::named(cache, &name).ok()).collect();
        labs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(labs)
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder of its sockets and consoles.
    #[must_use]
    pub fn run_folder(&self) -> &Path {
        &self.run
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    pub(crate) fn run_text(&self) -> String {
        self.run.display().to_string()
    }

    /// Whether its first machine runs.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.run.join("lab.json").exists() && !processes::of_run(&self.run).is_empty()
    }

    /// Its machines.
    ///
    /// # Errors
    /// When the lab is not up.
    pub fn description(&self) -> Result<Description> {
        let down = || {
            let name = if self.name == "default" {
                String::new()
            } else {
                format!(" --name {}", self.name)
            };
            LabError::Usage(format!("the lab is not up: `hyperscope lab up{name}` starts it"))
        };
        let description = Description::read(&self.run)?.ok_or_else(down)?;
        if self.is_up() { Ok(description) } else { Err(down()) }
    }

    /// Its status.
    ///
    /// # Errors
    /// When its description can't be read.
    pub fn status(&self) -> Result<Status> {
        let since = fs::metadata(self.run.join("lab.json")).and_then(|file| file.modified()).ok();
        let pid = processes::of_run(&self.run).first().map(|pid| pid.as_raw_nonzero().get());
        Ok(Status {
            name: self.name.clone(),
            description: Description::read(&self.run)?,
            pid,
            since,
        })
    }

    /// Opens a session with a machine.
    ///
    /// # Errors
    /// When the lab is down, has no such machine, or the machine does not answer.
    pub fn session(&self, level: u8) -> Result<Session> {
        let description = self.description()?;
        if level == 0 || level > description.started {
            let has = description.started;
            return Err(LabError::Usage(format!(
                "level {level} does not exist: the lab has levels 1 to {has}"
            )));
        }
        self.open_session(level, ANSWER)
    }

    /// Opens a session; the machine answers once it is up.
    pub(crate) fn open_session(&self, level: u8, wait: Duration) -> Result<Session> {
        let mut tries = 1..=TRIES;
        loop {
            tries.next();
            match self.try_session(level, wait) {
                // A server that has not yet noticed the end of its last client may close the new connection instead.
                Err(LabError::Channel { source: FrameError::Closed, .. })
                    if !tries.is_empty() && !processes::of_run(&self.run).is_empty() => {}
                Err(error) => return Err(self.explain("doesn't answer", error)),
                opened => return opened,
            }
        }
    }

    fn try_session(&self, level: u8, wait: Duration) -> Result<Session> {
        let port = match self.free_port()? {
            Some(port) => port,
            None => self.first_port()?,
        };
        port.1.watched.set(Watch::new(self, level));
        self.through(port, level, wait)
    }

    /// A session for watching a machine's guest; `None` while all ports are in use.
    pub(crate) fn watching_session(&self, level: u8) -> Result<Option<Session>> {
        let port = self.free_port()?;
        port.map(|port| self.through(port, level, WATCHING)).transpose()
    }

    fn through(
        &self,
        (at, channel): (usize, Channel),
        level: u8,
        wait: Duration,
    ) -> Result<Session> {
        let mut session = Session::open(1, channel, wait)?;
        for inner in 2..=level {
            let channel = session.connect(&machine::control_socket(&guest_run(inner), at))?;
            session = Session::open(inner, channel, wait)?;
        }
        Ok(session)
    }

    /// A free control port; `None` while all are in use.
    fn free_port(&self) -> Result<Option<(usize, Channel)>> {
        for at in 0..labguest::wire::PORTS {
            if let Some(lock) = self.cache.try_lock(&self.port_lock(at))? {
                return Ok(Some((at, self.port(at)?.holding(lock))));
            }
        }
        Ok(None)
    }

    /// Waits for the first control port.
    fn first_port(&self) -> Result<(usize, Channel)> {
        let lock = self.cache.lock(&self.port_lock(0))?;
        Ok((0, self.port(0)?.holding(lock)))
    }

    fn port_lock(&self, at: usize) -> String {
        format!("{}-control-{at}", self.name)
    }

    pub(crate) fn port(&self, at: usize) -> Result<Channel> {
        let path = PathBuf::from(machine::control_socket(&self.run_text(), at));
        Channel::connect(&path).map_err(LabError::io("cannot connect to", &path))
    }

    /// Runs a monitor command (QMP) in a machine's QEMU; returns the answer.
    ///
    /// # Errors
    /// When there is no such machine or command, or it fails.
    pub fn ask_monitor(
        &self,
        level: u8,
        command: &str,
        arguments: &serde_json::Value,
    ) -> Result<serde_json::Value> {
        self.monitor(level)?.command(command, arguments)
    }

    pub(crate) fn monitor(&self, level: u8) -> Result<Monitor> {
        let channel = if level == 1 {
            let path = PathBuf::from(machine::monitor_socket(&self.run_text()));
            Channel::connect(&path).map_err(LabError::io("cannot connect to", &path))?
        } else {
            let below = self.open_session(level - 1, ANSWER)?;
            below.connect(&machine::monitor_socket(&guest_run(level)))?
        };
        Monitor::open(channel)
    }

    /// A machine's console output so far.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn console(&self, level: u8) -> Result<Vec<u8>> {
        if level <= 1 {
            let path = PathBuf::from(machine::console_log(&self.run_text()));
            return fs::read(&path).map_err(LabError::io("cannot read", &path));
        }
        let mut text = Vec::new();
        self.open_session(level - 1, ANSWER)?
            .get(&machine::console_log(&guest_run(level)), &mut text)?;
        Ok(text)
    }

    /// Adds the last console output to an error.
    pub(crate) fn explain(&self, what: &str, error: LabError) -> LabError {
        let (level, what) = match error {
            LabError::Channel { source, level } => (level, Err(format!("{what} ({source})"))),
            LabError::Hangs { level, what, .. } => (level, Ok(what)),
            other => return other,
        };
        let console = self.console(level).unwrap_or_default();
        let console = last_lines(&String::from_utf8_lossy(&console), CONSOLE_LINES);
        let qemu = fs::read_to_string(self.run.join("qemu.log")).unwrap_or_default();
        let console = [last_lines(&qemu, CONSOLE_LINES), console].join("\n").trim().to_owned();
        match what {
            Ok(what) => LabError::Hangs { level, what, console },
            Err(what) => LabError::Machine { level, what, console },
        }
    }

    /// Ends all its processes and removes its folder. Succeeds if there is nothing to do.
    ///
    /// # Errors
    /// When the folder can't be removed.
    pub fn down(&self) -> Result<()> {
        let _lock = self.cache.lock(&self.name)?;
        self.end()
    }

    /// [`Lab::down`] for a program that ends while it brings the lab up: it holds the lab's lock itself.
    ///
    /// # Errors
    /// When the folder can't be removed.
    pub fn abandon(&self) -> Result<()> {
        processes::end(&processes::of_run(&self.run), Duration::ZERO);
        self.end()
    }

    /// [`Lab::down`] for a caller that holds the lab's lock.
    pub(crate) fn end(&self) -> Result<()> {
        let pids = processes::of_run(&self.run);
        if !pids.is_empty() {
            let quit = self.monitor(1).and_then(|mut monitor| monitor.quit());
            processes::end(&pids, if quit.is_ok() { QUITTING } else { Duration::ZERO });
        }
        match fs::remove_dir_all(&self.run) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(LabError::io("cannot remove", &self.run)(error))
            }
            _ => Ok(()),
        }
    }
}

/// The folder of a guest's sockets, on the machine below it.
pub(crate) fn guest_run(level: u8) -> String {
    format!("/run/lab/l{level}")
}

/// Removes everything that is cached between runs.
///
/// # Errors
/// When a lab is up, or a file can't be removed.
pub fn clean(cache: &Cache) -> Result<()> {
    if let Some(lab) = Lab::all(cache)?.iter().find(|lab| lab.is_up()) {
        let text =
            format!("the lab {} is up: run `hyperscope lab down --name {0}` first", lab.name);
        return Err(LabError::Usage(text));
    }
    cache.clear()
}
