//! `hyperscope lake`: added recordings, refusals, and output.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::record::Field;
use serde_json::Value;

use crate::schemas::{check, closed};
use crate::tool::{Run, command, hyperscope, output_of, repository};

const RECORDING: &str = "fixtures/arm64/hypercalls/host.dat";
const OTHER: &str = "fixtures/x86-svm/hypertrace.dat";

fn lake(verb: &str, lake: &Path, args: &[&str]) -> Run {
    hyperscope(&[&["lake", verb, lake.to_str().unwrap()], args].concat())
}

fn sessions(path: &Path) -> Value {
    let args = ["lake", "list", "--format", "json", path.to_str().unwrap()];
    let document = serde_json::from_str(&output_of(&args)).unwrap();
    check(&closed("lake"), &document, "lake list");
    document["sessions"].clone()
}

fn names(folder: &Path) -> Vec<String> {
    let entry = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    fs::read_dir(folder).unwrap().map(|dir_entry| entry(dir_entry).into_string().unwrap()).collect()
}

#[test]
fn what_is_added_is_listed_verified_and_compacted() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("lake");
    let options = ["--host", "web7", "--begun", "1795305600", RECORDING, OTHER];
    let run = lake("add", &at, &options);
    assert_eq!((run.code, run.err.matches(": added\n").count()), (0, 2), "{}", run.err);
    let run = lake("add", &at, &options);
    assert_eq!((run.code, run.err.matches(": there already\n").count()), (0, 2), "{}", run.err);

    let listed = sessions(&at);
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 2);
    for session in listed {
        let source = session["source_uri"].as_str().unwrap();
        let exits: Value =
            serde_json::from_str(&output_of(&["exits", "--format", "json", source])).unwrap();
        let rows = exits["rows"].as_array().unwrap();
        let count: u64 = rows.iter().map(|row| row["count"].as_u64().unwrap()).sum();
        assert!(count > 0);
        assert_eq!(session["rows"]["exits"], count, "{source}");
        assert_eq!((&session["host_id"], &session["date"]), (&"web7".into(), &"2026-11-22".into()));
    }

    let run = lake("compact", &at, &["--before", "2026-11-23"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.starts_with("hyperscope: 2 sessions in "), "{}", run.err);
    let cold = sessions(&at);
    for (hot, cold) in listed.iter().zip(cold.as_array().unwrap()) {
        assert_eq!((&cold["tier"], &cold["rows"]), (&"cold".into(), &hot["rows"]));
    }
    let run = lake("verify", &at, &[]);
    assert!(run.code == 0 && run.err.contains("2 sessions, "), "{}", run.err);

    // Without its file in `sessions`, a session's rows are invalid; gc removes them.
    let day = at.join("v1/sessions/date=2026-11-22");
    fs::remove_file(day.join(names(&day).pop().unwrap())).unwrap();
    assert_eq!(sessions(&at).as_array().unwrap().len(), 1);
    let run = lake("gc", &at, &["--grace", "0"]);
    assert!(run.code == 0 && run.err.contains("removed "), "{}", run.err);
    assert_eq!(lake("verify", &at, &[]).code, 0);
}

/// A recording whose date is given later stays the same session, now on that day.
#[test]
fn a_recording_is_one_session_whatever_is_said_of_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("lake");
    let options = ["--begun", "1795305600", "fixtures/arm64/D.dat"];
    for (args, outcome, day) in [
        (&options[2..], ": added\n", "1970-01-01"),
        (&options[..], ": replaced\n", "2026-11-22"),
        (&options[..], ": there already\n", "2026-11-22"),
        (&options[2..], ": skipped: its rows already have a date", "2026-11-22"),
    ] {
        let run = lake("add", &at, args);
        assert!(run.code == 0 && run.err.contains(outcome), "{}", run.err);
        let listed = sessions(&at);
        assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
        assert_eq!(listed[0]["date"], day);
    }
    let run = lake("verify", &at, &[]);
    assert!(run.code == 0 && run.err.contains("1 session, "), "{}", run.err);
}

#[test]
fn other_folders_are_no_lakes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("empty")).unwrap();
    fs::create_dir_all(at("newer/v2/sessions")).unwrap();
    fs::create_dir(at("other")).unwrap();
    fs::write(at("other/host.dat"), "text").unwrap();
    for (name, words) in [
        ("missing", "is not a lake"),
        ("empty", "is not a lake"),
        ("other", "is not a lake"),
        ("newer", "is a lake of version v2"),
    ] {
        for verb in ["list", "verify", "compact", "gc"] {
            let run = lake(verb, &at(name), &[]);
            assert_eq!((run.code, run.out.as_str()), (1, ""), "{verb} {name}: {}", run.err);
            assert!(run.err.contains(words), "{verb} {name}: {}", run.err);
        }
    }
    for (name, words) in [("other", "contains other files"), ("newer", "is a lake of version v2")] {
        let before = names(&at(name));
        let run = lake("add", &at(name), &[RECORDING]);
        assert!(run.code == 1 && run.err.contains(words), "{name}: {}", run.err);
        assert_eq!(names(&at(name)), before);
    }
    assert_eq!(names(folder.path()).len(), 3);
    assert_eq!(lake("add", &at("empty"), &[RECORDING]).code, 0);
}

#[test]
fn what_is_no_recording_is_rejected_and_names_stay_in_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("lake");
    let name = folder.path().join("a\nb\x1b[31m.dat");
    fs::copy(repository().join(RECORDING), &name).unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "no recording").unwrap();
    let options = ["--begun", "1795305600", "--host", "h\ni"];
    let files = [text.to_str().unwrap(), name.to_str().unwrap()];
    let run = lake("add", &at, &[&options[..], &files].concat());
    assert_eq!(run.code, 1, "{}", run.err);
    let lines: Vec<&str> = run.err.lines().collect();
    assert_eq!(lines.len(), 3, "{}", run.err);
    // Each message has the path only once.
    assert!(lines[0].contains("text: rejected: it is not a recording"), "{}", run.err);
    assert_eq!(lines[0].matches(text.to_str().unwrap()).count(), 1, "{}", run.err);
    let missing = folder.path().join("missing");
    let of_missing = lake("add", &at, &[missing.to_str().unwrap()]).err;
    assert!(of_missing.contains("missing: rejected: cannot be read: No such file"), "{of_missing}");
    assert!(lines[1].contains("a\\nb\\x1b[31m.dat: added"), "{}", run.err);
    let table = output_of(&["lake", "list", at.to_str().unwrap()]);
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(!table.contains('\x1b') && table.contains("h\\ni"), "{table}");
    assert_eq!(sessions(&at)[0]["host_id"], "h\ni");
}

#[test]
fn two_that_add_at_once_wait_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("lake");
    let add = |file: &str| {
        let at = at.to_str().unwrap();
        command().args(["lake", "add", at, "--begun", "1795305600", file]).spawn().unwrap()
    };
    let all = [add(RECORDING), add(OTHER), add(RECORDING)];
    for mut child in all {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    assert_eq!(sessions(&at).as_array().unwrap().len(), 2);
    assert_eq!(lake("verify", &at, &[]).code, 0);
}

#[test]
fn wrong_arguments_are_usage_errors() {
    for args in [
        &["compact", "--before", "2026-13-01"][..],
        &["compact", "--before", "yesterday"],
        &["gc", "--keep", "sessions=7"],
        &["gc", "--keep", "exits"],
        &["verify", "--expired", "nothing"],
        &["add", "--begun", "now", RECORDING],
        &["add", "--begun", "9223372036", RECORDING],
        &["add", "--begun", "1795305600000", RECORDING],
        &["add"],
    ] {
        let run = lake(args[0], Path::new("target/no-lake"), &args[1..]);
        assert_eq!(run.code, 2, "{args:?}: {}", run.err);
    }
    let run = hyperscope(&["export", "--to", "parquet", "-o", "-", RECORDING]);
    assert!(run.code == 2 && run.err.contains("needs -o FOLDER"), "{}", run.err);
}

/// All texts in the files of a lake, and the names of these files.
fn texts(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        found.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        if path.is_dir() {
            found.extend(texts(&path));
        } else if path.extension().is_some_and(|end| end == "parquet") {
            let reader = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
            for row in reader.get_row_iter(None).unwrap() {
                for (_, field) in row.unwrap().get_column_iter() {
                    found.extend(match field {
                        Field::Str(text) => Some(text.clone()),
                        _ => None,
                    });
                }
            }
            found.push(String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
        }
    }
    found
}

/// A session whose guest has a name, a recording with requests, one with calls, and an unreadable one.
#[test]
fn no_name_is_in_a_lake_of_pseudonyms() {
    let folder = tempfile::tempdir().unwrap();
    let (named, hashed) = (folder.path().join("named"), folder.path().join("hashed"));
    let at = |name: &str| folder.path().join(name);
    let secret = at("payroll-session");
    fs::create_dir(&secret).unwrap();
    for file in fs::read_dir(repository().join("fixtures/arm64/hypercalls")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), secret.join(file.file_name())).unwrap();
    }
    let session = fs::read_to_string(secret.join("session.json")).unwrap();
    let session = session.replace("\"name\": \"l2\"", "\"name\": \"payroll-vm\"");
    fs::write(secret.join("session.json"), session).unwrap();
    fs::write(at("payroll-broken.dat"), "no recording").unwrap();
    let files = [
        secret.to_str().unwrap(),
        "fixtures/x86-svm/host-guest.dat",
        "fixtures/x86-svm/calls.dat",
        at("payroll-broken.dat").to_str().unwrap(),
    ]
    .map(str::to_owned);
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let key = at("lake.key");
    let options = ["--host", "payroll-host", "--begun", "1795305600", "--label", "pool=canary"];
    let pseudonymize = ["--pseudonymize", key.to_str().unwrap()];
    let add = |to: &Path, more: &[&str], files: &[&str]| {
        lake("add", to, &[&options, more, files].concat())
    };
    let run = add(&named, &[], &files);
    assert_eq!((run.code, run.err.matches(": added\n").count()), (1, 3), "{}", run.err);
    let run = add(&hashed, &pseudonymize, &files);
    assert_eq!((run.code, run.err.matches(": added\n").count()), (1, 3), "{}", run.err);
    assert!(run.err.contains("lake.key: created; "), "{}", run.err);
    let run = add(&hashed, &pseudonymize, files.split_last().unwrap().1);
    assert_eq!((run.code, run.err.matches(": there already\n").count()), (0, 3), "{}", run.err);

    // Names in one lake's columns occur nowhere in the other.
    let (open, closed) = (texts(&named), texts(&hashed));
    let names =
        ["payroll", "trace-cmd", "qemu-system", "CPU 0/KVM", "vm-119", "fixtures", "guest-l2"];
    let all =
        |texts: &[String], name: &str| texts.iter().filter(|text| text.contains(name)).count();
    let seen = names.iter().filter(|name| all(&open, name) > 0).count();
    assert!(seen >= 5, "{seen}: {:?}", names.map(|name| all(&open, name)));
    assert_eq!(names.map(|name| all(&closed, name)), [0; 7]);
    for word in ["canary", "wakes vhost", "host", "npf", "boot"] {
        assert_eq!(all(&open, word) > 0, all(&closed, word) > 0, "{word}");
    }
    // Sums by kind are equal, and a host is still one host.
    let (open, closed) = (sessions(&named), sessions(&hashed));
    let rows = |list: &Value| -> Vec<Value> {
        let mut rows: Vec<Value> =
            list.as_array().unwrap().iter().map(|session| session["rows"].clone()).collect();
        rows.sort_by_key(Value::to_string);
        rows
    };
    assert_eq!(rows(&open), rows(&closed));
    let hosts: Vec<&str> = closed
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["host_id"].as_str().unwrap())
        .collect();
    assert!(hosts.iter().all(|host| host == hosts.first().unwrap() && host.starts_with("p-")));
    let run = lake("compact", &hashed, &["--before", "2026-11-23"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let cold = texts(&hashed);
    assert_eq!(names.map(|name| all(&cold, name)), [0; 7]);
    assert_eq!(lake("verify", &hashed, &[]).code, 0);

    // All sessions of a lake use the same key, or none.
    let other = at("other.key");
    fs::write(&other, "0123456789abcdef").unwrap();
    let with = |key: &Path| ["--pseudonymize".to_owned(), key.to_str().unwrap().to_owned()];
    let refused = |to: &Path, key: Option<&Path>, code: i32, words: &str| {
        let key = key.map(with).map_or_else(Vec::new, Vec::from);
        let key: Vec<&str> = key.iter().map(String::as_str).collect();
        let run = add(to, &key, &[OTHER]);
        assert!(run.code == code && run.err.contains(words), "{key:?}: {} {}", run.code, run.err);
    };
    refused(&hashed, Some(&other), 1, "other users can read this key");
    fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
    refused(&hashed, Some(&other), 2, "with another key");
    refused(&hashed, None, 2, "use --pseudonymize with its key");
    refused(&named, Some(&key), 2, "this lake already has plain names");
    refused(&hashed, Some(&hashed.join("v1/key")), 2, "this key is inside the lake");
    fs::write(&other, "short").unwrap();
    refused(&hashed, Some(&other), 1, "too short for a key");
    let run = add(&hashed, &[&pseudonymize[..], &["-e", "kvm"]].concat(), &[OTHER]);
    assert!(run.code == 2 && run.err.contains("cannot be used with"), "{}", run.err);
}
