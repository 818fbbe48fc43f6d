//! The programs and the verbs of each: `hyperscope VERB` becomes the program that has the verb.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, anyhow};
use os::programs::find;

use crate::notice::say;

/// A program of Hyperscope.
#[derive(Clone, Copy, Debug)]
pub struct Installed {
    /// Its file name, and the package that contains it.
    pub name: &'static str,
    /// The command that builds it, in Hyperscope's repository.
    pub build: &'static str,
    /// Verbs for which `hyperscope` starts it, with a description of each.
    pub verbs: &'static [(&'static str, &'static str)],
}

/// Records, reads and watches.
pub const HYPERSCOPE: Installed = Installed {
    name: "hyperscope",
    build: "cargo build --release --package hyperscope",
    verbs: &[],
};

/// Experiments in virtual machines, and with the exits of running ones.
pub const LAB: Installed = Installed {
    name: "hyperscope-lab",
    build: "cargo build --release --package hyperscope-lab",
    verbs: &[
        ("ab", "Run a workload under two configurations in turn, and report how they differ"),
        ("bench", "Measure in the lab what exits, tracers and recording cost"),
        ("lab", "Boot virtual hosts, guests and nested guests to experiment with"),
        (
            "sensitivity",
            "Lengthen chosen exits of a running VM, and report what its workload pays for each nanosecond",
        ),
    ],
};

/// Works with many recordings: of several hosts, or of a long time.
pub const FLEET: Installed = Installed {
    name: "hyperscope-fleet",
    build: "cargo build --release --package hyperscope-fleet",
    verbs: &[
        ("fleet", "Report whether the hosts of a fleet differ, and which"),
        ("lake", "Collect the tables of many recordings in one place, for SQL"),
        ("sql", "Query recordings and lakes in SQL"),
    ],
};

/// The query engine, and a client of object stores.
pub const SQL: Installed = Installed { name: "hyperscope-sql", build: "make sql", verbs: &[] };

impl Installed {
    /// The program's path: next to this program, in a folder of the packages, or on the PATH.
    ///
    /// # Errors
    /// When it is in none of these places.
    pub fn path(&self) -> anyhow::Result<PathBuf> {
        let Self { name, build, .. } = self;
        find(name).with_context(|| {
            format!(
                "{name} is missing: the package {name} has it, and \"{build}\" in hyperscope's repository builds it, to be \
                 put next to hyperscope or on the PATH"
            )
        })
    }

    pub(crate) fn has(&self, verb: &str) -> bool {
        self.verbs.iter().any(|(name, _)| *name == verb)
    }

    /// Names of its verbs, for messages.
    pub(crate) fn verb_names(&self) -> String {
        let names: Vec<&str> = self.verbs.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }
}

/// Becomes the program that has the verb of this command line; returns if none of these has it.
///
/// # Errors
/// If the program is missing or cannot be executed.
pub(crate) fn become_program(programs: &[Installed]) -> anyhow::Result<()> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let verb = match words.as_slice() {
        // `hyperscope help VERB` shows help of that verb.
        [help, verb, ..] if help == "help" => verb.to_str(),
        [verb, ..] => verb.to_str(),
        [] => None,
    };
    let has_verb = |program: &&Installed| verb.is_some_and(|verb| program.has(verb));
    let Some(program) = programs.iter().find(has_verb) else { return Ok(()) };
    let path = program.path()?;
    keep_closed_output();
    // The new program inherits signals and standard input, and its exit code is the result.
    let error = Command::new(&path).args(words).exec();
    Err(anyhow!(error).context(format!("cannot run {}", path.display())))
}

/// Keeps a closed standard output closed in the next program: Rust's runtime opened /dev/null in its place.
fn keep_closed_output() {
    if sys::standard_output_was_closed() {
        let flags = rustix::io::FdFlags::CLOEXEC;
        if rustix::io::fcntl_setfd(std::io::stdout(), flags).is_err() {
            say("standard output is closed");
        }
    }
}
