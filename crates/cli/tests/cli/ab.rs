//! `hyperscope ab`: a workload under two configurations.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::schemas::{check, closed};
use crate::tool::{command, hyperscope};

const PRINTS: &str = "if [ $HYPERSCOPE_SIDE = a ]; then echo n=10; else echo n=20; fi";

#[test]
fn documents_keep_their_schema() {
    let args = ["ab", "--a", "true", "--b", "true", "--runs", "3", "--metric", "n=n=([0-9]+)"];
    let run = hyperscope(&[&args[..], &["--format", "json", "--", PRINTS]].concat());
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let report: Value = serde_json::from_str(&run.out).unwrap();
    check(&closed("ab"), &report, "ab");
    assert_eq!(report["runs"].as_array().map(Vec::len), Some(6));
    let n =
        report["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == "n").unwrap();
    assert_eq!((n["a_mean"].as_f64(), n["b_mean"].as_f64()), (Some(10.0), Some(20.0)));
    assert_eq!(n["runs"], 3);
    let ratio = n["ratio"].as_f64().unwrap();
    assert!((ratio - 2.0).abs() < 1e-9, "{ratio}");
    let csv = hyperscope(&[&args[..], &["--format", "csv", "--", PRINTS]].concat());
    assert!(
        csv.out
            .starts_with("name,configuration,a_mean,a_sd,b_mean,b_sd,ratio,ci_low,ci_high,p_value"),
        "{}",
        csv.out
    );
}

#[test]
fn a_page_has_every_run_and_asks_no_network() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("ab.html");
    let args = ["ab", "--a", "true", "--b", "true", "--runs", "3", "--metric", "n=n=([0-9]+)"];
    let run = hyperscope(&[&args[..], &["-o", page.to_str().unwrap(), "--", PRINTS]].concat());
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "", ""));
    let html = std::fs::read_to_string(&page).unwrap();
    // Six runs, with three times of ab's own and n.
    assert_eq!(html.matches("<title>run ").count(), 4 * 6);
    assert!(html.contains("n is 10 under A, 20 under B: 2.000×"), "{html}");
    let asks = ["http:", "https:", "src=", "<link", "<script", "url("];
    assert_eq!(asks.iter().find(|ask| html.contains(**ask)), None);
    // A JSON document requested by name is no page, and must not get a file name that browsers take
    // for one.
    let json = [&args[..], &["--format", "json", "-o", page.to_str().unwrap(), "--", PRINTS]];
    let refused = hyperscope(&json.concat());
    assert!(
        refused.code == 2 && refused.err.contains("would read .html as a page"),
        "{}",
        refused.err
    );
    assert_eq!(std::fs::read_to_string(&page).unwrap(), html);
}

#[test]
fn several_configurations_come_from_setups_or_from_values() {
    let prints = "echo n=$(cat $FILE)";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("value");
    let report_of = |args: &[&str]| {
        let all = ["ab", "--runs", "4", "--metric", "n=n=([0-9]+)", "--format", "json"];
        let mut run = command();
        run.args([&all[..], args, &["--", prints]].concat()).env("FILE", &file);
        let done = run.output().unwrap();
        serde_json::from_slice::<Value>(&done.stdout).unwrap()
    };
    let setup = |value: u32| format!("echo {value} > $FILE");
    let (a, b, c) = (setup(10), setup(20), setup(5));
    let by_setups = report_of(&["--a", &a, "--b", &b, "--b", &c]);
    let by_values = report_of(&["--a", "echo {n} > $FILE", "--parameter-list", "n=10,20,5"]);
    for report in [by_setups, by_values] {
        check(&closed("ab"), &report, "ab");
        let names: Vec<_> = report["configurations"].as_array().unwrap().iter().collect();
        assert_eq!(
            names.iter().map(|configuration| &configuration["name"]).collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
        assert_eq!(names[2]["setup"], c);
        let rows = report["metrics"].as_array().unwrap();
        let n = rows.iter().filter(|row| row["name"] == "n");
        let shown: Vec<_> = n.map(|row| (&row["configuration"], row["b_mean"].as_f64())).collect();
        assert_eq!(shown, [(&"b".into(), Some(20.0)), (&"c".into(), Some(5.0))]);
        assert_eq!(report["runs"].as_array().unwrap().len(), 12);
    }
}

#[test]
fn conditions_decide_the_exit_code() {
    let code = |condition: &str| {
        let args = ["ab", "--a", "true", "--b", "true", "--runs", "4", "--metric", "n=n=([0-9]+)"];
        let run = hyperscope(&[&args[..], &["--fail-if", condition, "--", PRINTS]].concat());
        (run.code, run.err)
    };
    assert_eq!(code("n > +50%").0, 3);
    assert_eq!(code("n < -5%").0, 0);
    assert_eq!(code("n > 15").0, 3);
    assert_eq!(code("wall > 100s").0, 0);
    let (wrong, message) = code("m > +50%");
    assert!(wrong == 2 && message.contains("wall_ns, user_ns, sys_ns, n"), "{message}");
}

#[test]
fn wrong_usage_is_said() {
    for (args, words) in [
        (&["ab", "--a", "true", "--", "true"][..], "--b"),
        (&["ab", "--a", "true", "--b", "true"], "WORKLOAD"),
        (&["ab", "--a", "x", "--parameter-list", "n=1", "--", "true"], "two values"),
        (&["ab", "--a", "x", "--parameter-list", "n=1,2", "--", "true"], "does not contain {n}"),
        (
            &["ab", "--a", "{n}", "--parameter-list", "n=,,,,,,,,,,,,,", "--", "true"],
            "14 configurations",
        ),
        (&["ab", "--a", "x", "--b", "x", "--until", "none", "--", "true"], "2%"),
        (&["ab", "--a", "x", "--b", "x", "--metric", "m", "--", "true"], "NAME=REGEX"),
        (&["ab", "--a", "x", "--b", "x", "--timeout", "0s", "--", "true"], "longer than 0"),
        (&["ab", "--a", "x", "--b", "x", "--budget", "0s", "--", "true"], "longer than 0"),
    ] {
        let run = hyperscope(args);
        assert_eq!(run.code, 2, "{args:?}: {}", run.err);
        assert!(run.err.contains(words), "{args:?}: {}", run.err);
    }
    let run = hyperscope(&["ab", "--a", "true", "--b", "true", "--", "exit 7"]);
    assert!(run.code == 1 && run.err.contains("exit status: 7"), "{}", run.err);
}

/// A workload that fails in its ninth run: two warm up, so that is the seventh counted run.
fn flaky(folder: &std::path::Path) -> String {
    let count = folder.join("count");
    let count = count.display();
    format!(
        "n=$(cat {count} 2>/dev/null || echo 0); n=$((n + 1)); echo $n > {count}; \
         if [ $n = 9 ]; then echo boom >&2; exit 7; fi; echo n=$n"
    )
}

#[test]
fn blocks_before_a_run_that_fails_are_kept_and_the_run_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["ab", "--a", "true", "--b", "true", "--runs", "6", "--format", "json", "--"];
    let run = hyperscope(&[&args[..], &[&flaky(folder.path())]].concat());
    assert_eq!(run.code, 1);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    check(&closed("ab"), &report, "ab");
    assert_eq!(report["runs"].as_array().map(Vec::len), Some(6));
    let failed = report["ended_by"].as_str().unwrap();
    let is_named = ["run 7 (A, block 4): ", "run 7 (B, block 4): "]
        .iter()
        .any(|name| failed.starts_with(name));
    assert!(is_named && failed.contains("exit status: 7: boom"), "{failed}");
    assert!(
        run.err.contains("exit status: 7: boom; use --ignore-failures to continue"),
        "{}",
        run.err
    );
    std::fs::remove_file(folder.path().join("count")).unwrap();
    let table = hyperscope(&[&args[..6], &["6", "--"], &[&flaky(folder.path())]].concat());
    assert!(table.out.contains("in 3 blocks with one run per configuration, "), "{}", table.out);
    assert!(table.out.contains("only the blocks completed before are shown"), "{}", table.out);
}

#[test]
fn failures_are_ignored_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["ab", "--a", "true", "--b", "true", "--runs", "6", "-i", "--format", "json"];
    let failed_in = |more: &[&str], runs: usize| {
        let _ = std::fs::remove_file(folder.path().join("count"));
        let run = hyperscope(&[&args[..], more, &["--", &flaky(folder.path())]].concat());
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        let report: Value = serde_json::from_str(&run.out).unwrap();
        check(&closed("ab"), &report, "ab");
        assert_eq!(report["runs"].as_array().map(Vec::len), Some(runs));
        assert_eq!(report["ended_by"], Value::Null);
        let [failure] = &report["failures"].as_array().unwrap()[..] else { panic!("{report}") };
        assert_eq!((failure["run"].as_u64(), failure["block"].as_u64()), (Some(7), Some(4)));
        failure["error"].as_str().unwrap().to_owned()
    };
    // In the warm-up, and if the run has no number, without its block.
    assert!(failed_in(&[], 12).contains("exit status: 7: boom"));
    let missing = failed_in(&["--metric", "n=n=([0-9]+)"], 10);
    assert!(missing.contains("no number for the metric n: boom"), "{missing}");
    let all = ["--runs", "2", "-i", "--metric", "m=m=([0-9]+)", "--", "echo n=1"];
    let none = hyperscope(&[&["ab", "--a", "true", "--b", "true"], &all[..]].concat());
    assert!(none.code == 1 && none.err.contains("no block was complete"), "{}", none.err);
    assert!(none.err.contains("no number for the metric m: n=1"), "{}", none.err);
}

/// An interrupt ends the run, reverts the setup, and leaves nothing behind.
#[test]
fn an_interrupt_ends_all() {
    let folder = tempfile::tempdir().unwrap();
    let (begin_file, after) = (folder.path().join("begun"), folder.path().join("after"));
    let workload = format!("touch {}; sleep 1000 & wait", begin_file.display());
    let teardown = format!("touch {}", after.display());
    let args = ["ab", "--a", "true", "--b", "true", "--teardown", &teardown, "--", &workload];
    let mut child = command().args(args).stderr(Stdio::piped()).spawn().unwrap();
    let patience = Instant::now();
    while !begin_file.exists() && patience.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(after.exists());
}

/// The refusal precedes the start of labs, which is slow: none starts.
#[test]
fn recordings_go_into_no_folder_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().to_str().unwrap();
    for more in [&["--", "true"][..], &["--lab", "--lab-workload", "stream"]] {
        let run = hyperscope(&[&["ab", "--a", "", "--b", "", "--record", there], more].concat());
        assert_eq!((run.code, run.out.as_str()), (1, ""), "{}", run.err);
        assert!(run.err.contains("--record: the folder"), "{}", run.err);
    }
}
