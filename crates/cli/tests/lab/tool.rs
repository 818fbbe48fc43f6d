//! Runs `hyperscope lab`, and inspects what it leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::architecture::Architecture;
use crate::patience::{Patient, run};

/// Timeout of a command that works in running machines.
pub(crate) const WORKING: Duration = Duration::from_secs(300);

/// The output of a run.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A lab with a name of its own; shut down when dropped.
pub(crate) struct TestLab {
    name: &'static str,
    architecture: Architecture,
}

/// Whether labs can run here; prints the reason if not.
pub(crate) fn can_run() -> bool {
    if std::env::var_os("HYPERSCOPE_SKIP_LAB").is_some() {
        testkit::skip!("HYPERSCOPE_SKIP_LAB is set");
        return false;
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        testkit::skip!("no apt-get to fetch a kernel and QEMU with");
        return false;
    }
    true
}

/// Whether labs can run here, and all lab tests are requested: guests that are recorded under load take minutes,
/// and an emulated nested machine hangs now and then.
pub(crate) fn can_run_all() -> bool {
    if std::env::var_os("HYPERSCOPE_LAB_ALL").is_none() {
        testkit::skip!("HYPERSCOPE_LAB_ALL=1 (make test-lab) tries it");
        return false;
    }
    can_run()
}

/// A kernel for guests instead of the lab's, and its folder of modules, which contains it as `vmlinuz`:
/// `kmod/lockdep` and `kmod/newer` make one.
pub(crate) fn other_kernel() -> Option<(String, String)> {
    let modules = std::env::var("HYPERSCOPE_LAB_MODULES").ok().filter(|at| !at.is_empty())?;
    Some((format!("{modules}/vmlinuz"), modules))
}

/// The lab's cache: in the build folder, with a path short enough for sockets.
pub(crate) fn folder() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        build_programs();
        let built = Path::new(env!("CARGO_BIN_EXE_hyperscope")).ancestors().nth(2).unwrap();
        let lab_folder = built.join("lab");
        // A socket's path has at most 108 bytes.
        if lab_folder.as_os_str().len() > 60 {
            std::env::temp_dir().join("hyperscope-lab-tests")
        } else {
            lab_folder
        }
    };
    FOLDER.get_or_init(make).clone()
}

/// Builds the programs that run the lab, and those for its machines.
fn build_programs() {
    for package in ["hyperscope-lab", "hyperscope-labguest", "hyperscope-agent"] {
        testkit::program_of(package, env!("CARGO_BIN_EXE_hyperscope"));
    }
}

/// `hyperscope lab` with these arguments, in a folder.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let program = env!("CARGO_BIN_EXE_hyperscope");
    testkit::program_of("hyperscope-lab", program);
    let mut command = Command::new(program);
    command.arg("lab").args(arguments).env("HYPERSCOPE_LAB_DIR", folder).stdin(Stdio::null());
    command
}

impl Ran {
    /// Asserts success.
    pub(crate) fn done(self) -> Self {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self
    }
}

impl TestLab {
    /// The lab with this name, shut down.
    pub(crate) fn new(name: &'static str) -> Self {
        Self::for_architecture(Architecture::X86, name)
    }

    /// The same with machines of this architecture, for installed programs and [`Self::up`].
    pub(crate) fn for_architecture(architecture: Architecture, name: &'static str) -> Self {
        let lab = Self { name, architecture };
        lab.run(&["down"]).done();
        lab
    }

    pub(crate) fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Starts its machines, with these arguments.
    pub(crate) fn up(&self, arguments: &[&str]) {
        let up = match self.architecture {
            Architecture::X86 => vec!["up"],
            Architecture::Arm => vec!["up", "--arch", "aarch64"],
        };
        self.run(&[&up, arguments].concat()).done();
    }

    /// `hyperscope lab --name NAME` with these arguments, not started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let all: Vec<&str> =
            ["--name", self.name].into_iter().chain(arguments.iter().copied()).collect();
        command(&folder(), &all)
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        run(self.command(arguments))
    }

    /// Runs a shell command in a machine.
    pub(crate) fn shell(&self, level: u8, script: &str) -> Ran {
        let command = self.command(&["exec", &level.to_string(), "--", "sh", "-c", script]);
        Patient::start(command).finish(WORKING)
    }

    /// Puts this program into a machine, as /bin/hyperscope.
    pub(crate) fn put_program(&self, level: u8) {
        let native = || PathBuf::from(env!("CARGO_BIN_EXE_hyperscope"));
        let program = self.architecture.program("hyperscope", native);
        self.put_stripped(level, &program, "/bin/hyperscope");
    }

    /// Puts this program into a machine, and the one with the experiments.
    pub(crate) fn put_programs(&self, level: u8) {
        self.put_program(level);
        let native = || testkit::program_of("hyperscope-lab", env!("CARGO_BIN_EXE_hyperscope"));
        let program = self.architecture.program("hyperscope-lab", native);
        self.put_stripped(level, &program, "/bin/hyperscope-lab");
    }

    /// Puts a program into a machine, without debug information: guests lack memory for it, and a nested guest may
    /// hang during the transfer.
    pub(crate) fn put_stripped(&self, level: u8, program: &Path, to: &str) {
        let temporary = tempfile::tempdir().unwrap();
        let small = temporary.path().join("program");
        let mut strip = Command::new(format!("{}strip", self.architecture.tools()));
        assert!(strip.arg("-o").arg(&small).arg(program).status().unwrap().success());
        self.run(&["put", &level.to_string(), small.to_str().unwrap(), to]).done();
    }

    /// Processes whose command line contains the lab's folder.
    pub(crate) fn processes(&self) -> Vec<String> {
        let run = self.run_folder().display().to_string();
        let entries = fs::read_dir("/proc").unwrap();
        let lines = entries.filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        lines.filter(|line| line.contains(&format!("{run}/"))).collect()
    }

    /// Waits until QEMU is started.
    pub(crate) fn wait_for_a_process(&self) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.processes().is_empty() {
            assert!(Instant::now() < deadline, "QEMU was not started");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The folder of its sockets and consoles.
    pub(crate) fn run_folder(&self) -> PathBuf {
        folder().join("run").join(self.name)
    }
}

impl Drop for TestLab {
    fn drop(&mut self) {
        // A failed test has printed the cause; a second panic would abort all tests.
        let _ = Patient::start(self.command(&["down"])).end_within(WORKING);
    }
}
