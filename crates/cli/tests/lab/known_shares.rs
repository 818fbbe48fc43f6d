//! Profiles of code with known shares: functions of a module in the guest, each busy for a random number of parts of
//! the time, one of them with interrupts off. Names and parts are drawn again each time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use testkit::Random;

use crate::architecture::Architecture;
use crate::hangs::Machines;
use crate::recorded::{Recorded, json};
use crate::tool::folder as lab_folder;

/// How long the functions are busy.
const SECONDS: u64 = 20;
/// Length of a part: shorter than the interval of samples, so that each sample may hit any part.
const PART_US: u64 = 50;
/// Allowed error: this many standard deviations of as many samples, plus this much, because the emulator takes
/// interrupts only at ends of code blocks.
const DEVIATIONS: f64 = 4.0;
const OFF: f64 = 0.03;
/// Parts of the functions, in any order; the first name runs with interrupts off.
const PARTS: [u64; 4] = [2, 5, 3, 2];

/// Functions and their parts.
pub(crate) struct Drawn {
    pub(crate) names: [String; 4],
    parts: [u64; 4],
}

impl Drawn {
    pub(crate) fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let mut random = Random(now.as_nanos() as u64 | 1);
        let mut next = move |below: u64| random.below(below);
        let names = std::array::from_fn(|at| {
            let letters = (0..8).map(|_| char::from(b'a' + next(26) as u8));
            format!("busy{at}_{}", letters.collect::<String>())
        });
        let mut parts = PARTS;
        for at in (1..parts.len()).rev() {
            parts.swap(at, next(at as u64 + 1) as usize);
        }
        Self { names, parts }
    }

    /// A module that runs them when its parameter is written.
    fn source(&self, architecture: Architecture) -> String {
        let clock = clock(architecture);
        let function = |(name, parts): (&String, u64)| {
            let us = parts * PART_US;
            // Without that attribute the compiler merges equal functions.
            format!("static __attribute__((noipa)) void {name}(void) {{ spin({us}); }}\n")
        };
        let functions: String = self.names.iter().zip(self.parts).map(function).collect();
        let calls: String = self.names[1..].iter().map(|name| format!("{name}(); ")).collect();
        let apart = &self.names[0];
        format!(
            "#include <linux/module.h>\n#include <linux/ktime.h>\n#include <linux/sched.h>\n{clock}\
             static __always_inline void spin(u64 us) {{\n\
             u64 end = ticks() + us * TICKS_A_MS / 1000; while (ticks() < end) barrier(); }}\n{functions}\
             static int run(const char *text, const struct kernel_param *param) {{\n\
             u64 end = ktime_get_ns() + {SECONDS}ULL * NSEC_PER_SEC;\n\
             while (ktime_get_ns() < end) {{ unsigned long flags; {calls}\n\
             local_irq_save(flags); {apart}(); local_irq_restore(flags); cond_resched(); }}\nreturn 0; }}\n\
             static const struct kernel_param_ops ops = {{ .set = run }};\n\
             module_param_cb(run, &ops, NULL, 0200);\nMODULE_LICENSE(\"GPL\");\n"
        )
    }

    /// Builds it for the lab's kernel; `None`: there are no headers here.
    pub(crate) fn build(&self, architecture: Architecture, folder: &Path) -> Option<PathBuf> {
        let kmod = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kmod/build");
        let built = Command::new(kmod)
            .arg(architecture.of_debian())
            .env("HYPERSCOPE_LAB_DIR", lab_folder())
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&built.stdout).into_owned();
        let module = PathBuf::from(stdout.trim());
        let Some(folder_of_release) = module.parent().filter(|_| built.status.success()) else {
            testkit::skip!("no module: {}", String::from_utf8_lossy(&built.stderr));
            return None;
        };
        let release = folder_of_release.file_name().unwrap().to_str().unwrap();
        let installed = PathBuf::from(format!("/lib/modules/{release}/build"));
        let fetched = folder_of_release.join(format!("headers/usr/src/linux-headers-{release}"));
        let headers = if installed.exists() { installed } else { fetched };
        fs::write(folder.join("busy.c"), self.source(architecture)).unwrap();
        fs::write(folder.join("Makefile"), "obj-m := busy.o\n").unwrap();
        let made = Command::new("make")
            .arg("-C")
            .arg(headers)
            .arg(format!("M={}", folder.display()))
            .args(architecture.of_kbuild())
            .args(["CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"])
            .output()
            .unwrap();
        let output = [made.stdout, made.stderr].concat();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&output));
        Some(folder.join("busy.ko"))
    }

    /// Each function's share of their time in a profile, and the number of samples.
    fn found(&self, profile: &Value) -> ([f64; 4], u64) {
        let mut times: BTreeMap<&str, u64> = BTreeMap::new();
        let mut samples = 0;
        for row in profile["rows"].as_array().unwrap() {
            let Some(frame) = row["stack"].as_array().unwrap().last() else { continue };
            let Some(name) = self.names.iter().find(|name| frame["symbol"] == name.as_str()) else {
                continue;
            };
            assert_eq!(frame["module"], "busy");
            *times.entry(name).or_default() += row["time_ns"].as_u64().unwrap();
            samples += row["samples"].as_u64().unwrap();
        }
        let total: u64 = times.values().sum();
        let share = |name: &String| {
            times.get(name.as_str()).copied().unwrap_or(0) as f64 / total.max(1) as f64
        };
        (std::array::from_fn(|at| share(&self.names[at])), samples)
    }

    /// The first function whose share exceeds the sampling error.
    fn wrong(&self, (found, samples): ([f64; 4], u64)) -> Option<String> {
        let total: u64 = self.parts.iter().sum();
        let all = self.names.iter().zip(self.parts).zip(found);
        let wrong = all.filter_map(|((name, parts), found)| {
            let share = parts as f64 / total as f64;
            let deviation = (share * (1.0 - share) / samples.max(1) as f64).sqrt();
            let off = (found - share).abs();
            (off > DEVIATIONS * deviation + OFF)
                .then(|| format!("{name}: {found:.3}, not {share:.3}, by {samples} samples"))
        });
        wrong.into_iter().next()
    }
}

/// Code that reads a counter, inline, and the counter's rate.
fn clock(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::X86 => {
            "#include <asm/tsc.h>\n#define ticks rdtsc\n#define TICKS_A_MS tsc_khz\n"
        }
        Architecture::Arm => {
            "#include <asm/sysreg.h>\n\
             #define TICKS_A_MS (read_sysreg(cntfrq_el0) / 1000)\n\
             static __always_inline u64 ticks(void) { isb(); return read_sysreg(cntvct_el0); }\n"
        }
    }
}

/// A profile of a session with only these files of samples.
fn profile_with(session: &Path, prefixes: &[&str], more: &[&str]) -> Value {
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(session).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_of_samples = name.ends_with(".data") || name.ends_with(".clock");
        if !is_of_samples || prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            fs::copy(&path, copy.path().join(name)).unwrap();
        }
    }
    let folder = copy.path().to_str().unwrap();
    json(&[&["profile", "--format", "json"], more, &[folder]].concat())
}

/// Installs functions in a machine; `None`: they can't be built here.
fn put_into(recorded: &Recorded, level: u8) -> Option<Drawn> {
    let (drawn, folder) = (Drawn::new(), tempfile::tempdir().unwrap());
    let module = drawn.build(recorded.lab.architecture(), folder.path())?;
    let machine = level.to_string();
    recorded.lab.run(&["put", &machine, module.to_str().unwrap(), "/tmp/busy.ko"]).done();
    recorded.lab.shell(level, "rmmod busy 2>/dev/null; insmod /tmp/busy.ko").done();
    Some(drawn)
}

/// The guest runs them while it is recorded with its host; `None`: they can't be built here.
fn drawn_and_recorded(recorded: &Recorded, what: &str) -> Option<Drawn> {
    let drawn = put_into(recorded, 2)?;
    recorded.start_agent("vsock");
    let recorder = recorded.begin_with("vsock:3", what);
    recorded.lab.shell(2, "echo 1 > /sys/module/busy/parameters/run").done();
    let (ended_well, log) = recorded.end(recorder);
    assert!(ended_well, "{log}");
    Some(drawn)
}

fn check(recorded: &Recorded) {
    let what =
        "--guest-event sched --guest-event irq -e kvm -e sched --sample 499 --guest-sample 397";
    let Some(drawn) = drawn_and_recorded(recorded, what) else { return };
    let session = recorded.sampled_session();
    let both = profile_with(&session, &["host", "guest"], &[]);
    adds_up(&both, &session);
    let evidence = [
        ("both", both.clone()),
        ("host", profile_with(&session, &["host"], &[])),
        ("exits", profile_with(&session, &[], &[])),
    ];
    for (name, profile) in &evidence {
        shares_are_right(&drawn, name, profile);
    }
    let (raw, samples) = drawn.found(&profile_with(&session, &["host", "guest"], &["--raw"]));
    eprintln!("raw: {raw:.3?} of {:?}, {samples} samples", drawn.parts);
    // Its own timer can't interrupt it.
    let share = drawn.parts[0] as f64 / drawn.parts.iter().sum::<u64>() as f64;
    assert!(raw[0] < share / 5.0, "{raw:?}");
    let rows = both["rows"].as_array().unwrap().iter();
    let in_guest = rows.filter(|row| row["state"].as_str().unwrap().starts_with("guest"));
    let time = |row: &Value| row["time_ns"].as_u64().unwrap();
    let (unseen, all) = in_guest.fold((0, 0), |(unseen, all), row| {
        (unseen + if row["evidence"] == "none" { time(row) } else { 0 }, all + time(row))
    });
    assert!(unseen * 20 <= all, "{unseen} of {all} ns");
}

/// Without sampling, only interrupts of the host's tick, and the guest's own, end the guest's runs.
fn check_exits_alone(recorded: &Recorded) {
    let what = "--guest-event sched -e kvm -e sched";
    let Some(drawn) = drawn_and_recorded(recorded, what) else { return };
    let session = recorded.session_with(&[]);
    shares_are_right(&drawn, "exits alone", &profile_with(&session, &[], &[]));
}

fn shares_are_right(drawn: &Drawn, name: &str, profile: &Value) {
    let (found, samples) = drawn.found(profile);
    eprintln!("{name}: {found:.3?} of {:?}, {samples} samples", drawn.parts);
    assert_eq!(drawn.wrong((found, samples)), None, "{name}");
    // With exchanged names the check must fail.
    let turned = Drawn { parts: rotated(drawn.parts), names: drawn.names.clone() };
    assert!(turned.wrong((found, samples)).is_some(), "{name}");
}

/// The functions run in a nested guest, of which the host only has a list of symbols.
fn check_nested(recorded: &Recorded) {
    let Some(drawn) = put_into(recorded, 3) else { return };
    let recorder = recorded.begin_alone("-e kvm -e sched --sample 499");
    recorded.lab.shell(3, "echo 1 > /sys/module/busy/parameters/run").done();
    let (ended_well, log) = recorded.end(recorder);
    assert!(ended_well, "{log}");
    let list = recorded.lab.shell(3, "cat /proc/kallsyms").done().stdout;
    let session = recorded.session_of_host();
    let symbols = session.join("nested.kallsyms");
    fs::write(&symbols, list).unwrap();
    let nested = ["--nested", &format!("l2={}", symbols.display())];
    let of_samples = profile_with(&session, &["host"], &nested);
    adds_up(&of_samples, &session);
    let of_exits = profile_with(&session, &[], &nested);
    for (name, profile) in [("host", &of_samples), ("exits", &of_exits)] {
        shares_are_right(&drawn, name, profile);
        let leaf = |row: &Value| row["stack"].as_array().unwrap().last().cloned();
        let is_drawn = |row: &&Value| {
            leaf(row).is_some_and(|frame| drawn.names.iter().any(|name| frame["symbol"] == **name))
        };
        let mut rows = profile["rows"].as_array().unwrap().iter().filter(is_drawn);
        assert!(rows.all(|row| row["level"] == 2 && row["vm"] == "l2"), "{name}");
    }
    let unnamed = profile_with(&session, &["host"], &[]);
    assert_eq!(drawn.found(&unnamed).1, 0, "nothing else names them");
}

/// Rows of each vCPU add up to its time and its states, as in `cpu`, to the nanosecond.
fn adds_up(profile: &Value, session: &Path) {
    let cpu = json(&["cpu", "--by", "vcpu", "--format", "json", session.to_str().unwrap()]);
    let vcpus = profile["vcpus"].as_array().unwrap();
    assert_eq!(vcpus.len(), 2, "{vcpus:?}");
    for vcpu in vcpus {
        let is_same = |row: &&Value| row["vm"] == vcpu["vm"] && row["vcpu"] == vcpu["vcpu"];
        let rows = profile["rows"].as_array().unwrap().iter().filter(is_same);
        let sum: u64 = rows.map(|row| row["time_ns"].as_u64().unwrap()).sum();
        let of_cpu = cpu["vcpus"].as_array().unwrap().iter().find(is_same).unwrap();
        assert_eq!(
            (sum, &vcpu["time_ns"]),
            (of_cpu["time_ns"].as_u64().unwrap(), &of_cpu["time_ns"])
        );
        eprintln!("vCPU {}: {sum} ns in rows, {} by cpu", vcpu["vcpu"], of_cpu["time_ns"]);
    }
}

/// The same parts rotated, so that each position changes.
fn rotated(mut parts: [u64; 4]) -> [u64; 4] {
    parts.rotate_left(1);
    parts
}

fn check_on(architecture: Architecture, name: &'static str, check: fn(&Recorded)) {
    if !architecture.can_run_all() {
        return;
    }
    let mut machines = Machines::new(|| Recorded::for_architecture(architecture, name));
    machines.work(2, check);
}

#[test]
fn functions_have_the_shares_that_were_drawn_for_them() {
    check_on(Architecture::X86, "shares", check);
}

#[test]
fn functions_have_the_shares_that_were_drawn_on_aarch64() {
    check_on(Architecture::Arm, "aarch64-shares", check);
}

#[test]
fn exits_alone_have_the_shares_that_were_drawn() {
    check_on(Architecture::X86, "exit-shares", check_exits_alone);
}

#[test]
fn exits_alone_have_the_shares_that_were_drawn_on_aarch64() {
    check_on(Architecture::Arm, "aarch64-exit-shares", check_exits_alone);
}

#[test]
fn functions_of_a_guest_in_a_guest_have_their_shares() {
    if !Architecture::X86.can_run_all() {
        return;
    }
    let mut machines = Machines::new(|| Recorded::with_levels("nested-shares", 3));
    machines.work(3, check_nested);
}
