//! Runs all tests of the workspace as cargo does, but those that mostly wait side by side with those that
//! compute: cargo runs one test program after the other, and half of the processors would have nothing to do.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// Test programs that wait for guests, peers and deadlines most of their time.
const WAITING: [&str; 3] = ["hostile", "record", "lab"];

/// What cargo says of something that it has built (`cargo build --message-format=json`).
#[derive(Deserialize)]
struct Message {
    reason: String,
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// A test program.
#[derive(Debug)]
struct Program {
    name: String,
    path: PathBuf,
    /// The folder of its package, in which cargo runs it.
    folder: PathBuf,
}

pub(crate) fn run() -> Result<()> {
    let programs = built()?;
    ensure!(!programs.is_empty(), "cargo has built no test program");
    let waits = |program: &Program| WAITING.contains(&program.name.as_str());
    let (waiting, computing): (Vec<_>, Vec<_>) = programs.into_iter().partition(waits);
    let printing = Mutex::new(());
    let failed = thread::scope(|scope| {
        let side = scope.spawn(|| run_all(&waiting, &printing));
        let mut failed = run_all(&computing, &printing);
        failed.extend(doc_tests(&printing));
        failed.extend(side.join().unwrap_or_else(|_| vec!["the thread that runs tests".into()]));
        failed
    });
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Builds all test programs.
fn built() -> Result<Vec<Program>> {
    let mut build = cargo();
    build.args(["test", "--locked", "--workspace", "--no-run"]);
    build.arg("--message-format=json-render-diagnostics");
    let output = build.stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo test --no-run: {}", output.status);
    let text = String::from_utf8(output.stdout).context("cargo's messages")?;
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let artifacts = messages.filter(|message| message.reason == "compiler-artifact");
    Ok(artifacts.filter_map(program).collect())
}

fn program(artifact: Message) -> Option<Program> {
    let path = artifact.executable?;
    // Programs that are only used by tests are built, too.
    let is_test = path.parent().is_some_and(|folder| folder.ends_with("deps"));
    let folder = artifact.manifest_path?.parent()?.to_owned();
    is_test.then_some(Program { name: artifact.target?.name, path, folder })
}

/// Runs programs one after the other, and prints what each said when it has ended; those that failed.
fn run_all(programs: &[Program], printing: &Mutex<()>) -> Vec<String> {
    let run = |program: &Program| {
        let mut command = Command::new(&program.path);
        command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
        (!passes(&mut command, &shown(program), printing)).then(|| shown(program))
    };
    programs.iter().filter_map(run).collect()
}

fn doc_tests(printing: &Mutex<()>) -> Option<String> {
    let mut command = cargo();
    command.args(["test", "--locked", "--workspace", "--doc"]);
    let name = "doc tests".to_owned();
    (!passes(&mut command, &name, printing)).then_some(name)
}

/// The package and the program: many packages call theirs alike.
fn shown(program: &Program) -> String {
    let package = program.folder.file_name().map(|name| name.to_string_lossy().into_owned());
    format!("{}/{}", package.unwrap_or_default(), program.name)
}

fn passes(command: &mut Command, name: &str, printing: &Mutex<()>) -> bool {
    let begun = Instant::now();
    let output = command.stdin(Stdio::null()).output();
    let _printing = printing.lock();
    let mut out = std::io::stdout().lock();
    let seconds = begun.elapsed().as_secs_f64();
    match output {
        Ok(output) => {
            // Nobody reads on: the tests count all the same.
            let _ = writeln!(out, "\n     Ran {name} in {seconds:.1} s");
            let _ = out.write_all(&output.stdout).and_then(|()| out.write_all(&output.stderr));
            output.status.success()
        }
        Err(error) => {
            let _ = writeln!(out, "\n     {name} can't be run: {error}");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn artifact(line: &str) -> Option<Program> {
        program(serde_json::from_str(line).unwrap())
    }

    #[test]
    fn programs_of_tests_are_found_among_what_they_use() {
        let line = |executable: &str| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"executable\":\"{executable}\",\
                 \"manifest_path\":\"/x/crates/cli/Cargo.toml\",\"target\":{{\"name\":\"record\"}}}}"
            )
        };
        let found = artifact(&line("/x/target/debug/deps/record-1f")).unwrap();
        assert_eq!(
            (found.name.as_str(), found.folder.as_path()),
            ("record", Path::new("/x/crates/cli"))
        );
        assert_eq!(shown(&found), "cli/record");
        assert!(artifact(&line("/x/target/debug/hyperscope")).is_none());
    }

    #[test]
    fn what_fails_is_seen() {
        let printing = Mutex::new(());
        assert!(passes(&mut Command::new("true"), "true", &printing));
        assert!(!passes(&mut Command::new("false"), "false", &printing));
        assert!(!passes(&mut Command::new("/no/such/program"), "none", &printing));
    }
}
