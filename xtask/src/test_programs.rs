//! Runs all tests of the workspace. Cargo runs test programs one after the other, which leaves
//! processors idle; here, programs that mostly wait and programs with serial tests run in parallel
//! with those that compute.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use parking_lot::Mutex;
use serde::Deserialize;

/// Test programs that mostly wait for guests, peers and deadlines.
const WAITING: [&str; 3] = ["hostile", "record", "lab"];

/// Test programs with serial tests, which occupy a single processor. They start first: a late start
/// would leave them running alone.
const SERIAL: [&str; 1] = ["damaged_recordings"];

/// The longest test program that computes; it starts first.
const LONGEST: &str = "cli";

/// Tells tests that the workspace's programs are next to the one under test: see
/// `testkit::program_of`.
const PROGRAMS_ARE_BUILT: &str = "HYPERSCOPE_PROGRAMS_BUILT";

/// Number of programs in the closing lines, with their times.
const SLOWEST_SHOWN: usize = 6;

/// A message of `cargo build --message-format=json` about a build result.
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
    kind: Vec<String>,
}

/// A test program.
#[derive(Debug)]
struct Program {
    name: String,
    path: PathBuf,
    /// The folder of its package, in which cargo runs it.
    folder: PathBuf,
}

/// The result of a test program or of the doc tests.
#[derive(Debug)]
struct Outcome {
    name: String,
    seconds: f64,
    passed: bool,
    counts: Counts,
}

/// Number of tests by result, as libtest counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    ignored: u64,
}

pub(crate) fn run() -> Result<()> {
    let programs = built()?;
    ensure!(!programs.is_empty(), "cargo built no test program");
    let expected = programs.len();
    let [waiting, serial, computing] = lanes(programs);
    let printing = Mutex::new(());
    let outcomes = thread::scope(|scope| {
        let side = scope.spawn(|| run_all(&waiting, &printing));
        let one_by_one = scope.spawn(|| {
            let mut outcomes = run_all(&serial, &printing);
            outcomes.push(doc_tests(&printing));
            outcomes
        });
        let mut outcomes = run_all(&computing, &printing);
        outcomes.extend(one_by_one.join().unwrap_or_default());
        outcomes.extend(side.join().unwrap_or_default());
        outcomes
    });
    ensure!(outcomes.len() > expected, "a thread that ran tests panicked");
    print!("{}", summary(&outcomes));
    let failed = outcomes.iter().filter(|outcome| !outcome.passed);
    let failed: Vec<&str> = failed.map(|outcome| outcome.name.as_str()).collect();
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Programs that mostly wait, programs with serial tests, and all others, longest first.
fn lanes(programs: Vec<Program>) -> [Vec<Program>; 3] {
    let is_in = |names: &[&str], program: &Program| names.contains(&program.name.as_str());
    let (waiting, others): (Vec<_>, Vec<_>) =
        programs.into_iter().partition(|program| is_in(&WAITING, program));
    let (serial, mut computing): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|program| is_in(&SERIAL, program));
    computing.sort_by_key(|program| program.name != LONGEST);
    [waiting, serial, computing]
}

/// The closing lines: the slowest programs, and the sum of all results.
fn summary(outcomes: &[Outcome]) -> String {
    let mut by_time: Vec<&Outcome> = outcomes.iter().collect();
    by_time.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let slowest = by_time.iter().take(SLOWEST_SHOWN);
    let slowest = slowest.map(|outcome| format!("{} {:.0} s", outcome.name, outcome.seconds));
    let slowest: Vec<String> = slowest.collect();
    let sum = outcomes.iter().fold(Counts::default(), |sum, outcome| sum.plus(outcome.counts));
    let Counts { passed, failed, ignored } = sum;
    format!(
        "\nslowest test programs: {}\n{} test programs: {passed} tests passed, {failed} failed, {ignored} ignored\n",
        slowest.join(", "),
        outcomes.len()
    )
}

impl Counts {
    /// The sums of the `test result: …` lines in a program's output.
    fn parse(output: &[u8]) -> Self {
        let text = String::from_utf8_lossy(output);
        let results = text.lines().filter_map(|line| line.strip_prefix("test result: "));
        results.map(Self::parse_result).fold(Self::default(), Self::plus)
    }

    /// Parses `ok. 34 passed; 0 failed; 0 ignored; …`.
    fn parse_result(line: &str) -> Self {
        let words: Vec<&str> = line.split([' ', ';']).filter(|word| !word.is_empty()).collect();
        let count = |name: &str| {
            let pairs = words.windows(2).find(|pair| pair.get(1) == Some(&name));
            pairs.and_then(|pair| pair.first()?.parse().ok()).unwrap_or(0)
        };
        Self { passed: count("passed"), failed: count("failed"), ignored: count("ignored") }
    }

    fn plus(self, more: Self) -> Self {
        Self {
            passed: self.passed + more.passed,
            failed: self.failed + more.failed,
            ignored: self.ignored + more.ignored,
        }
    }
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Builds all test programs, and benchmarks as well, because clippy checks code in this build.
fn built() -> Result<Vec<Program>> {
    let mut build = cargo();
    build.args(["test", "--locked", "--workspace", "--all-targets", "--no-run"]);
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
    let target = artifact.target?;
    // The build includes programs that only tests use.
    let is_test = path.parent().is_some_and(|folder| folder.ends_with("deps"));
    let is_bench = target.kind.iter().any(|kind| kind == "bench");
    let folder = artifact.manifest_path?.parent()?.to_owned();
    (is_test && !is_bench).then_some(Program { name: target.name, path, folder })
}

/// Runs programs one after the other, and prints the output of each when it has ended.
fn run_all(programs: &[Program], printing: &Mutex<()>) -> Vec<Outcome> {
    let run = |program: &Program| {
        let mut command = Command::new(&program.path);
        command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
        command.env(PROGRAMS_ARE_BUILT, "1");
        run_one(&mut command, shown(program), printing)
    };
    programs.iter().map(run).collect()
}

/// Runs the doc tests of libraries with examples; the others have `doctest = false`.
fn doc_tests(printing: &Mutex<()>) -> Outcome {
    let mut command = cargo();
    command.args(["test", "--locked", "--workspace", "--doc"]);
    run_one(&mut command, "doc tests".to_owned(), printing)
}

/// The package and the program: many packages use the same program name.
fn shown(program: &Program) -> String {
    let package = program.folder.file_name().map(|name| name.to_string_lossy().into_owned());
    format!("{}/{}", package.unwrap_or_default(), program.name)
}

fn run_one(command: &mut Command, name: String, printing: &Mutex<()>) -> Outcome {
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).output();
    let _printing = printing.lock();
    let mut out = std::io::stdout().lock();
    let seconds = start.elapsed().as_secs_f64();
    match output {
        Ok(output) => {
            // A closed standard output must not end the tests.
            let _ = writeln!(out, "\n     Ran {name} in {seconds:.1} s");
            let _ = out.write_all(&output.stdout).and_then(|()| out.write_all(&output.stderr));
            let counts = Counts::parse(&output.stdout);
            Outcome { name, seconds, passed: output.status.success(), counts }
        }
        Err(error) => {
            let _ = writeln!(out, "\n     {name} cannot be run: {error}");
            Outcome { name, seconds, passed: false, counts: Counts::default() }
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
        let line = |executable: &str, kind: &str| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"executable\":\"{executable}\",\
                 \"manifest_path\":\"/x/crates/cli/Cargo.toml\",\
                 \"target\":{{\"name\":\"record\",\"kind\":[\"{kind}\"]}}}}"
            )
        };
        let found = artifact(&line("/x/target/debug/deps/record-1f", "test")).unwrap();
        assert_eq!(
            (found.name.as_str(), found.folder.as_path()),
            ("record", Path::new("/x/crates/cli"))
        );
        assert_eq!(shown(&found), "cli/record");
        assert!(artifact(&line("/x/target/debug/hyperscope", "bin")).is_none());
        assert!(artifact(&line("/x/target/debug/deps/record-1f", "bench")).is_none());
    }

    #[test]
    fn programs_run_in_three_lanes_and_the_longest_first() {
        let program =
            |name: &str| Program { name: name.into(), path: "p".into(), folder: "f".into() };
        let found = lanes(["fleet", "record", "cli", "damaged_recordings"].map(program).into());
        let names =
            found.map(|lane| lane.into_iter().map(|program| program.name).collect::<Vec<_>>());
        assert_eq!(names, [vec!["record"], vec!["damaged_recordings"], vec!["cli", "fleet"]]);
    }

    #[test]
    fn what_fails_is_seen() {
        let printing = Mutex::new(());
        let passes =
            |program: &str| run_one(&mut Command::new(program), program.into(), &printing).passed;
        assert!(passes("true"));
        assert!(!passes("false"));
        assert!(!passes("/no/such/program"));
    }

    #[test]
    fn results_are_summed_over_programs_and_crates() {
        let printed = b"test a ... ok\ntest result: ok. 34 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out\n\
            test result: FAILED. 1 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let counts = Counts::parse(printed);
        assert_eq!(counts, Counts { passed: 35, failed: 3, ignored: 2 });
        let outcome =
            |name: &str, seconds| Outcome { name: name.into(), seconds, passed: true, counts };
        let text = summary(&[outcome("fast", 1.0), outcome("slow", 9.0)]);
        assert!(text.contains("slow 9 s, fast 1 s"), "{text}");
        assert!(text.contains("2 test programs: 70 tests passed, 6 failed, 4 ignored"), "{text}");
    }
}
