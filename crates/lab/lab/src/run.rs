//! Runs scenarios: executes their steps in a lab, records, and copies out the recordings and the truth.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use labguest::wire::{Ended, Put, Truth};
use serde_json::json;
use session_json::{Machine, SCHEMA, Session};

use crate::arch::Arch;
use crate::description::Description;
use crate::error::{LabError, Result};
use crate::hyperscope_recorder::{self, HyperscopeRecording};
use crate::lab::Lab;
use crate::machine_programs;
use crate::scenario::{Record, RunStep, Scenario, Step};
use crate::session::command;
use crate::trace_cmd::TraceCmd;
use crate::up::{ProgressFn, Step as UpStep};

/// Max time for one command of a scenario.
const COMMAND: Duration = Duration::from_secs(600);
/// Path in the guest of the module that reports to its host by hypercall, after it was copied there.
pub const MODULE: &str = "/lab/hyperscope_guest.ko";
/// Max time for a machine to shut down.
const SHUT_DOWN: Duration = Duration::from_secs(60);

impl Lab {
    /// Runs a scenario in this lab, which is up and fits it, and writes a session to a folder: recordings,
    /// `session.json` and `truth.json`.
    ///
    /// # Errors
    /// When a step fails, or a file can't be written.
    pub fn run(
        &self,
        scenario: &Scenario,
        to: &Path,
        report: ProgressFn<'_>,
    ) -> Result<Vec<Truth>> {
        let description = self.description()?;
        let progress = |text: String| report(UpStep { text, usual: None });
        fs::create_dir_all(to).map_err(LabError::io("cannot make", to))?;
        progress("preparing".into());
        let module = scenario.needs_module();
        if module && description.started > 1 {
            self.put_module(2)?;
        }
        let mut run = ScenarioRun { description: &description, module, recorder: None };
        self.steps(&mut run, &scenario.before, &mut Vec::new())?;
        progress("recording".into());
        let mut recording = Recorder::begin(self, &description, &scenario.record)?;
        let mut truth = scenario.truth.clone();
        run.recorder = Some(&mut recording);
        let done = self.steps(&mut run, &scenario.steps, &mut truth);
        // Always ends the recording, which would otherwise run forever.
        progress("writing the recording".into());
        let files = recording.end(self, &scenario.record);
        done?;
        self.bring_out(&files?, to)?;
        write_session(scenario, to)?;
        write_truth(scenario, &truth, to)?;
        Ok(truth)
    }

    /// Copies the module that reports to the host by hypercall to the guest of a level, as [`MODULE`].
    ///
    /// # Errors
    /// When it was not built for the guest's kernel, or the guest does not answer.
    pub fn put_module(&self, level: u8) -> Result<()> {
        let mut session = self.session(level)?;
        let output = session.output(&command(&["uname", "-r"], COMMAND))?;
        let release = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let path = machine_programs::kernel_module(&release)?;
        let mut file = File::open(&path).map_err(LabError::io("cannot read", &path))?;
        session.put(&Put { path: MODULE.into(), mode: 0o644 }, &mut file)
    }

    fn steps(
        &self,
        run: &mut ScenarioRun<'_>,
        steps: &[Step],
        truth: &mut Vec<Truth>,
    ) -> Result<()> {
        let description = run.description;
        for step in steps {
            match step {
                Step::Run(run) if run.arch.is_none_or(|arch| arch == description.arch) => {
                    truth.extend(self.run_step(run)?);
                }
                Step::Run(_) => {}
                Step::Start { level } => {
                    self.start_level(description, *level)?;
                    if *level == 2 && run.module {
                        self.put_module(2)?;
                    }
                }
                Step::ShutDown { level } => self.shut_down(*level)?,
                Step::TakeGuest => {
                    if let Some(recorder) = &mut run.recorder {
                        recorder.take_guest(self)?;
                    }
                }
                Step::Wait { seconds } => std::thread::sleep(Duration::from_secs(*seconds)),
            }
        }
        Ok(())
    }

    /// Runs a command that must succeed; its output tells what the recording must contain.
    fn run_step(&self, run: &RunStep) -> Result<Vec<Truth>> {
        let words: Vec<&str> = run.argv.iter().map(String::as_str).collect();
        let mut session = self.session(run.level)?;
        let output = session.output(&command(&words, COMMAND))?;
        if output.ended != Ended::Exit(0) {
            let all = [output.stdout, output.stderr].concat();
            let text = format!(
                "`{}`: {:?}: {}",
                words.join(" "),
                output.ended,
                String::from_utf8_lossy(&all).trim_end()
            );
            return Err(LabError::Refused { level: run.level, text });
        }
        if !run.truth {
            return Ok(Vec::new());
        }
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        let not_json = |error| {
            LabError::Usage(format!("`{}` printed no valid counts: {error}", words.join(" ")))
        };
        lines.lines().map(|line| serde_json::from_str(line).map_err(not_json)).collect()
    }

    /// Copies the recordings out.
    pub(crate) fn bring_out(&self, files: &[(String, &str)], to: &Path) -> Result<()> {
        let mut session = self.session(1)?;
        for (from, name) in files {
            let path = to.join(name);
            let mut file = File::create(&path).map_err(LabError::io("cannot write", &path))?;
            session.get(from, &mut file)?;
            file.flush().map_err(LabError::io("cannot write", &path))?;
        }
        Ok(())
    }

    /// Starts level 2 with another description, instead of the running one, whose QEMU is killed as in a power failure.
    ///
    /// # Errors
    /// When level 1 does not answer, or the guest does not boot.
    pub fn replace_guest(&self, description: &Description) -> Result<()> {
        let qemu = description.arch.qemu();
        let script = format!(
            "kill -9 $(pidof {qemu}) 2>/dev/null; while pidof {qemu} >/dev/null; do sleep 0.05; done"
        );
        self.session(1)?.check(&["sh", "-c", &script], SHUT_DOWN)?;
        self.start_level(description, 2)
    }

    /// Starts a machine, and notes that it is up.
    fn start_level(&self, description: &Description, level: u8) -> Result<()> {
        self.start_guest(description, level)?;
        Description { started: level, ..description.clone() }.write(self.run_folder())
    }

    /// Shuts a machine down, and notes that it is not up.
    fn shut_down(&self, level: u8) -> Result<()> {
        let mut exec = command(&["sh", "-c", "sync; reboot -f"], SHUT_DOWN);
        exec.detach_to = Some("/tmp/shut-down.log".into());
        self.session(level)?.output(&exec)?;
        let ended = format!(
            "until ! pidof {} >/dev/null; do sleep 0.05; done",
            self.description()?.arch.qemu()
        );
        self.session(level - 1)?.check(&["sh", "-c", &ended], SHUT_DOWN)?;
        Description { started: level - 1, ..self.description()? }.write(self.run_folder())
    }
}

/// Context of the steps.
struct ScenarioRun<'d> {
    description: &'d Description,
    /// A guest that starts gets the module that reports to its host by hypercall.
    module: bool,
    /// The running recorder.
    recorder: Option<&'d mut Recorder>,
}

/// The error of a recording that only hyperscope supports.
fn missing(what: &str, arch: Arch, record: &Record) -> LabError {
    let why = if record.has_guest() && machine_programs::agent(arch).is_none() {
        "and the guest's agent, which it needs, is missing next to it"
    } else {
        "which does not run in level 1"
    };
    LabError::Usage(format!("{what}, {why}"))
}

/// The recorder: hyperscope, unless it does not run there.
enum Recorder {
    Hyperscope(HyperscopeRecording),
    TraceCmd(TraceCmd),
}

impl Recorder {
    fn begin(lab: &Lab, description: &Description, record: &Record) -> Result<Self> {
        if hyperscope_recorder::can_run(lab, description.arch, record)? {
            HyperscopeRecording::begin(lab, record).map(Self::Hyperscope)
        } else if record.sample_hz.or(record.guest_sample_hz).is_some() {
            Err(missing("samples are taken by hyperscope", description.arch, record))
        } else if !record.guest_probes.is_empty() {
            let what = "probes of the guest's agent are for hyperscope";
            Err(missing(what, description.arch, record))
        } else if record.hypercalls {
            Err(missing("hypercalls are collected by hyperscope", description.arch, record))
        } else {
            TraceCmd::begin(lab, record).map(Self::TraceCmd)
        }
    }

    /// Starts recording a guest that has booted; trace-cmd does not support this.
    fn take_guest(&mut self, lab: &Lab) -> Result<()> {
        match self {
            Self::Hyperscope(recording) => recording.take_guest(lab),
            Self::TraceCmd(_) => Ok(()),
        }
    }

    /// Ends the recording; returns files in level 1, and their names outside.
    fn end(self, lab: &Lab, record: &Record) -> Result<Vec<(String, &'static str)>> {
        match self {
            Self::Hyperscope(recording) => recording.end(lab),
            Self::TraceCmd(recording) => recording.end(lab, record),
        }
    }
}

/// Writes `session.json`, but keeps the recorder's part of it.
fn write_session(scenario: &Scenario, to: &Path) -> Result<()> {
    let recorded = Session::read(to).ok().and_then(|session| session.recorded);
    let mut machines = vec![Machine::host()];
    if to.join("guest-l2.dat").exists() {
        machines.push(Machine::guest("guest-l2.dat", "l2"));
    }
    let title = scenario.summary.clone();
    let session = Session { schema: SCHEMA.to_owned(), title, machines, recorded };
    let path = to.join(session_json::FILE);
    let written = session.to_text().and_then(|text| fs::write(&path, text));
    written.map_err(LabError::io("cannot write", &path))
}

fn write_truth(scenario: &Scenario, truth: &[Truth], to: &Path) -> Result<()> {
    let all = json!({
        "schema": "hyperscope.lab.truth/1",
        "scenario": scenario.name,
        "truth": truth,
    });
    write_json(&all, &to.join("truth.json"))
}

fn write_json(value: &serde_json::Value, path: &Path) -> Result<()> {
    fs::write(path, format!("{value:#}\n")).map_err(LabError::io("cannot write", path))
}
