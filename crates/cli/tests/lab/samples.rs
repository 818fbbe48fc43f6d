//! Samples of a complete host: the same kernel work is found below the thread that does it.

use serde_json::Value;

use crate::hangs::Machines;
use crate::patience::Patient;
use crate::recorded::{CHANNELS, LOAD, Recorded, hyperscope, json};
use crate::tool::{TestLab, WORKING, can_run_all};

/// Time of a guest's packets in the host's `tun_get_user`, by kind of thread.
fn taken_in(lab: &TestLab, scenario: &str, session: &str) -> [u64; 2] {
    lab.run(&["run", scenario, "--sample", "499", "-o", session]).done();
    let table = hyperscope(&["profile", "--threads", session]).stdout;
    assert!(table.contains("other threads that work for VMs"), "{table}");
    let profile = json(&["profile", "--threads", "--format", "json", session]);
    let has = |row: &Value, symbol: &str| {
        row["stack"].as_array().unwrap().iter().any(|frame| frame["symbol"] == symbol)
    };
    let below = |symbol: &str| -> u64 {
        let rows = profile["rows"].as_array().unwrap().iter();
        let those = rows.filter(|row| row["state"] == "host" && has(row, "tun_get_user"));
        those.filter(|row| has(row, symbol)).map(|row| row["time_ns"].as_u64().unwrap()).sum()
    };
    [below("do_writev"), below("vhost_worker")]
}

/// Without vhost the VMM writes packets; with it the kernel's worker does.
#[test]
fn packets_are_taken_in_by_the_vmm_or_by_vhost() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("samples");
    let folder = tempfile::tempdir().unwrap();
    let [virtio, vhost] =
        ["virtio", "vhost"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let [by_vmm, by_worker] = taken_in(&lab, "net-virtio", &virtio);
    assert!(by_vmm > 50_000_000 && by_worker == 0, "{by_vmm} {by_worker}");
    let [by_vmm, by_worker] = taken_in(&lab, "net-vhost", &vhost);
    assert!(by_vmm == 0 && by_worker > 50_000_000, "{by_vmm} {by_worker}");
    let diff = json(&["diff", "profile", "--format", "json", &virtio, &vhost]);
    let moved = diff["moved"].as_array().unwrap().iter();
    let taking = moved.clone().find(|row| row["function"] == "tun_get_user [tun]");
    let taking = taking.unwrap_or_else(|| panic!("{}", diff["moved"]));
    assert_eq!((&taking["a"]["part"], &taking["b"]["part"]), (&"vmm".into(), &"vhost".into()));
}

/// How long the guest works in its kernel.
const SECONDS: u64 = 10;

#[test]
fn guests_are_sampled_over_every_channel() {
    if !can_run_all() {
        return;
    }
    let mut machines = Machines::new(|| Recorded::networked("sampled-channels"));
    for (channel, of_agent) in CHANNELS {
        machines.work(2, |recorded| sample_over(recorded, channel, of_agent));
    }
    machines.work(2, |recorded| {
        let (channel, of_agent) = recorded.secret_channel();
        sample_over(recorded, &channel, &of_agent);
    });
}

/// Samples the guest, and makes it send its kernel's code at the sampled places: both are complete.
fn sample_over(recorded: &Recorded, channel: &str, of_agent: &str) {
    recorded.start_agent(of_agent);
    let recorder =
        recorded.begin_with(channel, "--guest-event sched --guest-sample 397 -e kvm -e sched");
    let works = format!(
        "end=$(($(cut -d. -f1 /proc/uptime)+{SECONDS})); \
         while [ $(cut -d. -f1 /proc/uptime) -lt $end ]; do {LOAD}; done"
    );
    recorded.lab.shell(2, &works).done();
    let (ended_well, log) = recorded.end(recorder);
    assert!(ended_well, "{channel}: {log}");
    let session = recorded.session_with(&["guest-l2.data", "guest-l2.clock", "guest-l2.kcore"]);
    let stored: Value =
        serde_json::from_str(&std::fs::read_to_string(session.join("session.json")).unwrap())
            .unwrap();
    let sampler = &stored["recorded"]["guests"][0]["sampler"];
    let samples = sampler["samples"].as_u64().unwrap();
    assert!(samples > 50 * SECONDS && sampler["lost"] == 0, "{channel}: {sampler}");
    assert!(sampler["code"]["bytes"].as_u64() > Some(4096), "{channel}: {sampler}");
    let info = json(&["info", "--format", "json", session.join("guest-l2.data").to_str().unwrap()]);
    let counted = info["files"][0]["samples"].as_object().unwrap().values();
    let counted = counted.flat_map(|by_mode| by_mode.as_object().unwrap().values());
    assert_eq!(counted.map(|count| count.as_u64().unwrap()).sum::<u64>(), samples, "{channel}");
    eprintln!("{channel}: {samples} samples, code {}", sampler["code"]);
    recorded.lab.shell(2, "killall hyperscope-agent").done();
}

/// In level 1: waits for agents; the guest appears when it is recorded, and its session when that has ended.
const LISTENS: &str = "
    hyperscope listen vsock:822 --sample 397 -e sched --guest-wait 60s -o /tmp/guests >/tmp/said 2>&1 & listener=$!
    until grep -q 'recording guest' /tmp/said 2>/dev/null; do sleep 0.2; kill -0 $listener || exit 1; done
    until [ -e /tmp/done ]; do sleep 0.2; done
    kill -INT $listener
    wait $listener; code=$?
    mv /tmp/guests/l2.hscope /tmp/heard
    exit $code";

#[test]
fn a_guest_that_connects_by_itself_is_sampled() {
    if !can_run_all() {
        return;
    }
    let recorded = Recorded::up("sampled-listen");
    let lab = &recorded.lab;
    let listens = Patient::start(lab.command(&["exec", "1", "--", "sh", "-c", LISTENS]));
    lab.shell(1, "until grep -q waiting /tmp/said 2>/dev/null; do sleep 0.2; done").done();
    lab.shell(2, "(hyperscope-agent connect:vsock:822 >/tmp/agent.log 2>&1 &)").done();
    lab.shell(1, "until grep -q 'recording guest' /tmp/said; do sleep 0.2; done").done();
    let works = "printf '#!/bin/sh\\nwhile :; do :; done\\n' >/tmp/burner; chmod +x /tmp/burner; \
                 /tmp/burner & sleep 6; kill $!";
    lab.shell(2, works).done();
    lab.shell(1, "touch /tmp/done").done();
    listens.finish(WORKING).done();
    let folder = tempfile::tempdir().unwrap();
    for file in ["guest-l2.dat", "session.json", "guest-l2.data", "guest-l2.clock"] {
        let (from, to) = (format!("/tmp/heard/{file}"), folder.path().join(file));
        lab.run(&["get", "1", &from, to.to_str().unwrap()]).done();
    }
    let _ =
        std::process::Command::new("cp").arg("-r").arg(folder.path()).arg("/tmp/heard").status();
    let session = folder.path().to_str().unwrap();
    let profile = json(&["profile", "--by", "comm", "--format", "json", session]);
    let rows = profile["rows"].as_array().unwrap();
    let samples_of = |comm: &str| -> u64 {
        let of_comm = rows.iter().filter(|row| row["comm"] == comm);
        of_comm.map(|row| row["samples"].as_u64().unwrap()).sum()
    };
    // One CPU of two for six seconds, of which it may have had only a part.
    assert!(samples_of("burner") > 200, "{profile}");
    let all = rows.iter().map(|row| row["time_ns"].as_u64().unwrap()).sum::<u64>();
    let busy = rows.iter().filter(|row| row["vm"] == "l2" && row["evidence"] != "none");
    let busy = busy.map(|row| row["time_ns"].as_u64().unwrap()).sum::<u64>();
    assert!(busy > all / 2, "{busy} of {all}");
}
