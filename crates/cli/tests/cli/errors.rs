//! Exit codes, and messages that name the file, the position, and a remedy.

use std::fs;

use crate::tool::{Run, command, hyperscope, repository};

const SMALL: &str = "fixtures/x86-vmx/vmm.dat";

#[track_caller]
fn fails(args: &[&str], code: i32, words: &[&str]) {
    let Run { code: actual, out, err } = hyperscope(args);
    assert_eq!(actual, code, "hyperscope {}: {err}", args.join(" "));
    assert_eq!(out, "", "hyperscope {}", args.join(" "));
    for word in words {
        assert!(err.contains(word), "hyperscope {}: no {word:?} in {err}", args.join(" "));
    }
    let panicked = err.contains("panicked") || err.contains("RUST_BACKTRACE");
    assert!(!panicked, "{err}");
}

#[test]
fn wrong_usage_is_code_2() {
    fails(&[], 2, &["Usage:", "exits", "nested", "events", "info"]);
    fails(&["bogus"], 2, &["bogus", "--help"]);
    for verb in [
        "exits", "nested", "advice", "boot", "cpu", "profile", "irqs", "virtio", "vmm", "calls",
        "why", "events", "info",
    ] {
        fails(&[verb], 2, &["<FILE>", "--help"]);
        fails(&[verb, "--bogus", SMALL], 2, &["--bogus"]);
        fails(&[verb, "--format", "xml", SMALL], 2, &["xml", "json"]);
    }
    fails(&["exits", "--by", "vm,colour", SMALL], 2, &["colour", "reason", "cpuid_leaf"]);
    fails(&["events", "--cpu", "3-1", SMALL], 2, &["3-1", "0,2-3"]);
    fails(&["events", "--pid", "init", SMALL], 2, &["init"]);
    fails(&["events", "--from", "noon", SMALL], 2, &["noon", "seconds"]);
    fails(
        &["events", "--from", "2", "--to", "1", SMALL],
        2,
        &["--from", "--to", "events [OPTIONS]"],
    );
    fails(&["events", "--where", "exit_reason", SMALL], 2, &["FIELD OP VALUE"]);
    fails(&["completions", "tcsh"], 2, &["tcsh", "bash"]);
    fails(&["export", SMALL], 2, &["--format", "export"]);
    fails(&["export", "--to", "csv"], 2, &["<FILE>", "--help"]);
    fails(&["export", "--to", "pdf", SMALL], 2, &["pdf", "perfetto", "tracedat"]);
    fails(&["export", "--to", "tracedat", SMALL], 2, &["-o", "export [OPTIONS]"]);
    fails(&["export", "--to", "chrome", "--cpu", "0", SMALL], 2, &["--cpu", "csv"]);
    fails(&["export", "--to", "jsonl", "--columns", "x", SMALL], 2, &["--columns", "csv"]);
    let window = ["export", "--to", "csv", "--from", "2", "--until", "1", SMALL];
    fails(&window, 2, &["--from", "--to"]);
    fails(&["export", "--to", "+1", SMALL], 2, &["--format perfetto"]);
    fails(&["export", "--to", "csv", "--format", "jsonl", SMALL], 2, &["one format"]);
    fails(&["export", "--format", "csv", "--to", "1", "--to", "2", SMALL], 2, &["--to", "twice"]);
    fails(
        &["export", "--format", "csv", "--to", "noon", SMALL],
        2,
        &["noon", "expected a time or a format"],
    );
}

#[test]
fn a_first_word_that_is_not_a_verb_comes_with_what_to_write() {
    fails(
        &[SMALL],
        2,
        &[&format!("hyperscope info {SMALL}"), &format!("hyperscope exits {SMALL}")],
    );
    fails(&["no/such.dat"], 2, &["neither a verb nor a file", "--help"]);
    fails(&["version"], 2, &["hyperscope --version"]);
    fails(&["exist"], 2, &["exits"]);
    let run = hyperscope(&["exits", "--quick", SMALL]);
    assert!(run.code == 2 && !run.err.contains("as a value"), "{}", run.err);
    let listed = hyperscope(&["lab", "run", "--list"]);
    assert!(listed.code == 0 && listed.out.contains("exits"), "{}", listed.err);
}

#[test]
fn times_take_units_and_say_which() {
    for verb in ["exits", "events", "boot", "align"] {
        fails(&[verb, "--from", "+10y", SMALL], 2, &["+10y", "ns, us, ms, s, m, h"]);
        fails(&[verb, "--from", "-5", SMALL], 2, &["-5", "seconds"]);
    }
    for zero in ["0", "0ms"] {
        fails(&["record", "--for", zero], 2, &["longer than 0"]);
        fails(&["listen", "unix:x", "--for", zero], 2, &["longer than 0"]);
        fails(&["publish", "--guest", "x", "--for", zero], 2, &["longer than 0"]);
    }
}

/// The refusal precedes the recording, and uses the option's name.
#[test]
fn options_of_tracers_that_do_not_go_together_are_refused() {
    let of_host = ["--tracer", "function", "--max-depth", "2"];
    let of_guests = ["--guest", "x", "--guest-tracer", "function", "--guest-graph-function", "y"];
    for verb in ["record", "listen"] {
        fails(&[verb, "--function", "x"], 2, &["--tracer"]);
        let message = "--graph-function and --max-depth need --tracer function_graph";
        fails(&[&[verb], &of_host[..]].concat(), 1, &[message]);
    }
    fails(&[&["record"], &of_guests[..]].concat(), 1, &["need --guest-tracer function_graph"]);
    fails(&["record", "--guest-tracer", "function"], 2, &["--guest"]);
}

#[test]
fn metrics_are_for_this_machine_alone_or_encrypted_and_with_a_token() {
    for address in ["0.0.0.0:9797", "[::]:9797", "192.0.2.1:9797"] {
        let all = ["--tls-cert, --tls-key and --token-file", "127.0.0.1"];
        fails(&["serve", "--listen", address], 2, &all);
    }
    fails(&["serve", "--tls-cert", "c.pem"], 2, &["--tls-key"]);
    fails(&["serve", "--token-file", "/nowhere/token"], 1, &["cannot read /nowhere/token"]);
    fails(&["serve", "--listen", "9797"], 2, &["127.0.0.1:9797"]);
    fails(&["serve", "--max-series", "10"], 2, &["--max-series"]);
    fails(&["serve", "--once", "--listen", "127.0.0.1:1"], 2, &["--once", "--listen"]);
}

#[test]
fn intervals_have_some_length() {
    for option in ["--interval", "--for"] {
        fails(&["top", option, "0"], 2, &[option, "longer than 0"]);
        fails(&["top", option, "0ms"], 2, &[option, "longer than 0"]);
    }
    fails(&["serve", "--interval", "0s"], 2, &["--interval", "longer than 0"]);
}

#[test]
fn flight_recorders_keep_something_and_conditions_make_sense() {
    fails(&["record", "--flight", "1ms"], 2, &["--flight", "100ms"]);
    fails(&["record", "--flight", "1s", "--size", "1K"], 2, &["--size", "1M"]);
    fails(&["record", "--when", "run_queue > 1%"], 2, &["--flight"]);
    fails(&["record", "--flight", "1s", "--when", "p99 > 5"], 2, &["--when", "500us"]);
    fails(&["record", "--flight", "1s", "--alerts", "0.0.0.0:1"], 2, &["--alerts", "127.0.0.1"]);
    fails(&["record", "--flight", "1s", "--sample", "99"], 2, &["--flight", "--sample"]);
    fails(&["flight"], 2, &["dump"]);
}

#[test]
fn what_is_no_recording_is_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("empty.dat"), "").unwrap();
    fs::write(path("text.dat"), "hello world\n").unwrap();
    fs::write(path("perf.dat"), "PERFILE2 and more").unwrap();
    fs::write(path("trace.dat.gz"), [0x1f, 0x8b, 8, 0, 0]).unwrap();
    fs::write(path("trace.dat.zst"), [0x28, 0xb5, 0x2f, 0xfd, 0]).unwrap();
    fs::create_dir(path("folder")).unwrap();
    fs::create_dir(path("empty.hscope")).unwrap();
    for verb in [
        "exits", "nested", "advice", "boot", "cpu", "profile", "irqs", "virtio", "vmm", "why",
        "events", "info",
    ] {
        let cases: [(&str, &[&str]); 8] = [
            ("missing.dat", &["cannot read", "No such file"]),
            ("empty.dat", &["is empty"]),
            ("text.dat", &["is not a recording", "\"hello world\"", "trace-cmd report"]),
            ("perf.dat", &["perf.data"]),
            ("trace.dat.gz", &["cut short or damaged", "gzip"]),
            ("trace.dat.zst", &["cut short or damaged", "zstd"]),
            ("folder", &["no recording found", "events"]),
            ("empty.hscope", &["no recording", "host.dat"]),
        ];
        for (name, words) in cases {
            let words: Vec<&str> = words.iter().copied().chain([name]).collect();
            fails(&[verb, &path(name)], 1, &words);
        }
        fails(&[verb, "/dev/null"], 1, &["/dev/null is empty"]);
        // One bad file among good ones fails the run before any work.
        fails(&[verb, SMALL, &path("missing.dat")], 1, &["missing.dat"]);
    }
}

#[test]
fn names_that_no_recording_knows_are_code_1() {
    fails(&["events", "-e", "kvm:kvm_exti", SMALL], 1, &["kvm:kvm_exti", "info"]);
    fails(&["events", "--vm", "web", SMALL], 1, &["web", "vm-171"]);
    fails(&["events", "--where", "colour == 1", SMALL], 1, &["colour"]);
    for to in ["perfetto", "csv"] {
        fails(&["export", "--to", to, "-e", "kvm_exti", SMALL], 1, &["kvm_exti", "info"]);
    }
    fails(&["export", "--to", "csv", "--columns", "colour", SMALL], 1, &["colour"]);
    fails(&["export", "--to", "csv", "--method", "windows", SMALL], 1, &["--method"]);
}

#[test]
fn places_that_cannot_be_written_are_code_1() {
    for verb in [
        "exits", "nested", "advice", "boot", "cpu", "profile", "irqs", "virtio", "vmm", "why",
        "events", "info",
    ] {
        fails(&[verb, "-o", "/nonexistent/report", SMALL], 1, &["/nonexistent/report"]);
        fails(&[verb, "-o", "fixtures", SMALL], 1, &["cannot create fixtures"]);
        if fs::exists("/dev/full").unwrap_or(false) {
            fails(&[verb, "-o", "/dev/full", SMALL], 1, &["cannot write", "No space left"]);
        }
    }
}

#[test]
fn a_recording_is_never_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.dat");
    fs::copy(repository().join(SMALL), &copy).unwrap();
    let before = fs::read(&copy).unwrap();
    let copy = copy.to_str().unwrap();
    for verb in [
        "exits", "nested", "advice", "boot", "cpu", "profile", "irqs", "virtio", "vmm", "why",
        "events", "info",
    ] {
        fails(&[verb, "-o", copy, copy], 1, &["is an input recording"]);
    }
    assert_eq!(fs::read(copy).unwrap(), before);
}

#[test]
fn exports_go_where_they_can_be_written() {
    let tos = ["perfetto", "chrome", "firefox", "csv", "jsonl", "tracedat"];
    for to in tos {
        let args = ["export", "--to", to, "-o"];
        fails(&[&args[..], &["/nonexistent/out", SMALL]].concat(), 1, &["/nonexistent/out"]);
        fails(&[&args[..], &["fixtures", SMALL]].concat(), 1, &["cannot create fixtures"]);
        fails(&[&args[..], &[SMALL, SMALL]].concat(), 1, &["is an input recording"]);
        fails(&[&args[..], &["/tmp/x", "missing.dat"]].concat(), 1, &["missing.dat"]);
        // The target can't seek, but the writer of trace.dat must.
        if fs::exists("/dev/full").unwrap_or(false) && to != "tracedat" {
            fails(&[&args[..], &["/dev/full", SMALL]].concat(), 1, &["cannot write", "No space"]);
        }
    }
}

#[test]
fn a_reader_that_goes_away_is_success() {
    let exports = ["perfetto", "chrome", "firefox", "csv"].map(|to| ["export", "--to", to, SMALL]);
    let exports = exports.iter().map(|args| &args[..]);
    for args in
        exports.chain([&["events", SMALL][..], &["exits", "--format", "json", SMALL], &["man"]])
    {
        let mut child = command().args(args).stdout(std::process::Stdio::piped()).spawn().unwrap();
        // The pipe's reading end is closed before the program writes.
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{args:?}");
    }
}

#[test]
fn a_cut_file_reports_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = fs::read(repository().join("fixtures/arm64/D.perf.data")).unwrap();
    let cut = folder.path().join("cut.data");
    fs::write(&cut, &bytes[..bytes.len() - 1000]).unwrap();
    let cut = cut.to_str().unwrap();
    let sentence = format!(
        "cut short: {} of at least {} bytes; copy it again",
        report_count(bytes.len() - 1000),
        report_count(bytes.len())
    );
    for verb in ["exits", "info", "nested", "calls", "boot"] {
        let run = hyperscope(&[verb, cut]);
        assert_eq!(run.code, 0, "{verb}: {}", run.err);
        assert!(run.out.contains(&sentence), "{verb}: no {sentence} in {}", run.out);
    }
    let events = hyperscope(&["events", cut]);
    assert!(events.code == 0 && events.err.contains(&sentence), "{}", events.err);
    let json: serde_json::Value =
        serde_json::from_str(&hyperscope(&["exits", "--format", "json", cut]).out).unwrap();
    assert!(json["losses"]["pages_damaged"].as_u64() > Some(0));
}

/// A number of at most six digits, formatted as in reports.
fn report_count(number: usize) -> String {
    format!("{},{:03}", number / 1000, number % 1000)
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret.dat");
    fs::write(&path, "x").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        // Root may read any file.
        return;
    }
    fails(&["info", path.to_str().unwrap()], 1, &["secret.dat", "Permission denied"]);
}
