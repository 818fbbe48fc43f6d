//! Kinds of FILE: a trace.dat, a session, a folder with ring-buffer pages, a pipe.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tracedat::{ChunkReader, TraceDat};

use crate::schemas::{check, closed};
use crate::tool::{command, hyperscope, output_of, output_of_part, repository};

const HOST: &str = "fixtures/x86-svm/host-guest.dat";
const GUEST: &str = "fixtures/x86-svm/host-guest.guest.dat";
const SMP: &str = "fixtures/x86-vmx/smp.dat";

fn copy(from: &str, to: &Path) {
    fs::copy(repository().join(from), to).unwrap();
}

#[test]
fn a_session_stands_for_its_recordings() {
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("web.hscope");
    fs::create_dir(&session).unwrap();
    let (host, guest) = (session.join("host.dat"), session.join("guest-web.dat"));
    copy(HOST, &host);
    copy(GUEST, &guest);
    fs::write(session.join("session.json"), "{}").unwrap();
    let files = [host.to_str().unwrap(), guest.to_str().unwrap()];
    let session = session.to_str().unwrap();
    for args in [
        &["exits"][..],
        &["exits", "--by", "symbol", "--format", "json"],
        &["nested"],
        &["info", "--format", "json"],
        &["align"],
        &["path"],
        &["calls"],
        &["cpu", "--by", "task"],
        &["events", "-e", "sched_switch"],
    ] {
        let run = |files: &[&str]| {
            let run = hyperscope(&[args, files].concat());
            (run.code, run.out, run.err)
        };
        let of_files = run(&files);
        assert!(of_files.0 == 0 && run(&[session]) == of_files, "{args:?}");
    }
    fs::remove_file(&host).unwrap();
    assert!(output_of(&["info", session]).contains("guest-web.dat"));
}

/// How long guests were recorded: as the recorder reports it, otherwise from their events, if their host
/// is given.
#[test]
fn info_says_how_much_of_the_time_guests_were_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("two.hscope");
    fs::create_dir(&session).unwrap();
    copy(HOST, &session.join("host.dat"));
    copy(GUEST, &session.join("guest-l2.dat"));
    let guests = serde_json::json!([
        {"name": "l2", "recorded_ns": 12_900_000_000_u64},
        {"name": "other", "recorded_ns": null},
    ]);
    let document =
        serde_json::json!({"recorded": {"duration_ns": 21_000_000_000_u64, "guests": guests}});
    fs::write(session.join("session.json"), document.to_string()).unwrap();
    let text = output_of(&["info", session.to_str().unwrap()]);
    let covered = |text: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("  recorded    "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(covered(&text), ["l2: 12.9 s of 21.0 s"; 2], "{text}");
    let of_others = output_of(&["info", HOST, GUEST]);
    assert_eq!(covered(&of_others), ["guest: 5.04 s of 10.2 s"], "{of_others}");
    assert_eq!(covered(&output_of(&["info", GUEST])), Vec::<String>::new());
}

/// Writes files in the form of virtio-trace: pages per CPU, and the formats of tracefs.
pub(crate) fn write_raw_pages(from: &str, folder: &Path, page_name: impl Fn(u32) -> String) {
    let file = fs::read(repository().join(from)).unwrap();
    let dat = TraceDat::parse(&file).unwrap();
    let events = folder.join("events");
    for format in &dat.formats.events {
        let name = format.text.lines().next().unwrap().trim_start_matches("name: ");
        let event = events.join(&*format.system).join(name);
        fs::create_dir_all(&event).unwrap();
        fs::write(event.join("format"), &format.text).unwrap();
    }
    fs::write(events.join("header_page"), &dat.formats.header_page).unwrap();
    for (name, section) in [("kallsyms", &dat.kallsyms), ("saved_cmdlines", &dat.cmdlines)] {
        let text = section.as_ref().unwrap().read(&file).unwrap();
        fs::write(folder.join(name), text).unwrap();
    }
    let mut reader = ChunkReader::new();
    for cpu in &dat.buffers[0].cpus {
        let mut pages = Vec::new();
        for chunk in &cpu.chunks(&file).list {
            pages.extend_from_slice(reader.read(&file, chunk).unwrap());
        }
        let path = folder.join(page_name(cpu.cpu));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, pages).unwrap();
    }
}

#[test]
fn bare_pages_show_what_the_file_they_come_from_shows() {
    let layouts: [fn(u32) -> String; 2] =
        [|cpu| format!("trace-path-cpu{cpu}"), |cpu| format!("per_cpu/cpu{cpu}/trace_pipe_raw")];
    for layout in layouts {
        let folder = tempfile::tempdir().unwrap();
        write_raw_pages(SMP, folder.path(), layout);
        let path = folder.path().to_str().unwrap();
        let of_pages = output_of(&["info", path]);
        assert!(of_pages.contains("lost        unknown"), "{of_pages}");
        // With the kernel's counts, losses are known as they are in a trace.dat.
        for cpu in 0..2 {
            let of_cpu = folder.path().join(format!("per_cpu/cpu{cpu}"));
            fs::create_dir_all(&of_cpu).unwrap();
            let counts = "overrun: 0\ncommit overrun: 0\ndropped events: 0\n";
            fs::write(of_cpu.join("stats"), counts).unwrap();
        }
        for args in [
            &["exits"][..],
            &["exits", "--by", "vcpu,reason", "--format", "csv"],
            &["exits", "--format", "json"],
            &["nested"],
            &["cpu", "--format", "json"],
            &["events"],
            &["events", "--format", "jsonl"],
        ] {
            let of_file = output_of(&[args, &[SMP]].concat());
            let of_pages = output_of(&[args, &[path]].concat()).replace(path, SMP);
            assert!(of_pages == of_file, "{args:?}");
        }
        let info = output_of(&["info", path]);
        assert!(info.contains("ring-buffer pages"), "{info}");
        assert!(info.contains("2, 2 with events"), "{info}");
        assert!(info.contains("lost        nothing"), "{info}");
    }
}

#[test]
fn ticks_are_not_called_nanoseconds() {
    let folder = tempfile::tempdir().unwrap();
    write_raw_pages(SMP, folder.path(), |cpu| format!("cpu{cpu}"));
    fs::write(folder.path().join("trace_clock"), "local global [x86-tsc]\n").unwrap();
    let path = folder.path().to_str().unwrap();
    for (schema, args) in [
        ("exits", &["exits", "--format", "json", path][..]),
        ("nested", &["nested", "--format", "json", path]),
        ("cpu", &["cpu", "--format", "json", path]),
        ("profile", &["profile", "--format", "json", path]),
        ("info", &["info", "--format", "json", path]),
    ] {
        let report: Value = serde_json::from_str(&output_of(args)).unwrap();
        check(&closed(schema), &report, schema);
    }
    let exits = output_of(&["exits", "--format", "json", path]);
    let exits: Value = serde_json::from_str(&exits).unwrap();
    let row = &exits["rows"][0];
    assert!(row["time_ns"].is_null() && row["time_cycles"].as_u64() > Some(0), "{row:#}");
    let table = output_of(&["exits", path]);
    assert!(table.contains("ticks of the recording's clock") && !table.contains(" ms "), "{table}");
    let events = output_of(&["events", "--format", "jsonl", path]);
    let first: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    check(&closed("event"), &first, "event");
    let ticks = first["ts_cycles"].as_u64().unwrap();
    // Times are given as they are printed.
    let text = output_of_part(&["events", "--to", &(ticks + 1).to_string(), path]);
    assert_eq!(text.lines().count(), 2, "the number of CPUs, and one event");
    assert!(text.contains(&format!(" {ticks}: ")), "{text}");
}

#[test]
fn pages_without_formats_are_no_recording() {
    let folder = tempfile::tempdir().unwrap();
    write_raw_pages(SMP, folder.path(), |cpu| format!("cpu{cpu}"));
    let path = folder.path().to_str().unwrap();
    fs::rename(folder.path().join("events"), folder.path().join("formats")).unwrap();
    let run = hyperscope(&["exits", path]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("events folder"), "{}", run.err);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_like_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    if !Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()) {
        return;
    }
    let child = command()
        .args(["exits", pipe.to_str().unwrap()])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    fs::write(&pipe, fs::read(repository().join(SMP)).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.replace(pipe.to_str().unwrap(), SMP), output_of(&["exits", SMP]));
}
