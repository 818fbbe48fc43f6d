//! Guests that end, migrate and lose their channel while they are recorded.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::recorded::{CHANNELS, Recorded, events};
use crate::tool::can_run_all;

/// Starts a hundred programs in the guest, and gives the agent time to send full pages.
const PROGRAMS: &str = "for i in $(seq 100); do busybox true; done; sleep 2";
const PORTS: &str = "virtio-serial:/run/lab/l2";

#[test]
fn what_a_guest_sent_before_its_end_is_kept() {
    if !can_run_all() {
        return;
    }
    // The way a guest ends, its machine, and the channel of its recording.
    let ends = [
        (2, "echo c > /proc/sysrq-trigger", 0),
        (2, "echo b > /proc/sysrq-trigger", 1),
        (1, "killall -9 qemu-system-x86_64", 2),
    ];
    for (level, end, channel) in ends {
        let recorded = Recorded::up("guests-end");
        let (channel, of_agent) = CHANNELS[channel];
        recorded.start_agent(of_agent);
        let recorder = recorded.begin(channel);
        recorded.lab.shell(2, "for i in $(seq 200); do busybox true; done").done();
        // Full pages are sent every second.
        std::thread::sleep(Duration::from_secs(3));
        // The ending machine does not confirm the command.
        let mut ending = recorded.lab.command(&["exec", &level.to_string(), "--", "sh", "-c", end]);
        let mut ending = ending.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let gone = "until ! pidof qemu-system-x86_64 >/dev/null; do sleep 0.1; done";
        recorded.lab.shell(1, gone).done();
        let (ended_well, log) = recorded.end(recorder);
        let _ = ending.kill();
        let _ = ending.wait();
        assert!(!ended_well && log.contains("guest l2: its recording ended early"), "{log}");
        let session = recorded.session();
        let (counts, _) = events(&session.join("guest-l2.dat"));
        // The last page of each CPU was not full.
        let started = counts["sched:sched_process_exec"].as_u64();
        assert!(started >= Some(180), "{end}: {started:?} of 200 programs");
        let (host, _) = events(&session.join("host.dat"));
        assert!(host["kvm:kvm_exit"].as_u64() > Some(1000), "{end}: {host}");
        eprintln!(
            "`{end}` over {channel}: {started:?} of 200 programs kept; {}",
            log.lines().nth(3).unwrap_or_default()
        );
    }
}

#[test]
fn a_port_that_is_unplugged_is_used_again_when_it_is_back() {
    if !can_run_all() {
        return;
    }
    let recorded = Recorded::up("guests-port");
    recorded.start_agent("virtio-serial");
    let recorder = recorded.begin(PORTS);
    recorded.lab.shell(2, PROGRAMS).done();
    let monitor = |command: &str, arguments: &str| {
        recorded.lab.run(&["monitor", "2", command, arguments]).done();
    };
    for cpu in ["0", "1"] {
        monitor("device_del", &format!(r#"{{"id":"hyperscope.cpu{cpu}.port"}}"#));
    }
    recorded.lab.shell(2, PROGRAMS).done();
    for (cpu, number) in [("0", 6), ("1", 7)] {
        let port = format!(
            r#"{{"driver":"virtserialport","id":"hyperscope.cpu{cpu}.port","bus":"ports.0",
                "nr":{number},"chardev":"hyperscope.cpu{cpu}","name":"hyperscope.cpu{cpu}"}}"#
        );
        monitor("device_add", &port);
    }
    recorded.lab.shell(2, PROGRAMS).done();
    let (ended_well, log) = recorded.end(recorder);
    assert!(!ended_well && log.contains("bytes were lost on the channel"), "{log}");
    let session = recorded.session();
    let (counts, _) = events(&session.join("guest-l2.dat"));
    // Before and after; some pages were in transit when the port was removed.
    let started = counts["sched:sched_process_exec"].as_u64();
    assert!(started >= Some(200), "{started:?} of 300 programs");
    let text = std::fs::read_to_string(session.join("session.json")).unwrap();
    let stored: Value = serde_json::from_str(&text).unwrap();
    let cpus = stored["recorded"]["guests"][0]["cpus"].as_array().unwrap().clone();
    let sum = |key: &str| cpus.iter().map(|cpu| cpu[key].as_u64().unwrap()).sum::<u64>();
    assert!(sum("lost_bytes") > 0 && sum("gaps") > 0, "{cpus:?}");
    let info = crate::recorded::json(&["info", "--format", "json", session.to_str().unwrap()]);
    let places: Option<u64> = info["files"][1]["losses"]["uncounted_losses"].as_u64();
    assert_eq!(places, Some(sum("gaps")), "{info}");
    eprintln!("port unplugged: {started:?} of 300 programs kept, {} bytes lost", sum("lost_bytes"));
}

/// Starts another QEMU like the guest's, waiting for it, with its sockets in a separate folder.
const SECOND_QEMU: &str = r#"
mkdir -p /run/lab/l2b
tr '\0' '\n' < /proc/$(pidof qemu-system-x86_64)/cmdline |
    sed 's#/run/lab/l2/\(console\|control\|qmp\|hyper\)#/run/lab/l2b/\1#g; s/guest-cid=3/guest-cid=13/' > /tmp/words
set --
while read -r word; do set -- "$@" "$word"; done < /tmp/words
setsid "$@" -incoming unix:/tmp/move.sock > /tmp/second.log 2>&1 &
i=0; until [ -S /tmp/move.sock ] || [ $i -ge 200 ]; do i=$((i+1)); sleep 0.1; done
"#;
/// Redirects connections to the guest's sockets to the second QEMU's.
const FOLLOW: &str = "cd /run/lab/l2 && for s in control-0 control-1 control-2 control-3 qmp; do \
                      ln -sf ../l2b/$s.sock $s.sock; done";

#[test]
fn a_guest_that_moves_to_another_vmm_is_kept_up_to_there_and_recorded_again() {
    if !can_run_all() {
        return;
    }
    let recorded = Recorded::up("guests-move");
    let lab = &recorded.lab;
    recorded.start_agent("virtio-serial");
    let recorder = recorded.begin(PORTS);
    lab.shell(2, PROGRAMS).done();
    lab.shell(1, SECOND_QEMU).done();
    lab.run(&["monitor", "2", "migrate", r#"{"uri":"unix:/tmp/move.sock"}"#]).done();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !lab.run(&["monitor", "2", "query-migrate"]).done().stdout.contains("completed") {
        assert!(std::time::Instant::now() < deadline, "it does not move");
    }
    lab.run(&["monitor", "2", "quit"]).done();
    lab.shell(1, FOLLOW).done();
    let (ended_well, log) = recorded.end(recorder);
    assert!(!ended_well && log.contains("its recording ended early"), "{log}");
    let (counts, _) = events(&recorded.session().join("guest-l2.dat"));
    let started = counts["sched:sched_process_exec"].as_u64();
    assert!(started >= Some(90), "{started:?} of 100 programs");
    // Its agent has detected the end of the connection.
    let recorder = recorded.begin("virtio-serial:/run/lab/l2b");
    lab.shell(2, PROGRAMS).done();
    let (ended_well, log) = recorded.end(recorder);
    assert!(ended_well, "{log}");
    let (counts, _) = events(&recorded.session().join("guest-l2.dat"));
    assert!(counts["sched:sched_process_exec"].as_u64() >= Some(100), "{counts}");
    eprintln!("moved: {started:?} of 100 programs kept before, all after");
}

#[test]
fn a_cpu_that_is_plugged_in_later_is_recorded() {
    if !can_run_all() {
        return;
    }
    let recorded = Recorded::up("guests-cpu");
    let lab = &recorded.lab;
    let online = "/sys/devices/system/cpu/cpu1/online";
    lab.shell(2, &format!("echo 0 > {online}")).done();
    recorded.start_agent("vsock");
    let recorder = recorded.begin("vsock:3");
    let pinned = "for i in $(seq 40); do taskset 2 busybox true; done; sleep 2";
    lab.shell(2, &format!("echo 1 > {online}; {pinned}; echo 0 > {online}; {PROGRAMS}")).done();
    let (ended_well, log) = recorded.end(recorder);
    assert!(ended_well, "{log}");
    let file = recorded.session().join("guest-l2.dat");
    let path = file.to_str().unwrap();
    let filter = ["events", "-e", "sched_process_exec", "--format", "jsonl", "--cpu", "1", path];
    let on_it = crate::recorded::hyperscope(&filter).stdout.lines().count();
    assert!(on_it >= 40, "{on_it} programs on CPU 1");
    let (counts, _) = events(&file);
    assert!(counts["sched:sched_process_exec"].as_u64() >= Some(140), "{counts}");
}
