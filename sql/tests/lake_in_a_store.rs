//! A lake in an object store, by a real server of S3's protocol: every verb, two runs in each other's way, and every
//! request failing in every way.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod alike;
mod store;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use alike::{assert_alike, command, output_of, queries, sources};
use store::faults::{Fault, Way};
use store::{KEY, SECRET, Store};

const SMALL: &str = "fixtures/arm64/B-vhost-off.dat";
const OTHER: &str = "fixtures/arm64/B-vhost-on.dat";
/// Few tables: enough for every kind of request.
const TABLES: &str = "sessions,machines,exits";
const FAULTS: [Fault; 6] = [
    Fault::Busy,
    Fault::Lost,
    Fault::Unanswered,
    Fault::KilledBefore,
    Fault::KilledAfter,
    Fault::Denied,
];

fn asking(at: &str, args: &[&str]) -> Command {
    let mut command = command(args);
    let endpoint = format!("http://{at}");
    command
        .env("AWS_ACCESS_KEY_ID", KEY)
        .env("AWS_SECRET_ACCESS_KEY", SECRET)
        .env("AWS_ENDPOINT_URL", endpoint)
        .env_remove("AWS_REGION");
    command
}

fn stderr_of(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// Standard output of a command that has to succeed.
#[track_caller]
fn does(at: &str, args: &[&str]) -> String {
    let done = asking(at, args).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", stderr_of(&done));
    String::from_utf8(done.stdout).unwrap()
}

#[track_caller]
fn refusal(at: &str, args: &[&str], why: &[&str]) {
    let done = asking(at, args).output().unwrap();
    let stderr = stderr_of(&done);
    assert!(!done.status.success() && !stderr.contains(SECRET), "{args:?}: {stderr}");
    for why in why {
        assert!(stderr.contains(why), "{args:?}: {why} is not in {stderr}");
    }
}

/// The same lake, changed by the same commands in a folder and in a store.
#[test]
fn a_lake_in_a_store_is_that_of_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let Some(store) = Store::new(folder.path()) else { return };
    let here = &sources(folder.path())[0];
    let (at, there) = (store.at.as_str(), "s3://lakes/fleet/one");
    refusal(at, &["lake", "list", there], &["s3://lakes/fleet/one: there is no lake"]);
    refusal(at, &["sql", "SELECT 1", there], &["there is no lake"]);
    for (host, file) in ["web1", "web2"].iter().zip(alike::FIXTURES) {
        let add = ["lake", "add", there, "--label", "pool=x", "--begun", "1795305600", "--host"];
        does(at, &[&add[..], &[host, file]].concat());
    }
    does(at, &["lake", "compact", there, "--before", "2026-11-23"]);
    let again =
        ["lake", "add", there, "--host", "web1", "--begun", "1795305601", alike::FIXTURES[0]];
    does(at, &again);
    let done = asking(at, &again).output().unwrap();
    assert!(stderr_of(&done).contains("there already"), "{}", stderr_of(&done));
    let mut names = names_below(&folder.path().join("root/lakes/fleet/one"));
    names.retain(|name| !name.contains("/."));
    assert_eq!(names, names_below(Path::new(here)));
    for name in &names {
        let bytes = |root: &Path| fs::read(root.join(name)).unwrap();
        let stored = bytes(&folder.path().join("root/lakes/fleet/one"));
        assert!(stored == bytes(Path::new(here)), "{name}");
    }
    assert_eq!(does(at, &["lake", "list", there]), output_of(&["lake", "list", here]));
    let verified = asking(at, &["lake", "verify", there]).output().unwrap();
    assert_eq!(
        stderr_of(&verified),
        stderr_of(&command(&["lake", "verify", here]).output().unwrap())
    );
    for query in queries() {
        let expected = output_of(&["sql", "--format", "json", &query, here]);
        let found = does(at, &["sql", "--format", "json", &query, there]);
        assert_alike(&expected, &found, query.starts_with('@'), &query);
    }
    // Nothing is old enough yet; then all of it is.
    does(at, &["lake", "gc", there]);
    let before = names_below(&folder.path().join("root/lakes/fleet/one")).len();
    does(at, &["lake", "gc", there, "--grace", "0"]);
    assert!(names_below(&folder.path().join("root/lakes/fleet/one")).len() < before);
    does(at, &["lake", "verify", there]);
    let lines = ["fleet", "since", there];
    refusal(at, &lines, &["a change shows where four or more"]);
}

fn names_below(root: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("v1/_lock") {
                names.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    names.sort();
    names
}

#[test]
fn a_store_that_is_not_there_or_has_other_keys_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let Some(store) = Store::new(folder.path()) else { return };
    let lake = "s3://lakes/lake";
    let add = ["lake", "add", lake, SMALL];
    let refused = |set: &dyn Fn(&mut Command), why: &[&str]| {
        for args in [&add[..], &["lake", "list", lake], &["sql", "SELECT 1", lake]] {
            let mut command = asking(&store.at, args);
            set(&mut command);
            let start = Instant::now();
            let done = command.output().unwrap();
            let stderr = stderr_of(&done);
            assert_eq!(done.status.code(), Some(1), "{args:?}: {stderr}");
            assert!(!stderr.contains(SECRET) && stderr.contains(lake), "{args:?}: {stderr}");
            assert!(start.elapsed() < Duration::from_secs(60), "{args:?}: {stderr}");
            for why in why {
                assert!(stderr.contains(why), "{args:?}: {why} is not in {stderr}");
            }
        }
    };
    let other_key = |command: &mut Command| {
        command.env("AWS_SECRET_ACCESS_KEY", "another");
    };
    refused(&other_key, &["the store says SignatureDoesNotMatch: "]);
    let no_key = |command: &mut Command| {
        command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    };
    refused(&no_key, &["no keys for the store: set AWS_ACCESS_KEY_ID"]);
    refusal(&store.at, &["lake", "list", "s3://none/lake"], &["NoSuchBucket"]);
    refusal(&store.at, &["lake", "add", "s3://lakes/a*", SMALL], &["of letters, digits"]);
    let mut command = asking(&store.at, &add);
    command.env("AWS_ENDPOINT_URL", "http://192.0.2.1:9");
    assert!(stderr_of(&command.output().unwrap()).contains("AWS_ALLOW_HTTP"));
}

/// A bucket that commands change, and copies of it.
struct Lakes<'s> {
    store: &'s Store,
    folder: &'s Path,
    copies: usize,
}

impl Lakes<'_> {
    /// A copy of a lake, as `s3://` names it.
    fn copy(&mut self, lake: &str) -> String {
        self.copies += 1;
        let name = format!("copy{}", self.copies);
        for root in ["root/lakes", "more/lakes"].map(|root| self.folder.join(root)) {
            if root.join(lake).exists() {
                let from = root.join(lake);
                let copied = Command::new("cp").arg("-r").arg(from).arg(root.join(&name)).status();
                assert!(copied.unwrap().success());
            }
        }
        format!("s3://lakes/{name}")
    }

    /// Exits by host, by whoever reads the files of a bucket: DuckDB and others do, and this program.
    fn exits(&self, lake: &str) -> String {
        let query = "SELECT host_id, COUNT(*) AS exits FROM session_exits GROUP BY host_id ORDER BY host_id";
        does(&self.store.at, &["sql", "--format", "csv", query, lake])
    }

    fn names(&self, lake: &str) -> Vec<String> {
        let root = self.folder.join("root/lakes").join(lake.rsplit_once('/').unwrap().1);
        names_below(&root)
    }
}

/// A command on a lake, in a process group of its own, over a way.
fn run_over(way: &Way, args: &[&str]) -> Output {
    let mut command = asking(&way.at, args);
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    way.called_by(child.id());
    child.wait_with_output().unwrap()
}

/// Does a change to copies of a lake with a fault at every request. After it the lake holds `after`, or what it did
/// before where it failed, and all of it once the change is done again.
fn faulted_at_every_request(
    lakes: &mut Lakes<'_>,
    (lake, after): (&str, &str),
    args: &[&str],
) -> usize {
    let on = |lake: &str| -> Vec<String> {
        args.iter()
            .map(|&arg| if arg == "LAKE" { lake.to_owned() } else { arg.to_owned() })
            .collect()
    };
    let change = |way: &Way, lake: &str| {
        let args = on(lake);
        run_over(way, &args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let before = lakes.exits(&format!("s3://lakes/{lake}"));
    let faultless_way = Way::new(&lakes.store.at, (0, Fault::None));
    let copy = lakes.copy(lake);
    let done = change(&faultless_way, &copy);
    assert!(done.status.success(), "{}", stderr_of(&done));
    let expected = lakes.names(&copy);
    let requests = faultless_way.requests();
    for at in 0..requests {
        for fault in FAULTS {
            let (copy, when) = (lakes.copy(lake), format!("{args:?}: {fault:?} at {at}"));
            let done = change(&Way::new(&lakes.store.at, (at, fault)), &copy);
            let transient = matches!(fault, Fault::Busy | Fault::Lost | Fault::Unanswered);
            assert_eq!(done.status.success(), transient, "{when}: {}", stderr_of(&done));
            let now = lakes.exits(&copy);
            if transient {
                assert_eq!(now, after, "{when}");
            } else {
                assert!(now == before || now == after, "{when}: {now}");
                assert!(
                    fault != Fault::Denied || stderr_of(&done).contains("AccessDenied"),
                    "{when}: {}",
                    stderr_of(&done)
                );
                let again = change(&faultless_way, &copy);
                assert!(again.status.success(), "{when}: {}", stderr_of(&again));
                assert_eq!(lakes.exits(&copy), after, "done again, {when}");
            }
            // Names say what is in files: no others than without a fault.
            assert_eq!(lakes.names(&copy), expected, "{when}");
        }
    }
    requests
}

#[test]
fn faults_at_every_request_lose_and_double_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(store) = Store::new(folder.path()) else { return };
    let mut lakes = Lakes { store: &store, folder: folder.path(), copies: 0 };
    let add = |host, more: &[&'static str]| {
        let file = if host == "web1" { SMALL } else { OTHER };
        let add = ["lake", "add", "LAKE", "--tables", TABLES, "--host", host];
        [&add[..], more, &[file]].concat()
    };
    let does_to = |lake: &str, args: &[&str]| {
        let lake = format!("s3://lakes/{lake}");
        let args: Vec<&str> =
            args.iter().map(|&arg| if arg == "LAKE" { &lake } else { arg }).collect();
        does(&store.at, &args);
    };
    let noon = ["--begun", "1795305600"];
    does_to("lake", &add("web1", &noon));
    let first = lakes.exits("s3://lakes/lake");
    does_to("both", &add("web1", &noon));
    does_to("both", &add("web2", &noon));
    let both = lakes.exits("s3://lakes/both");
    assert!(both.starts_with(first.trim_end()) && both.lines().count() == 3, "{first} {both}");
    let mut requests = Vec::new();
    let mut faulted = |lake, args: &[&str]| {
        let found = faulted_at_every_request(&mut lakes, (lake, &both), args);
        eprintln!("{found} requests, each with {} faults: {}", FAULTS.len(), args[1]);
        requests.push(found);
    };
    faulted("lake", &add("web2", &noon));
    // Of another day, and in place of what is there.
    faulted("both", &add("web2", &["--begun", "1795392000"]));
    faulted("both", &["lake", "compact", "LAKE"]);
    does_to("both", &["lake", "compact", "LAKE"]);
    faulted("both", &["lake", "gc", "LAKE", "--grace", "0"]);
    assert!(requests.iter().all(|found| *found >= 6), "{requests:?}");
}

/// Two runs at a time: each whole before the other's request.
#[test]
fn two_runs_at_a_time_are_both_done_or_one_of_them_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let Some(store) = Store::new(folder.path()) else { return };
    let lakes = Lakes { store: &store, folder: folder.path(), copies: 0 };
    for round in 0..4 {
        let lake = format!("s3://lakes/round{round}");
        let add = |host: &str, file, start_s: &str| {
            let args =
                ["lake", "add", &lake, "--tables", TABLES, "--host", host, "--begun", start_s];
            asking(&store.at, &[&args[..], &[file]].concat())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let ended = |child: std::process::Child| {
            let done = child.wait_with_output().unwrap();
            let stderr = stderr_of(&done);
            assert!(
                done.status.success() || stderr.contains("another run has changed"),
                "{stderr}"
            );
        };
        ended(add("web1", SMALL, "1795305600"));
        ended(add("web2", OTHER, "1795305600"));
        let before = lakes.exits(&lake);
        let compact = asking(&store.at, &["lake", "compact", &lake]).stderr(Stdio::piped()).spawn();
        let at_a_time =
            [add("web1", SMALL, "1795305601"), add("web1", SMALL, "1795305602"), compact.unwrap()];
        at_a_time.into_iter().for_each(ended);
        assert_eq!(lakes.exits(&lake), before, "round {round}");
        does(&store.at, &["lake", "verify", &lake]);
    }
}
