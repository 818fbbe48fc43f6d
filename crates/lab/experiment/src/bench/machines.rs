//! The lab's two machines, with the programs that measurements need.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::{Ended, Exec, Lab, Outputs, Put, Session};
use labguest::wire::{Measured, Usage};

use crate::bench::device::{Device, LIST};
use crate::bench::error::{BenchError, Result};

/// Overrides the path of the agent's program.
const VARIABLE: &str = "HYPERSCOPE_AGENT";
/// Max time of a step in a machine: a run, or writing a recording. It also detects a guest that hangs.
const PATIENCE: Duration = Duration::from_secs(90);
/// The folder of all files, in both machines.
pub(crate) const FOLDER: &str = "/tmp/bench";

/// A program that runs in the background in a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) pid: u32,
}

/// The begin or end of a measured workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Boundary {
    Begin,
    End,
}

/// A session with a machine.
#[derive(Debug)]
pub(crate) struct BootedMachine {
    session: Session,
    /// Max time of a script.
    patience: Duration,
}

/// Host and guest.
#[derive(Debug)]
pub(crate) struct BootedMachines {
    /// Level 1: the guest's host.
    pub(crate) host: BootedMachine,
    /// Level 2.
    pub(crate) guest: BootedMachine,
    /// The guest's devices.
    pub(crate) devices: Vec<Device>,
    /// The process on this system that executes them.
    executor: Option<i32>,
}

impl BootedMachines {
    /// Copies the programs to the machines of a running lab.
    pub(crate) fn prepare(lab: &Lab) -> Result<Self> {
        let program = hyperscope()?;
        let mut machines = Self::at(lab, 2, &program)?;
        machines.guest.put(&agent(&program)?, "/bin/hyperscope-agent")?;
        machines.devices = Device::parse(&machines.guest.shell(LIST)?);
        Ok(machines)
    }

    /// A guest with the module that reports its events, and its host with hyperscope.
    pub(crate) fn with_module(lab: &Lab, level: u8) -> Result<Self> {
        lab.put_module(level)?;
        Self::at(lab, level, &hyperscope()?)
    }

    /// The guest of this level and its host, which gets hyperscope.
    fn at(lab: &Lab, level: u8, program: &Path) -> Result<Self> {
        let mut host = BootedMachine::at_level(lab, level - 1)?;
        let mut guest = BootedMachine::at_level(lab, level)?;
        host.put(program, "/bin/hyperscope")?;
        host.shell(&format!("mkdir -p {FOLDER}"))?;
        guest.shell(&format!("mkdir -p {FOLDER}"))?;
        Ok(Self { host, guest, devices: Vec::new(), executor: lab.status()?.pid })
    }

    /// CPU time of executing all machines so far.
    pub(crate) fn executor_cpu_ns(executor: Option<i32>) -> u64 {
        sum_of_threads(executor, 0)
    }

    /// For how long the threads that execute all machines have waited for a CPU of this system.
    pub(crate) fn executor_waits_ns(executor: Option<i32>) -> u64 {
        sum_of_threads(executor, 1)
    }

    /// The process on this system that executes the machines.
    pub(crate) fn executor(&self) -> Option<i32> {
        self.executor
    }
}

/// The sum of a column of `schedstat` over the threads of a process.
fn sum_of_threads(process: Option<i32>, column: usize) -> u64 {
    let Some(pid) = process else { return 0 };
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let times = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().nth(column)?.parse::<u64>().ok()
    });
    times.sum()
}

/// The program that records hosts.
pub(crate) fn hyperscope() -> Result<PathBuf> {
    os::programs::find("hyperscope").ok_or(BenchError::NoHyperscope)
}

/// The agent's program: from the variable, or next to hyperscope.
pub(crate) fn agent(program: &Path) -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        return Ok(named.into());
    }
    // Tests are in a subfolder of a build.
    let folders = program.ancestors().skip(1).take(2);
    let mut places = folders.map(|folder| folder.join("hyperscope-agent"));
    places.find(|path| path.is_file()).ok_or(BenchError::NoAgent)
}

impl BootedMachine {
    /// The machine of a level.
    pub(crate) fn at_level(lab: &Lab, level: u8) -> Result<Self> {
        Ok(Self { session: lab.session(level)?, patience: PATIENCE })
    }

    /// With another max time of a script.
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Level 1, with hyperscope.
    pub(crate) fn host_of(lab: &Lab) -> Result<Self> {
        let mut host = Self::at_level(lab, 1)?;
        host.put(&hyperscope()?, "/bin/hyperscope")?;
        host.shell(&format!("mkdir -p {FOLDER}"))?;
        Ok(host)
    }

    /// Runs shell commands that must succeed; returns their output.
    pub(crate) fn shell(&mut self, script: &str) -> Result<String> {
        Ok(self.session.check(&["sh", "-c", script], self.patience)?)
    }

    /// Starts a shell command in the background, with its output in the file `log`, and waits until the output contains
    /// `until`.
    pub(crate) fn start(&mut self, script: &str, log: &str, until: &str) -> Result<Running> {
        self.start_until(script, log, &format!("grep -q '{until}' {log}"))
    }

    /// Starts a shell command in the background, and waits until a condition of the shell holds.
    pub(crate) fn start_until(
        &mut self,
        script: &str,
        log: &str,
        condition: &str,
    ) -> Result<Running> {
        let running = self.start_detached(script, log)?;
        let Running { pid } = running;
        // Fails with the program's output if it ends before.
        self.shell(&format!(
            "until {condition}; do kill -0 {pid} 2>/dev/null || \
             {{ cat {log} >&2; exit 1; }}; sleep 0.05; done"
        ))?;
        Ok(running)
    }

    /// Starts a shell command in the background, with its output in the file `log`.
    pub(crate) fn start_detached(&mut self, script: &str, log: &str) -> Result<Running> {
        let exec = Exec { detach_to: Some(log.to_owned()), ..shell(script, None) };
        match self.session.output(&exec)?.ended {
            Ended::Detached(pid) => Ok(Running { pid }),
            _ => Err(BenchError::Malformed { what: "the lab", text: script.to_owned() }),
        }
    }

    /// Sends a program a signal, and waits until it has ended.
    pub(crate) fn end(&mut self, running: Running, signal: &str) -> Result<()> {
        self.end_all(running, &format!("-{signal} {}", running.pid))
    }

    /// Sends a program and what it has started a signal, and waits until the program has ended.
    pub(crate) fn end_group(&mut self, running: Running, signal: &str) -> Result<()> {
        self.end_all(running, &format!("-{signal} -{}", running.pid))
    }

    fn end_all(&mut self, Running { pid }: Running, signal: &str) -> Result<()> {
        let script = format!(
            "kill {signal} 2>/dev/null; while kill -0 {pid} 2>/dev/null; do sleep 0.05; done"
        );
        self.shell(&script).map(drop)
    }

    /// The machine's usage so far.
    pub(crate) fn usage(&mut self) -> Result<Usage> {
        let output = self.shell("hyperscope-labguest usage")?;
        serde_json::from_str(&output).map_err(BenchError::malformed("hyperscope-labguest usage"))
    }

    /// Runs the measured workload, and calls `report` at its begin and at its end.
    pub(crate) fn measure(
        &mut self,
        time: Duration,
        switches: u64,
        with_score: bool,
        report: &mut dyn FnMut(Boundary),
    ) -> Result<Measured> {
        let script = format!(
            "exec hyperscope-labguest measure ms={} switches={switches} score={}",
            time.as_millis(),
            u8::from(with_score)
        );
        let (mut stdout, mut errors) = (Vec::new(), Vec::new());
        let mut outputs = Outputs {
            stdout: &mut |bytes| {
                let before = lines(&stdout);
                stdout.extend_from_slice(bytes);
                for boundary in
                    [Boundary::Begin, Boundary::End].iter().take(lines(&stdout)).skip(before)
                {
                    report(*boundary);
                }
            },
            stderr: &mut |bytes| errors.extend_from_slice(bytes),
        };
        self.session.exec(&shell(&script, Some(PATIENCE + time)), &mut outputs)?;
        let stdout = String::from_utf8_lossy(&stdout);
        // Two lines that only mark the begin and the end, then the results.
        let last = stdout.lines().nth(2).ok_or_else(|| BenchError::Malformed {
            what: "hyperscope-labguest measure",
            text: String::from_utf8_lossy(&errors).into_owned(),
        })?;
        serde_json::from_str(last).map_err(BenchError::malformed("hyperscope-labguest measure"))
    }

    /// Copies a program into the machine.
    pub(crate) fn put(&mut self, from: &Path, path: &str) -> Result<()> {
        let mut file = File::open(from).map_err(BenchError::io("cannot read", from))?;
        Ok(self.session.put(&Put { path: path.to_owned(), mode: 0o755 }, &mut file)?)
    }

    /// Copies a file out.
    pub(crate) fn get(&mut self, path: &str, to: &Path) -> Result<()> {
        let mut file = File::create(to).map_err(BenchError::io("cannot write", to))?;
        Ok(self.session.get(path, &mut file)?)
    }
}

fn shell(script: &str, timeout: Option<Duration>) -> Exec {
    Exec {
        argv: ["sh", "-c", script].map(str::to_owned).into(),
        env: std::collections::BTreeMap::new(),
        stdin: false,
        timeout_ms: timeout.and_then(|time| time.as_millis().try_into().ok()),
        detach_to: None,
    }
}

/// Number of complete lines.
fn lines(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte == b'\n').count()
}
