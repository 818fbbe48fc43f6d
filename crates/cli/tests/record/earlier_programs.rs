//! Programs that ran before sampling started: their functions have names, here and in stock perf.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use perfdata::{Body, PerfData};
use symbols::{Kallsyms, Machine, Names, ProcessLog};

use crate::tool::{lock_tracing, run};

/// A program that is busy in one function; dropping this ends it.
struct Busy {
    program: Child,
    path: PathBuf,
    function: String,
    _folder: tempfile::TempDir,
}

impl Busy {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (source, path) = (folder.path().join("busy.c"), folder.path().join("busy"));
        let function = format!("busy_before_{}", std::process::id());
        let text = format!(
            "static volatile unsigned long sum;\n\
             __attribute__((noinline)) void {function}(void) {{ for (;;) sum++; }}\n\
             int main(void) {{ {function}(); return 0; }}\n"
        );
        fs::write(&source, text).unwrap();
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-Wl,--build-id=sha1", "-o"]);
        assert!(gcc.arg(&path).arg(&source).status().unwrap().success());
        let program = Command::new(&path).stdin(Stdio::null()).spawn().unwrap();
        Self { program, path, function, _folder: folder }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Names of a program's user-space code, for each sample.
fn names(file: &Path, pid: u32) -> Vec<String> {
    let bytes = fs::read(file).unwrap();
    let perf = PerfData::parse(&bytes).unwrap();
    let mut log = ProcessLog::default();
    perf.records(&bytes).flatten().for_each(|record| log.read(&perf.events, &record));
    let kernel = Kallsyms::default();
    let machine = Machine::here(&kernel, log.finish());
    let mut names = Names::of_files_here();
    let mut name = |body| match body {
        Body::Sample(sample) if sample.pid == Some(pid) => {
            let address = sample.ip.filter(|address| address >> 63 == 0)?;
            let place = machine.user_place(pid, sample.time?, address);
            Some(names.name(&machine, place).to_string())
        }
        _ => None,
    };
    let bodies = perf.records(&bytes).map(|record| perf.events.body(&record.unwrap()).unwrap());
    bodies.filter_map(&mut name).collect()
}

/// Whether most names equal this one.
fn most_are(names: &[String], function: &str) -> bool {
    let named = names.iter().filter(|name| name.contains(function)).count();
    // The rest is the program's start in its loader.
    named > 10 && named * 10 > names.len() * 8
}

#[test]
fn what_ran_before_has_the_names_of_its_functions() {
    let Some(_lock) = lock_tracing() else { return };
    let busy = Busy::start();
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s.hscope");
    let to = session.to_str().unwrap();
    let words = ["record", "--sample", "997", "--sample-event", "cpu-clock", "-e", "sched_switch"];
    let ran = run(&[&words[..], &["-o", to, "--for", "700ms"]].concat());
    if ran.stderr.contains("cannot sample") {
        return testkit::skip!("{}", ran.stderr);
    }
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let file = session.join("host.data");
    let found = names(&file, busy.program.id());
    let expected = format!("{} [busy]", busy.function);
    assert!(most_are(&found, &expected), "{found:?}");
    // A replaced file names nothing, whatever its path is.
    fs::rename(&busy.path, folder.path().join("away")).unwrap();
    fs::copy("/bin/sh", &busy.path).unwrap();
    let found = names(&file, busy.program.id());
    assert!(most_are(&found, "busy+0x"), "{found:?}");
    fs::rename(folder.path().join("away"), &busy.path).unwrap();
    let mut perf = Command::new("perf");
    perf.args(["script", "-G", "-F", "ip,sym", "--pid"]).arg(busy.program.id().to_string());
    let Ok(out) = perf.arg("-i").arg(&file).output() else {
        return testkit::skip!("perf is missing: its names are not compared");
    };
    let shown = String::from_utf8_lossy(&out.stdout);
    let user = shown.lines().filter(|line| !line.contains("ffffff")).map(str::to_owned);
    assert!(most_are(&user.collect::<Vec<_>>(), &busy.function), "{shown}");
}
