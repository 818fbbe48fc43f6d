//! Damaged recordings, and small files that expand: every verb that reads recordings ends soon, with
//! a regular exit code, and within its memory limit.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use surfaces::sections::Sound;
use tempfile::TempDir;
use testkit::Random;

use crate::extent::extent;

/// The shell's limit of a verb's virtual memory, in KiB.
const MAX_VIRTUAL_KIB: u64 = 3_000_000;
const LIMIT: Duration = Duration::from_secs(20);
/// A verb's default limit, and other memory that the kernel counts: libraries, stacks.
pub(crate) const MAX_ANONYMOUS_KIB: u64 = 256 << 10;
const SEED: u64 = 0x0F11_E5ED;

/// Verbs that read recordings, with their arguments; `{}` is the file, `{out}` a file to write.
pub(crate) const VERBS: [&str; 22] = [
    "info {}",
    "info --format json {}",
    "exits {}",
    "exits --by reason,msr,port --format json {}",
    "nested {}",
    "cpu {}",
    "path {}",
    "align {} {copy}",
    "events {}",
    "events --format jsonl {}",
    "nested --format json {}",
    "events --raw {}",
    "report {} -o {out}",
    "export --to perfetto -o {out} {}",
    "export --to firefox -o {out} {}",
    "export --to chrome -o {out} {}",
    "export --to jsonl -o {out} {}",
    "export --to tracedat -o {out} {}",
    "boot {}",
    "calls {}",
    "hypertrace {}",
    "diff {} {copy}",
];

/// The end of a verb, and its peak anonymous memory.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
    pub(crate) peak_kib: u64,
    pub(crate) took: Duration,
    /// Whether it was killed because it took too long.
    pub(crate) is_late: bool,
}

/// The program under test; a campaign may use another one, such as an optimised build.
fn program() -> PathBuf {
    let other = std::env::var_os("HYPERSCOPE_UNDER_TEST");
    other.map_or_else(|| env!("CARGO_BIN_EXE_hyperscope").into(), PathBuf::from)
}

pub(crate) fn run(verb: &str, file: &Path, folder: &Path) -> Ended {
    let (out, messages) = (folder.join("out"), folder.join("messages"));
    // Naming the same file twice is refused.
    let copy = folder.join("copy");
    if verb.contains("{copy}") {
        fs::copy(file, &copy).unwrap();
    }
    let arguments = verb.split(' ').map(|word| match word {
        "{}" => file.to_owned(),
        "{out}" => out.clone(),
        "{copy}" => copy.clone(),
        word => PathBuf::from(word),
    });
    let began = Instant::now();
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MAX_VIRTUAL_KIB}; ulimit -c 0; exec \"$0\" \"$@\"")])
        .arg(program())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(File::create(folder.join("table")).unwrap())
        .stderr(File::create(&messages).unwrap())
        .spawn()
        .unwrap();
    let status_of = PathBuf::from(format!("/proc/{}/status", child.id()));
    let (mut peak_kib, mut pause, mut is_late) = (0, Duration::from_millis(1), false);
    let status = loop {
        peak_kib = peak_kib.max(anonymous_kib(&status_of));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > LIMIT * extent(4, 1) {
            is_late = true;
            child.kill().unwrap();
            break child.wait().unwrap();
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(8));
    };
    let stderr = String::from_utf8_lossy(&fs::read(&messages).unwrap()).into_owned();
    let code = status.code().filter(|_| status.signal().is_none());
    let _ = fs::remove_file(&out);
    Ended { code, stderr, peak_kib, took: began.elapsed(), is_late }
}

/// The anonymous memory of a process, by its status file; 0 when it has ended.
pub(crate) fn anonymous_kib(status: &Path) -> u64 {
    let text = fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Describes an irregular end of a verb, if any.
pub(crate) fn fault(ended: &Ended) -> Option<String> {
    let in_order = matches!(ended.code, Some(0..=3)) && !ended.stderr.contains("panicked");
    let has_message =
        ended.code == Some(0) || ended.stderr.starts_with("hyperscope: ") || ended.code == Some(3);
    let within = ended.peak_kib <= MAX_ANONYMOUS_KIB;
    (!in_order || !has_message || !within).then(|| format!("{ended:?}"))
}

/// Bundled recordings of at most some hundred kilobytes.
fn sound_files() -> Vec<Sound> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut files = Vec::new();
    for folder in ["arm64", "x86-svm", "x86-vmx"] {
        for entry in fs::read_dir(fixtures.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let len = fs::metadata(&path).unwrap().len();
            if path.extension().is_some_and(|kind| kind == "dat") && len < 2 << 20 {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                files.extend(Sound::find(name, fs::read(&path).unwrap()));
            }
        }
    }
    files.sort_by(|file, other| file.name.cmp(&other.name));
    files
}

/// Each line of [`VERBS`] works: one that clap refuses would pass with any file.
#[test]
fn every_verb_reads_a_sound_file() {
    let folder = TempDir::new().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/x86-svm");
    for verb in VERBS {
        // A verb without results has its own error, which is not about arguments.
        let file = match verb.split(' ').next() {
            Some("calls") => "calls.dat",
            Some("boot") => "boot.dat",
            Some("align") => "host-guest.dat",
            _ => "hypertrace.dat",
        };
        let ended = run(verb, &fixtures.join(file), folder.path());
        assert_eq!((ended.code, fault(&ended)), (Some(0), None), "{verb}: {ended:?}");
    }
}

/// The number of damaged files, and how many of [`VERBS`] read each, in turn.
/// `HYPERSCOPE_MUTATED=20000x22` takes a night.
fn campaign() -> (usize, usize) {
    let setting = std::env::var("HYPERSCOPE_MUTATED").ok();
    let choice = setting.and_then(|text| {
        let (files, verbs) = text.split_once('x')?;
        Some((files.parse().ok()?, verbs.parse().ok()?))
    });
    choice.unwrap_or((extent(8, 20_000), 4))
}

#[test]
fn no_damage_to_a_file_makes_a_verb_crash_or_hang() {
    let (files, verbs_each) = campaign();
    println!("{files} damaged files, {verbs_each} verbs each, seed {SEED:#x}");
    let sound = sound_files();
    assert!(sound.len() > 3, "the bundled recordings are missing");
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    // A run that took too long is repeated alone on this machine.
    let machine = RwLock::new(());
    let run_alone_if_late = |verb: &str, file: &Path, folder: &Path| {
        let shared = machine.read();
        let ended = run(verb, file, folder);
        drop(shared);
        if !ended.is_late {
            return ended;
        }
        let _alone = machine.write();
        run(verb, file, folder)
    };
    let work = || {
        let folder = TempDir::new().unwrap();
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number > 0 && number.is_multiple_of(1000) {
                println!("{number} files, {} faults", faults.lock().len());
            }
            if number >= files || faults.lock().len() > 20 {
                break;
            }
            let mut random = Random(SEED ^ (number as u64 + 1) << 20);
            let (bytes, done) = sound[number % sound.len()].damaged(&mut random);
            let file = folder.path().join("damaged.dat");
            fs::write(&file, bytes).unwrap();
            for at in 0..verbs_each {
                let verb = VERBS[(number * verbs_each + at) % VERBS.len()];
                if let Some(fault) = fault(&run_alone_if_late(verb, &file, folder.path())) {
                    let copy = std::env::temp_dir().join(format!("damaged-{number}.dat"));
                    let _ = fs::copy(&file, &copy);
                    let copy = copy.display();
                    faults.lock().push(format!("{number} ({copy}), {verb}: {done}: {fault}"));
                }
            }
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    let faults = faults.into_inner();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
