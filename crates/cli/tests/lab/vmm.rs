//! `hyperscope vmm` on a real KVM host: a VMM whose devices take known times, and QEMU.

use serde_json::Value;

use crate::architecture::Architecture;
use crate::patience::Patient;
use crate::tool::TestLab;

/// Its console prints a line now and then, which the main loop of its VMM forwards.
const CHATTER: &str = "for turn in $(seq 60); do echo $turn; sleep 0.5; done";

/// A guest that writes to a port, if it has ports, and reads memory of a device, during its recording.
fn work(architecture: Architecture) -> String {
    let kinds = match architecture {
        Architecture::X86 => "port=20 mmio=20",
        Architecture::Arm => "mmio=20",
    };
    format!("hyperscope-labguest exits $(yes {kinds} nap=5 | head -n 9000) >/dev/null 2>&1 &")
}

/// The address of an exit: a port, or a guest physical address.
fn place(architecture: Architecture, device: u64) -> (&'static str, u64) {
    match architecture {
        Architecture::X86 => ("port", device),
        Architecture::Arm => ("gpa", 0x1000_0000 + (device << 12)),
    }
}

/// Time that the clocks of an emulated machine, the recorder, and a call's entry and return add to a device's time.
const OVERHEAD_NS: u64 = 250_000;

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("no {name} in {value}"))
}

/// Records a command in level 1; returns the result of `vmm`, and the command's output.
fn recorded(lab: &TestLab, options: &str, command: &str) -> (Value, String) {
    let script = format!(
        "rm -rf /tmp/r; hyperscope record --profile vmm {options} -o /tmp/r -- \
         sh -c '{command}' >/tmp/said 2>/tmp/log || {{ cat /tmp/log >&2; exit 1; }}; \
         hyperscope vmm --format json /tmp/r"
    );
    let found = lab.shell(1, &script).done();
    eprintln!("{}", lab.shell(1, "cat /tmp/log; hyperscope vmm /tmp/r").done().stdout);
    (serde_json::from_str(&found.stdout).unwrap(), lab.shell(1, "cat /tmp/said").done().stdout)
}

/// The exits at an address.
fn at<'v>(found: &'v Value, (about, address): (&str, u64)) -> &'v Value {
    let rows = found["exits"].as_array().unwrap();
    let is_match = |row: &&Value| row["about"] == about && row["address"] == address;
    rows.iter().find(is_match).unwrap_or_else(|| panic!("no {about} {address:#x} in {found}"))
}

/// Running parts add up to `user_ns`, waiting ones to `waited_ns`.
fn adds_up(row: &Value) {
    let sum = |names: &[&str]| names.iter().map(|name| number(row, name)).sum::<u64>();
    let running = ["return_ns", "signals_ns", "device_ns", "lock_ns", "calls_ns", "back_ns"];
    assert_eq!(sum(&running) + number(row, "not_split_ns"), number(row, "user_ns"), "{row}");
    let waiting = ["lock_wait_ns", "call_wait_ns", "blocked_ns", "run_queue_ns"];
    assert_eq!(sum(&waiting), number(row, "waited_ns"), "{row}");
    assert_eq!(number(row, "not_split_ns"), 0, "{row}");
}

/// `part` is a device's time by its own clock, within the difference between the two measurements.
#[track_caller]
fn is_near(part: u64, measured: u64, rounds: u64) {
    let max = rounds * OVERHEAD_NS + measured / 20;
    assert!(part.abs_diff(measured) < max, "{part} for {measured}, up to {max}");
}

#[test]
fn known_delays_of_devices_are_found_in_their_parts() {
    find_known_delays(Architecture::X86, "vmm");
}

#[test]
fn known_delays_of_devices_are_found_on_aarch64() {
    find_known_delays(Architecture::Arm, "aarch64-vmm");
}

fn find_known_delays(architecture: Architecture, name: &'static str) {
    if !architecture.can_run_all() {
        return;
    }
    let lab = TestLab::for_architecture(architecture, name);
    lab.up(&["--levels", "1"]);
    lab.put_program(1);
    lab.shell(1, "hyperscope-labguest host && hyperscope-labguest vmm 3").done();
    let (found, output) = recorded(&lab, "", "hyperscope-labguest vmm 60");
    let measured: Value = serde_json::from_str(output.trim()).unwrap();
    let rounds = number(&measured, "rounds");
    let rows: Vec<&Value> =
        (0x81..0x85).map(|device| at(&found, place(architecture, device))).collect();
    let [spins, sleeps, locks, rings] = rows[..] else { panic!("{found}") };
    for row in &rows {
        adds_up(row);
        assert_eq!(number(row, "exits"), rounds, "{row}");
    }
    let calls = found["calls"].as_array().unwrap();
    let call = |device: u64, name: &str| {
        let (_, address) = place(architecture, device);
        let is_match = |call: &&Value| call["address"] == address && call["call"] == name;
        calls
            .iter()
            .find(is_match)
            .unwrap_or_else(|| panic!("no {name} at {address:#x} in {found}"))
    };
    // The rest of a device's time, when it neither ran nor slept, is run-queue wait.
    let queued = |row| number(row, "run_queue_ns");
    let nap = call(0x82, "clock_nanosleep");
    let napped = number(nap, "running_ns") + number(nap, "waited_ns") + queued(sleeps);
    is_near(number(spins, "device_ns") + queued(spins), number(&measured, "spins_ns"), rounds);
    is_near(napped, number(&measured, "sleeps_ns"), rounds);
    is_near(number(locks, "lock_wait_ns") + queued(locks), number(&measured, "locks_ns"), rounds);
    assert!(number(spins, "device_ns") > rounds * 300_000, "{spins}");
    assert!(number(sleeps, "call_wait_ns") >= rounds * 1_900_000, "{sleeps}");
    assert!(number(locks, "lock_wait_ns") > rounds * 1_000_000, "{locks}");
    assert!(number(rings, "waited_ns") < rounds * 1_000_000, "{rings}");

    // One write to an eventfd for each exit of its port.
    assert_eq!(number(call(0x84, "write 8 bytes"), "count"), rounds);
    // The thread that held the lock, and is therefore counted as the VMM's.
    let held = &found["locks"].as_array().unwrap()[0];
    assert_eq!(held["holder"], "holder", "{held}");
    assert!(number(held, "waits") <= rounds && number(held, "waits") > rounds * 9 / 10, "{held}");
    let threads = found["threads"].as_array().unwrap();
    let holder = threads.iter().find(|thread| thread["thread"] == "holder").unwrap();
    assert!(number(holder, "call_wait_ns") >= rounds * 2_900_000, "{holder}");
}

/// QEMU, with its guest's serial console and disk: all its time is split, and its main loop polls.
#[test]
fn exits_of_a_real_vmm_are_split() {
    split_real_exits(Architecture::X86, "vmm-qemu");
}

#[test]
fn exits_of_a_real_vmm_are_split_on_aarch64() {
    split_real_exits(Architecture::Arm, "aarch64-vmm-qemu");
}

fn split_real_exits(architecture: Architecture, name: &'static str) {
    if !architecture.can_run_all() {
        return;
    }
    let lab = TestLab::for_architecture(architecture, name);
    lab.up(&["--levels", "2"]);
    lab.put_program(1);
    lab.shell(2, &work(architecture)).done();
    let chatter = Patient::start(lab.command(&["exec", "2", "--", "sh", "-c", CHATTER]));
    let (found, _) = recorded(&lab, "--vm l2", "sleep 5");
    drop(chatter);
    let rows = found["exits"].as_array().unwrap();
    rows.iter().for_each(adds_up);
    let places: &[(&str, u64)] = match architecture {
        Architecture::X86 => &[("gpa", 0xd000_0000), ("port", 0x4859)],
        Architecture::Arm => &[("gpa", 0x0d00_0000)],
    };
    for row in places.iter().map(|place| at(&found, *place)) {
        assert!(number(row, "exits") > 200, "{row}");
        assert!(number(row, "return_ns") > 0 && number(row, "device_ns") > 0, "{row}");
    }
    let user: u64 = rows.iter().map(|row| number(row, "user_ns")).sum();
    let exits = lab.shell(1, "hyperscope exits --format json /tmp/r").done().stdout;
    let exits: Value = serde_json::from_str(&exits).unwrap();
    let of_exits = exits["rows"].as_array().unwrap().iter().map(|row| number(row, "user_ns"));
    assert_eq!(user, of_exits.sum::<u64>());
    let threads = found["threads"].as_array().unwrap();
    assert!(threads.iter().any(|thread| number(thread, "idle_ns") > 1_000_000_000), "{threads:?}");
}

#[test]
fn samples_say_which_code_a_part_of_an_exit_is() {
    find_code(Architecture::X86, "vmm-code");
}

#[test]
fn samples_say_which_code_a_part_of_an_exit_is_on_aarch64() {
    find_code(Architecture::Arm, "aarch64-vmm-code");
}

/// The device that waits on the clock does nothing else; the one with the lock is the only one that waits for it.
fn find_code(architecture: Architecture, name: &'static str) {
    if !architecture.can_run_all() {
        return;
    }
    let lab = TestLab::for_architecture(architecture, name);
    lab.up(&["--levels", "1"]);
    lab.put_program(1);
    lab.shell(1, "hyperscope-labguest host && hyperscope-labguest vmm 3").done();
    let (found, _) = recorded(&lab, "--sample 997", "hyperscope-labguest vmm 300");
    let code = found["code"].as_array().unwrap();
    let code_of = |device: u64| -> Vec<&Value> {
        let (_, address) = place(architecture, device);
        let is_its = |row: &&Value| row["address"] == address && row["part"] == "device";
        code.iter().filter(is_its).collect()
    };
    let sum = |rows: &[&Value], name: &str| rows.iter().map(|row| number(row, name)).sum::<u64>();
    for device in 0x81..0x85 {
        let (row, its) = (at(&found, place(architecture, device)), code_of(device));
        let (rounding, time_ns) = (its.len() as u64, sum(&its, "time_ns"));
        assert!(number(row, "device_ns").abs_diff(time_ns) <= rounding, "{row} {its:?}");
    }
    let spins = code_of(0x81);
    let is_its_own = |row: &&&Value| {
        let function = row["function"].as_str().unwrap_or_default();
        ["[init]", "[libc.so.6]", "[vdso]"].iter().any(|file| function.ends_with(file))
    };
    let own_rows: Vec<&Value> = spins.iter().filter(is_its_own).copied().collect();
    assert!(sum(&spins, "samples") > 50, "{spins:?}");
    // The rest is interrupts. Interrupts of Arm's counters are masked where system calls begin: that time is attributed
    // to where they are enabled again.
    let min = if architecture == Architecture::Arm { 5 } else { 6 };
    assert!(sum(&own_rows, "samples") * 10 > sum(&spins, "samples") * min, "{spins:?}");
    // The kernel's entry code is separate if it is not part of its caller.
    let waits = |row: &&Value| {
        let function = row["function"].as_str().unwrap_or_default();
        function.contains("lock_contended") || function == "syscall [init]"
    };
    assert!(code.iter().any(|row| waits(&row)), "{code:?}");
    let (_, locks) = place(architecture, 0x83);
    assert!(code.iter().filter(waits).all(|row| row["address"] == locks), "{code:?}");
}
