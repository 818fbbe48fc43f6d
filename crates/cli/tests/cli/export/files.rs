//! trace.dat exports: complete recordings and parts of them, as this program and trace-cmd read
//! them.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{GUEST, HOST, SMP, export, folder, lines};
use crate::inputs::write_raw_pages;
use crate::tool::{hyperscope, output_of, recordings, repository};

/// The output of trace-cmd; `None` if it is not installed.
fn report(files: &[&Path]) -> Option<String> {
    let mut command = Command::new("trace-cmd");
    command.args(["report", "-N"]).current_dir(repository());
    for file in files {
        command.arg("-i").arg(file);
    }
    let Ok(output) = command.output() else {
        testkit::skip!("trace-cmd is not installed (make tools)");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // trace-cmd prints a signed field wrong.
    Some(String::from_utf8_lossy(&output.stdout).replace("tsc_shift 255,", "tsc_shift -1,"))
}

#[test]
fn a_whole_recording_stays_what_it_is() {
    let folder = folder();
    let file = folder.path().join("copy.dat");
    let copy = file.to_str().unwrap();
    for recording in recordings() {
        // The largest one takes seconds, and is no special case.
        if recording.contains("nested") {
            continue;
        }
        export("tracedat", &file, &[&recording]);
        for args in [&["events"][..], &["exits"], &["info", "--format", "csv"]] {
            let output = |file: &str| output_of(&[args, &[file]].concat()).replace(file, "FILE");
            assert!(output(copy) == output(&recording), "{args:?} {recording}");
        }
        let Some(theirs) = report(&[&file]) else { continue };
        let original = report(&[&repository().join(&recording)]).unwrap();
        assert_eq!(theirs.lines().count(), original.lines().count(), "{recording}");
        // If trace-cmd can't parse a print fmt of the original, the copy has one that it can.
        let pairs = theirs.lines().zip(original.lines());
        let other = |(theirs, original): &(&str, &str)| {
            theirs != original && !original.contains("[FAILED TO PARSE]")
        };
        assert_eq!(pairs.into_iter().find(other), None, "{recording}");
    }
}

#[test]
fn parts_hold_what_events_prints_of_them() {
    let folder = folder();
    let file = folder.path().join("part.dat");
    let parts: [&[&str]; 4] = [
        &["-e", "kvm_exit", "-e", "kvm_entry"],
        &["--cpu", "1"],
        &["--from", "64.5", "--until", "65.000001"],
        &["-e", "sched", "--cpu", "0", "--from", "66"],
    ];
    for part in parts {
        export("tracedat", &file, &[part, &[HOST]].concat());
        let options: Vec<&str> =
            part.iter().map(|option| if *option == "--until" { "--to" } else { option }).collect();
        let expected = lines(&[&options[..], &[HOST]].concat());
        assert!(expected.lines().count() > 500, "{part:?}");
        assert!(lines(&[file.to_str().unwrap()]) == expected, "{part:?}");
        let Some(theirs) = report(&[&file]) else { continue };
        assert!(theirs == expected, "{part:?}");
    }
    assert!(
        fs::metadata(&file).unwrap().len() < fs::metadata(repository().join(HOST)).unwrap().len()
    );
}

#[test]
fn pages_become_a_file() {
    let folder = folder();
    let pages = folder.path().join("pages");
    write_raw_pages(SMP, &pages, |cpu| format!("cpu{cpu}"));
    let (input, file) = (pages.to_str().unwrap(), folder.path().join("out.dat"));
    export("tracedat", &file, &[input]);
    let expected = lines(&[SMP]);
    assert!(lines(&[file.to_str().unwrap()]) == expected);
    let exits = output_of(&["exits", file.to_str().unwrap()]);
    assert_eq!(exits.replace(file.to_str().unwrap(), SMP), output_of(&["exits", SMP]));
    if let Some(theirs) = report(&[&file]) {
        let original = report(&[&repository().join(SMP)]).unwrap();
        let mut pairs = theirs.lines().zip(original.lines());
        assert!(pairs.all(|(line, other)| line == other || other.contains("[FAILED TO PARSE]")));
    }
}

#[test]
fn losses_stay_where_they_were() {
    let folder = folder();
    let pages = folder.path().join("pages");
    write_raw_pages(SMP, &pages, |cpu| format!("cpu{cpu}"));
    let cpu = pages.join("cpu1");
    let mut bytes = fs::read(&cpu).unwrap();
    bytes[2 * 4096 + 8 + 3] |= 0x80;
    fs::write(&cpu, bytes).unwrap();
    let (input, file) = (pages.to_str().unwrap(), folder.path().join("out.dat"));
    for part in [&[][..], &["-e", "kvm"]] {
        export("tracedat", &file, &[part, &[input]].concat());
        let expected = lines(&[part, &[input]].concat());
        assert_eq!(expected.matches("EVENTS DROPPED").count(), 1);
        assert!(lines(&[file.to_str().unwrap()]) == expected, "{part:?}");
        let Some(theirs) = report(&[&file]) else { continue };
        assert_eq!(theirs.matches("EVENTS DROPPED").count(), 1, "{part:?}");
    }
}

/// Events of both machines merge in order of time even without knowledge of the alignment.
#[test]
fn guests_are_written_on_their_hosts_clock() {
    let pairs = [
        [HOST, GUEST],
        ["fixtures/arm64/A.dat", "fixtures/arm64/A.guest.dat"],
        ["fixtures/x86-svm/tsc.dat", "fixtures/x86-svm/tsc.guest.dat"],
    ];
    for pair in pairs {
        let folder = folder();
        let session = folder.path().join("merged.hscope");
        export("tracedat", &session, &pair);
        let files: Vec<_> =
            fs::read_dir(&session).unwrap().map(|entry| entry.unwrap().path()).collect();
        let (host, guest) =
            (session.join("host.dat"), files.iter().find(|path| !path.ends_with("host.dat")));
        let guest = guest.unwrap();
        assert_eq!(files.len(), 2);
        // The lines of the single files are those of the merged output, without the machine's name.
        let merged = lines(&pair);
        for (file, is_host) in [(&host, true), (guest, false)] {
            let alone = lines(&[file.to_str().unwrap()]);
            let of_it =
                merged.lines().filter(|line| line.trim_start().starts_with("host: ") == is_host);
            let of_it: Vec<&str> = of_it.map(|line| line.split_once(": ").unwrap().1).collect();
            let alone: Vec<&str> = alone.lines().collect();
            assert_eq!(alone, of_it, "{}", file.display());
        }
        let Some(theirs) = report(&[&host, guest]) else { continue };
        let stamps: Vec<&str> = theirs
            .lines()
            .filter_map(|line| line.split(']').nth(1)?.split_whitespace().next())
            .collect();
        let seconds = |text: &&str| text.trim_end_matches(':').parse::<f64>().unwrap_or(0.0);
        assert!(stamps.len() > 50_000 && stamps.iter().map(seconds).is_sorted());
        assert_eq!(theirs.lines().count(), merged.lines().count());
        let ours =
            merged.lines().filter_map(|line| line.split(']').nth(1)?.split_whitespace().next());
        assert!(stamps.iter().copied().eq(ours), "{pair:?}: the same times");
    }
}

#[test]
fn a_session_is_exported_as_one() {
    let folder = folder();
    let first = folder.path().join("first.hscope");
    export("tracedat", &first, &[HOST, GUEST]);
    let (second, first) = (folder.path().join("second.hscope"), first.to_str().unwrap());
    export("tracedat", &second, &["-e", "sched_switch", first]);
    assert!(second.join("host.dat").is_file() && second.join("guest-vm-119.dat").is_file());
    let run = hyperscope(&["export", "--to", "tracedat", "-o", first, first]);
    assert!(run.code == 1 && run.err.contains("is an input recording"), "{}", run.err);
}
