//! Records level 1 by `hyperscope record`, this very program, put there first.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use labwire::{Ended, Put};

use crate::arch::Arch;
use crate::error::{LabError, Result, last_lines};
use crate::lab::Lab;
use crate::scenario::Record;
use crate::session::{Outputs, Session, command};

/// Where the program goes.
const PROGRAM: &str = "/bin/hyperscope";
/// Where its session goes.
const FOLDER: &str = "/tmp/record.hscope";
/// What it says once it records.
const BEGUN: &str = "hyperscope: recording";
/// The signal that ends it (SIGINT).
const INTERRUPT: i32 = 2;
/// How long it may take to begin, and to write what it recorded.
const PATIENCE: Duration = Duration::from_secs(120);

/// A recording that goes on.
pub(crate) struct OwnRecording {
    session: Session,
    said: String,
}

/// Whether this program runs in level 1: it is of this system's architecture, and needs a C library
/// that is not older than this system's.
pub(crate) fn can_run(lab: &Lab, arch: Arch) -> Result<bool> {
    if arch != Arch::native() {
        return Ok(false);
    }
    let mut session = lab.session(1)?;
    put_program(&mut session)?;
    Ok(session.check(&[PROGRAM, "--version"], PATIENCE).is_ok())
}

impl OwnRecording {
    /// Begins to record level 1 of a lab in which this program runs.
    pub(crate) fn begin(lab: &Lab, record: &Record) -> Result<Self> {
        let mut session = lab.session(1)?;
        session.check(&["rm", "-rf", FOLDER], PATIENCE)?;
        let words = words(record);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut exec = command(&words, PATIENCE);
        // It ends when it is told to.
        exec.timeout_ms = None;
        session.start(&exec)?;
        let mut recording = Self { session, said: String::new() };
        while !recording.said.contains(BEGUN) {
            if let Some(ended) = recording.attend()? {
                return Err(recording.failed(ended));
            }
        }
        Ok(recording)
    }

    /// Ends the recording; the file is complete then.
    pub(crate) fn end(mut self) -> Result<Vec<(String, &'static str)>> {
        let told = self.session.input().signal(INTERRUPT);
        told.map_err(|error| LabError::Channel { level: 1, source: error.into() })?;
        let ended = loop {
            if let Some(ended) = self.attend()? {
                break ended;
            }
        };
        if ended != Ended::Exit(0) {
            return Err(self.failed(ended));
        }
        let file = |name: &'static str| (format!("{FOLDER}/{name}"), name);
        Ok(vec![file("host.dat"), file("session.json")])
    }

    fn attend(&mut self) -> Result<Option<Ended>> {
        let Self { session, said } = self;
        let mut outputs = Outputs {
            stdout: &mut |_| {},
            stderr: &mut |bytes| said.push_str(&String::from_utf8_lossy(bytes)),
        };
        session.attend(&mut outputs)
    }

    fn failed(&self, ended: Ended) -> LabError {
        LabError::Command {
            command: format!("hyperscope record ({ended:?})"),
            said: last_lines(&self.said, 8),
        }
    }
}

fn put_program(session: &mut Session) -> Result<()> {
    let unknown = Path::new("this program");
    let path = std::env::current_exe().map_err(LabError::io("cannot find", unknown))?;
    let mut file = File::open(&path).map_err(LabError::io("cannot read", &path))?;
    session.put(&Put { path: PROGRAM.into(), mode: 0o755 }, &mut file)
}

fn words(record: &Record) -> Vec<String> {
    let mut words: Vec<String> = [PROGRAM, "record", "-o", FOLDER].map(str::to_owned).into();
    words.extend(["--buffer".to_owned(), record.buffer_kib.to_string()]);
    words.extend(record.events.iter().flat_map(|event| ["-e".to_owned(), event.clone()]));
    words.extend(record.probes.iter().flat_map(|probe| ["--kprobe".to_owned(), probe.clone()]));
    words
}
