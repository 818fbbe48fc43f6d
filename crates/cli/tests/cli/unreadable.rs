//! Truncated or damaged recordings, in every container, for every verb that reads them.

mod containers;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use self::containers::{Fault, containers};
use crate::tool::{Run, hyperscope, repository};
use parking_lot::Mutex;

const SOUND: &str = "fixtures/x86-vmx/smp.dat";

/// Verbs that read one recording; FILE is the recording, OUT a new file.
const VERBS: [&[&str]; 34] = [
    &["info", "FILE"],
    &["exits", "FILE"],
    &["exits", "--by", "symbol", "FILE"],
    &["advice", "FILE"],
    &["why", "FILE"],
    &["cpu", "FILE"],
    &["profile", "FILE"],
    &["irqs", "FILE"],
    &["virtio", "FILE"],
    &["vmm", "FILE"],
    &["path", "FILE"],
    &["nested", "FILE"],
    &["calls", "FILE"],
    &["boot", "FILE"],
    &["align", "FILE"],
    &["events", "FILE"],
    &["hypertrace", "FILE"],
    &["critical", "--task", "qemu", "FILE"],
    &["diff", "exits", "FILE", "SOUND"],
    &["diff", "cpu", "SOUND", "FILE"],
    &["diff", "profile", "FILE", "SOUND"],
    &["diff", "path", "FILE", "SOUND"],
    &["diff", "nested", "FILE", "SOUND"],
    &["diff", "boot", "FILE", "SOUND"],
    &["report", "-o", "OUT", "FILE"],
    &["report", "-o", "OUT", "--baseline", "FILE", "SOUND"],
    &["export", "--to", "csv", "-o", "OUT", "FILE"],
    &["export", "--to", "jsonl", "-o", "OUT", "FILE"],
    &["export", "--to", "chrome", "-o", "OUT", "FILE"],
    &["export", "--to", "firefox", "-o", "OUT", "FILE"],
    &["export", "--to", "perfetto", "-o", "OUT", "FILE"],
    &["export", "--to", "tracedat", "-o", "OUT", "FILE"],
    &["export", "--to", "parquet", "-o", "OUT", "FILE"],
    &["lake", "add", "OUT", "FILE"],
];

fn run(verb: &[&str], file: &Path, out: &Path) -> Run {
    let word = |word: &&str| match *word {
        "FILE" => file.to_str().unwrap().to_owned(),
        "OUT" => out.to_str().unwrap().to_owned(),
        "SOUND" => SOUND.to_owned(),
        word => word.to_owned(),
    };
    let args: Vec<String> = verb.iter().map(word).collect();
    hyperscope(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Runs verbs on one recording, several at a time.
fn run_all(
    verbs: &[(usize, &'static [&'static str])],
    file: &Path,
    folder: &Path,
) -> Vec<(&'static [&'static str], PathBuf, Run)> {
    let (next, done) = (Mutex::new(verbs.iter()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let Some(&(at, verb)) = next.lock().next() else { return };
            let out = folder.join(format!("out-{at}"));
            let run = run(verb, file, &out);
            done.lock().push((verb, out, run));
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    done.into_inner()
}

/// Whether a verb ends with code 1 and a sentence that names the file, and writes nothing.
fn is_refused(name: &str, verb: &[&str], out: &Path, run: &Run) -> bool {
    let Run { code, out: printed, err } = run;
    let is_lake = verb.first() == Some(&"lake");
    let why = ["cut short", "damaged", "is empty", "are empty", "is not a recording"];
    // A lake adds a second line with the number of rejected files.
    err.lines().count() == if is_lake { 2 } else { 1 }
        && (*code, printed.as_str()) == (1, "")
        && (is_lake || !out.exists())
        && err.contains(name)
        && !err.contains("os error")
        && why.iter().any(|why| err.contains(why))
}

/// Whether the remaining data is shown, and the message names the loss.
fn is_read(verb: &[&str], run: &Run, shows_cut: bool) -> bool {
    let output = format!("{}{}", run.out, run.err);
    let words = ["cut short", "could not be read", "lost", "missing"];
    // The requested data may be missing in a sound recording as well, or the architecture differs.
    let asks_for_more = ["hypertrace", "critical", "diff"].contains(verb.first().unwrap())
        || verb.contains(&"--baseline");
    match run.code {
        0 => !shows_cut || words.iter().any(|word| output.contains(word)),
        code => asks_for_more && [1, 2].contains(&code) && !output.contains("panicked"),
    }
}

/// Each fault of each container is tested with a third of the verbs, the next with another third, so that each verb
/// meets each fault and each container; `make test-inputs` runs all verbs each time.
#[test]
fn every_verb_says_in_a_sentence_why_nothing_can_be_read() {
    let (place, mut wrong) = (tempfile::tempdir().unwrap(), Vec::new());
    let mut first = 0;
    for container in containers(place.path()) {
        for fault in Fault::ALL {
            first += 1;
            let verbs = VERBS.iter().copied().enumerate().cycle().skip(first).take(VERBS.len());
            let verbs = testkit::sampled(verbs, 3);
            let folder = tempfile::tempdir().unwrap();
            container.write_with(fault);
            let name = container.name;
            let is_readable = container.is_readable_with(fault);
            for (verb, out, run) in run_all(&verbs, &container.path, folder.path()) {
                let is_right = if is_readable {
                    // A text does not contain its length.
                    is_read(verb, &run, name != "text.txt")
                } else {
                    is_refused(name, verb, &out, &run)
                };
                if !is_right {
                    wrong.push(format!("{name}, {fault:?}, {verb:?}: {run:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The lengths are those of the file and of its header.
#[test]
fn a_recording_that_is_cut_says_how_much_of_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("third.dat");
    let bytes = fs::read(repository().join("fixtures/x86-svm/host-guest.dat")).unwrap();
    fs::write(&path, &bytes[..200_000]).unwrap();
    let run = hyperscope(&["exits", path.to_str().unwrap()]);
    let sentence = "third.dat: cut short: 200,000 of at least 909,441 bytes; copy it again";
    assert!(run.code == 1 && run.err.contains(sentence), "{}", run.err);
}

/// Linux 6.18's output for two events with the options raw, hex and bin, and lines of its function_graph tracer: each
/// is refused with the name of its form.
#[test]
fn what_a_kernel_prints_in_other_ways_is_named() {
    const HEAD: &str = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 88/88   #P:2\n#\n";
    let raw = "31762 0 35575478456566 type: 372\n31767 0 35575480321593 type: 372\n";
    let hex = "00007c12 00000000 0000205b0fc190f6 type: 372\n\n00007c17 00000000 0000205b0fde0639 type: 372\n\n";
    let bin = b"\x18\x7c\0\0\x01\0\0\0\xca\x0e\xc1\x12\x5b\x20\0\0type: 375\n\
                \x18\x7c\0\0\x01\0\0\0\x7b\xc6\xc2\x12\x5b\x20\0\0type: 372\n";
    let graph = " 0)   0.524 us    |  kvm_arch_vcpu_load();\n 0)               |  vcpu_run() {\n 0)   3.234 us    |  }\n";
    let with_times = "  123.456789 |   0)   0.524 us    |  kvm_arch_vcpu_load();\n\
                      123.456790 |   0)               |  vcpu_run() {\n";
    let options = "printed it with the option raw or hex";
    let tracer = "its lines come from the kernel's function_graph tracer without times or threads: set the kernel's options \
                  funcgraph-abstime and funcgraph-proc, or use trace-cmd report";
    let in_binary = "looks like a kernel's trace file with the option bin";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace");
    for (body, says) in [
        (raw.as_bytes(), options),
        (hex.as_bytes(), options),
        (bin, in_binary),
        (graph.as_bytes(), tracer),
        (with_times.as_bytes(), tracer),
    ] {
        for head in [HEAD, ""] {
            std::fs::write(&file, [head.as_bytes(), body].concat()).unwrap();
            for verb in [&["info", "FILE"][..], &["exits", "FILE"], &["align", "FILE", "SOUND"]] {
                let run = run(verb, &file, folder.path());
                assert_eq!((run.code, run.out.as_str()), (1, ""), "{verb:?} {says}");
                assert!(run.err.contains(says), "{verb:?} {says}: {}", run.err);
            }
        }
    }
}
