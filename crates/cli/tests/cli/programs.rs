//! Verbs of other programs: `hyperscope VERB` becomes the program that has the verb.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::tool::{command, hyperscope, output_of};

/// All verbs from the time of a single program.
const VERBS: [&str; 36] = [
    "ab",
    "advice",
    "align",
    "bench",
    "boot",
    "calls",
    "completions",
    "cpu",
    "critical",
    "diff",
    "events",
    "exits",
    "export",
    "fleet",
    "flight",
    "hypertrace",
    "info",
    "irqs",
    "keys",
    "lab",
    "lake",
    "listen",
    "man",
    "mark",
    "nested",
    "path",
    "profile",
    "publish",
    "record",
    "report",
    "sensitivity",
    "serve",
    "sql",
    "top",
    "virtio",
    "vmm",
];

/// A folder with `hyperscope` and these other built programs, as if they were installed there.
struct Installation(tempfile::TempDir);

impl Installation {
    fn with(others: &[&str]) -> Self {
        // In the build's file system, for hard links.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let built = Path::new(env!("CARGO_BIN_EXE_hyperscope"));
        // Builds the other programs.
        drop(command());
        for name in ["hyperscope"].iter().chain(others) {
            fs::hard_link(built.with_file_name(name), folder.path().join(name)).unwrap();
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Adds a script. Another process writes it: if this process had it open for writing, a
    /// concurrent fork could keep it open and make it unusable.
    fn add(&self, name: &str, script: &str) {
        let write = "cat > \"$0\" && chmod 755 \"$0\"";
        let mut shell = Command::new("sh");
        shell.args(["-c", write]).arg(self.path(name)).stdin(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        shell.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        assert!(shell.wait().unwrap().success());
    }

    fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(self.path("hyperscope"));
        command.args(arguments).env("PATH", "/usr/bin:/bin").current_dir(crate::tool::repository());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn all_verbs_have_their_help() {
    for verb in VERBS {
        let help = output_of(&[verb, "--help"]);
        assert!(help.contains(&format!("Usage: hyperscope {verb} ")), "{verb}: {help}");
        assert_eq!(output_of(&["help", verb]), help);
    }
    assert!(output_of(&["help", "lab", "up"]).contains("Usage: hyperscope lab up "));
}

#[test]
fn descriptions_of_other_programs_verbs_are_in_manual_and_completions() {
    let (manual, zsh) = (output_of(&["man"]), output_of(&["completions", "zsh"]));
    for (verb, about) in [("lab", "Boot virtual hosts"), ("lake", "Collect the tables")] {
        assert!(manual.contains(&format!("hyperscope\\-{verb}")), "{verb}");
        assert!(manual.contains(about) && zsh.contains(about), "{verb}");
    }
    let refused = hyperscope(&["lakee", "list"]);
    assert!(refused.code == 2 && refused.err.contains("'lake'"), "{}", refused.err);
}

#[test]
fn a_missing_program_is_named_with_what_builds_it() {
    let installed = Installation::with(&[]);
    for (words, name, build) in [
        (
            &["lab", "status"][..],
            "hyperscope-lab",
            "cargo build --release --package hyperscope-lab",
        ),
        (&["help", "ab"], "hyperscope-lab", "cargo build --release --package hyperscope-lab"),
        (
            &["lake", "--help"],
            "hyperscope-fleet",
            "cargo build --release --package hyperscope-fleet",
        ),
        (
            &["sql", "--list"],
            "hyperscope-fleet",
            "cargo build --release --package hyperscope-fleet",
        ),
    ] {
        let run = installed.run(words);
        let stderr = text(&run.stderr);
        assert_eq!((run.status.code(), text(&run.stdout)), (Some(1), ""), "{words:?}: {stderr}");
        let begin =
            format!("hyperscope: {name} is missing: the package {name} has it, and \"{build}\"");
        assert!(stderr.starts_with(&begin) && stderr.lines().count() == 1, "{words:?}: {stderr}");
    }
    // A verb of this program does not search for another one.
    let exits = installed.run(&["exits", "fixtures/x86-svm/nested.dat"]);
    assert!(exits.status.success() && exits.stderr.is_empty(), "{}", text(&exits.stderr));
}

#[test]
fn manual_pages_of_a_missing_program_are_left_out() {
    let installed = Installation::with(&["hyperscope-fleet"]);
    let pages = installed.path("man1");
    let run = installed.run(&["man", "-o", pages.to_str().unwrap()]);
    let stderr = text(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains("no pages of ab, bench, lab, sensitivity: hyperscope-lab is missing"),
        "{stderr}"
    );
    for (page, is_there) in
        [("hyperscope", true), ("hyperscope-lake-add", true), ("hyperscope-ab", false)]
    {
        assert_eq!(pages.join(format!("{page}.1")).exists(), is_there, "{page}");
    }
}

#[test]
fn arguments_standard_input_and_the_exit_code_pass_through() {
    let installed = Installation::with(&[]);
    installed.add("hyperscope-lab", "#!/bin/sh\nprintf '<%s>' \"$@\"\ncat\nexit 7\n");
    let mut lab = installed.command(["lab", "exec", "1", "--", "sh", "-c", "a  b", ""]);
    lab.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut lab = lab.spawn().unwrap();
    lab.stdin.take().unwrap().write_all(b"input").unwrap();
    let done = lab.wait_with_output().unwrap();
    assert_eq!(text(&done.stdout), "<lab><exec><1><--><sh><-c><a  b><>input");
    assert_eq!(done.status.code(), Some(7));
}

#[test]
fn it_is_the_same_process_so_that_signals_reach_it() {
    let installed = Installation::with(&[]);
    installed.add("hyperscope-lab", "#!/bin/sh\necho $$\nkill -TERM $$\n");
    let lab = installed.command(["ab"]).stdout(Stdio::piped()).spawn().unwrap();
    let id = lab.id();
    let done = lab.wait_with_output().unwrap();
    assert_eq!(text(&done.stdout), format!("{id}\n"));
    assert_eq!(done.status.signal(), Some(15));
}

#[test]
fn a_program_on_the_path_is_found_but_not_in_a_relative_folder() {
    let installed = Installation::with(&[]);
    let elsewhere = Installation::with(&[]);
    elsewhere.add("hyperscope-fleet", "#!/bin/sh\necho \"$@\"\n");
    let folder = elsewhere.0.path();
    let run = |path: &str| {
        let mut lake = installed.command(["lake", "list"]);
        // As root itself, even if the tests run through sudo.
        lake.env_remove("SUDO_UID").env_remove("PKEXEC_UID").current_dir(folder);
        lake.env("PATH", path).output().unwrap()
    };
    let found = run(&format!("/usr/bin:{}:/bin", folder.display()));
    assert_eq!((text(&found.stdout), found.status.code()), ("lake list\n", Some(0)));
    assert_eq!(run(".:/usr/bin:/bin").status.code(), Some(1));
}

/// Root runs no program from another user's PATH.
#[test]
fn root_for_another_user_takes_no_program_from_the_path() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("only root is root for another user");
    }
    let (installed, elsewhere) = (Installation::with(&[]), Installation::with(&[]));
    elsewhere.add("hyperscope-fleet", "#!/bin/sh\necho \"$@\"\n");
    let path = format!("/usr/bin:/bin:{}", elsewhere.0.path().display());
    let run =
        installed.command(["lake", "list"]).env("PATH", path).env("SUDO_UID", "1000").output();
    let run = run.unwrap();
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stdout));
}

#[test]
fn closed_output_is_refused_by_the_other_program_too() {
    let installed = Installation::with(&["hyperscope-lab"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" lab --help >&-"]).arg(installed.path("hyperscope"));
    let run = shell.output().unwrap();
    assert_eq!(run.status.code(), Some(1));
    assert_eq!(
        text(&run.stderr),
        "hyperscope: standard output is closed: redirect it to read the help\n"
    );
}

/// A script in place of hyperscope-sql has recordings read in the same way.
#[test]
fn sql_names_hyperscope_as_its_reader() {
    let installed = Installation::with(&["hyperscope-fleet"]);
    let out = installed.path("out");
    installed.add(
        "hyperscope-sql",
        "#!/bin/bash\noptions=()\nwhile [ \"$1\" != -- ]; do case $1 in --reader) reader=$2;; \
         --reader-option) options+=(\"$2\");; esac; shift 2; done\necho \"$reader\"\n\
         exec \"$reader\" export --to parquet -o \"$2\" --only exits \"${options[@]}\" \"${@:3}\"\n",
    );
    let recordings = ["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"];
    let options =
        ["--from", "+0.1", "--vcpu", "0", "--label", "pool=x", "--details", "--method", "windows"];
    let words = [&["sql"], &options[..], &[out.to_str().unwrap()], &recordings].concat();
    let run = installed.run(&words);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let reader = fs::canonicalize(installed.path("hyperscope")).unwrap();
    assert_eq!(text(&run.stdout).trim(), reader.display().to_string());
    assert!(out.join("exits.parquet").is_file());
}
