//! Instructions of a guest's kernel from the code that its agent keeps, compared with the GNU binutils for the same
//! bytes, and with the loaded module.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::architecture::Architecture;
use crate::hangs::Machines;
use crate::known_shares::Drawn;
use crate::recorded::{Recorded, json};
use crate::tool::can_run_all;

/// objdump's output for an instruction: its bytes and its text.
type Listed = (Vec<u8>, String);

fn stdout_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Instructions from `begin` on, `len` bytes of them, by their offset; `flags` select the section.
fn listing(flags: &[&str], file: &Path, (begin, len): (u64, u64)) -> BTreeMap<u64, Listed> {
    let [from, to] = [("start", begin), ("stop", begin + len)]
        .map(|(which, address)| format!("--{which}-address={address:#x}"));
    let all = ["-D", "-w", "--insn-width=16", &from, &to, file.to_str().unwrap()];
    let instruction = |line: &str| {
        let mut parts = line.split('\t');
        let address = u64::from_str_radix(parts.next()?.trim().strip_suffix(':')?, 16).ok()?;
        let bytes = parts.next()?.split_whitespace();
        let bytes = bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        Some((address.checked_sub(begin)?, (bytes, parts.next()?.trim().to_owned())))
    };
    stdout_of("objdump", &[flags, &all].concat()).lines().filter_map(instruction).collect()
}

/// Offset and size of a function in the module's `.text`.
fn place(module: &Path, name: &str) -> (u64, u64) {
    let symbols = stdout_of("nm", &["-S", module.to_str().unwrap()]);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let found = symbols.lines().map(words).find(|words| words.last().unwrap() == name).unwrap();
    let number = |at: usize| u64::from_str_radix(&found[at], 16).unwrap();
    (number(0), number(1))
}

/// Offsets of bytes that the loader fills in, each for four bytes.
fn relocated(module: &Path, (begin, len): (u64, u64)) -> BTreeSet<u64> {
    let all = stdout_of("objdump", &["-r", "-j", ".text", module.to_str().unwrap()]);
    let place = |line: &str| u64::from_str_radix(line.split_whitespace().next()?, 16).ok();
    let within = all.lines().filter(|line| line.contains("R_X86_64_")).filter_map(place);
    let within = within.filter_map(|at| at.checked_sub(begin)).filter(|&at| at < len);
    within.flat_map(|at| at..at + 4).collect()
}

/// The common part of both texts: the mnemonic without a size, registers, and numbers except 0 and 1, which one of them
/// omits.
fn essence(text: &str) -> (String, Vec<String>) {
    let text = text.split(['<', '#']).next().unwrap().trim();
    let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
    let mnemonic = mnemonic.trim_end_matches(['l', 'q']).to_owned();
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if word.len() > 8 => u64::from_str_radix(word, 16).ok(),
        None => word.parse().ok(),
    };
    let words = operands.split([',', '(', ')', '$', ' ', '*']).filter(|word| !word.is_empty());
    // One prints the target address, the other the offset.
    let is_relative = operands.contains("(%rip)");
    let words = words.filter_map(|word| match number(word) {
        Some(0 | 1) => None,
        Some(number) => Some(number.to_string()).filter(|_| !is_relative),
        None => Some(word.to_owned()),
    });
    (mnemonic, words.collect())
}

/// Samples of the guest's kernel by instruction.
struct Seen {
    function: String,
    into: u64,
    text: Option<String>,
    samples: u64,
}

/// The sampled instructions of functions in the guest's kernel.
fn seen(session: &Path) -> Vec<Seen> {
    let flags = ["profile", "--by", "instruction", "--format", "json", session.to_str().unwrap()];
    let profile = json(&flags);
    let rows = profile["rows"].as_array().unwrap().iter();
    let rows = rows.filter(|row| row["state"] == "guest_kernel" && row["evidence"] == "agent");
    let seen = |row: &Value| {
        let frame = row["stack"].as_array().unwrap().last()?;
        Some(Seen {
            function: frame["symbol"].as_str()?.to_owned(),
            into: frame["offset"].as_u64().unwrap(),
            text: frame["instruction"].as_str().map(str::to_owned),
            samples: row["samples"].as_u64().unwrap(),
        })
    };
    rows.filter_map(seen).collect()
}

fn check(recorded: &Recorded) {
    let (drawn, folder) = (Drawn::new(), tempfile::tempdir().unwrap());
    let Some(module) = drawn.build(Architecture::X86, folder.path()) else { return };
    recorded.lab.run(&["put", "2", module.to_str().unwrap(), "/tmp/busy.ko"]).done();
    recorded.lab.shell(2, "rmmod busy 2>/dev/null; insmod /tmp/busy.ko").done();
    recorded.start_agent("vsock");
    let what = "--guest-event sched -e kvm -e sched --sample 499 --guest-sample 397";
    let recorder = recorded.begin_with("vsock:3", what);
    recorded.lab.shell(2, "echo 1 > /sys/module/busy/parameters/run").done();
    let addresses = recorded.lab.shell(2, "cat /proc/kallsyms").done().stdout;
    let (ended_well, log) = recorded.end(recorder);
    assert!(ended_well, "{log}");
    let session = recorded.sampled_session();
    let seen = seen(&session);
    let count = |with_text: bool| -> u64 {
        seen.iter()
            .filter(|instruction| !with_text || instruction.text.is_some())
            .map(|instruction| instruction.samples)
            .sum()
    };
    // Samples after the limit of pages have no code.
    assert!(count(true) * 20 > count(false) * 19, "{} of {}", count(true), count(false));
    for name in &drawn.names[1..] {
        let of_name = |line: &str| line.split_whitespace().nth(2) == Some(name);
        let line = addresses.lines().find(|line| of_name(line)).unwrap();
        let address = u64::from_str_radix(&line[..16], 16).unwrap();
        let running = running_code(&session, &module, name, address);
        let of_function = seen.iter().filter(|instruction| instruction.function == *name);
        check_instructions(&running, of_function);
    }
}

/// The kept code of a function: that of the module, except bytes that were filled in by the loader, or patched.
fn running_code(session: &Path, module: &Path, name: &str, begin: u64) -> BTreeMap<u64, Listed> {
    let place = place(module, name);
    let running = listing(&[], &session.join("guest-l2.kcore"), (begin, place.1));
    let built = listing(&["-j", ".text"], module, place);
    let [in_memory, built] = [&running, &built].map(|listed| {
        let bytes = listed.values().flat_map(|(bytes, _)| bytes.clone());
        bytes.collect::<Vec<u8>>()
    });
    assert_eq!((in_memory.len() as u64, built.len() as u64), (place.1, place.1), "{name}");
    let relocated = relocated(module, place);
    let all = (0..).zip(in_memory.iter().zip(&built));
    let differ: Vec<u64> =
        all.filter(|(_, (byte, built))| byte != built).map(|(at, _)| at).collect();
    // A call of `__fentry__` became a nop, and a jump to the return thunk became a return, as their opcodes show.
    let is_filled = |at: &u64| relocated.contains(at) || relocated.contains(&(at + 1));
    assert!(differ.iter().all(is_filled), "{name}: {differ:?} {relocated:?}");
    let (_, first) = &running[&0];
    assert!(built[0] == 0xe8 && first.starts_with("nop"), "{name} begins with {first}");
    running
}

fn check_instructions<'s>(running: &BTreeMap<u64, Listed>, seen: impl Iterator<Item = &'s Seen>) {
    let (mut samples, mut places) = (0, BTreeSet::new());
    for Seen { function, into, text, samples: more } in seen {
        let at = format!("{function}+{into:#x}");
        let (_, listed) = running.get(into).unwrap_or_else(|| panic!("{at} is within one"));
        let text = text.as_ref().unwrap_or_else(|| panic!("{at} has no instruction"));
        if places.insert(into) {
            eprintln!("{at} {text}, of objdump {listed}");
        }
        assert_eq!(essence(text), essence(listed), "{at}");
        samples += more;
    }
    assert!(!places.is_empty() && samples > 100, "{samples} samples at {places:?}");
}

#[test]
fn a_guests_kernel_shows_the_instructions_that_it_ran() {
    if !can_run_all() {
        return;
    }
    let mut machines = Machines::new(|| Recorded::up("guestcode"));
    machines.work(2, check);
}
