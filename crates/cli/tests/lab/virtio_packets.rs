//! Bytes of packets that a guest sends from scattered pages equal its network's own counts.

use std::fs;

use serde_json::Value;

use crate::recorded::{hyperscope, json};
use crate::tool::{TestLab, can_run_all};

/// A guest sends a file directly from its page cache: a packet uses up to seventeen pages.
const SCENARIO: &str = r#"
summary = "a guest sends what lies in pages all over its memory"
levels = 2

[guest]
net = "virtio"

[record]
events = ["kvm"]
guest_events = ["net:net_dev_xmit"]
guest_probes = ["@virtio"]

[[before]]
do = "run"
level = 1
argv = ["iperf3", "--server", "--daemon"]

[[before]]
do = "run"
level = 2
argv = ["sh", "-c", "ip address add 10.77.2.2/24 dev eth0; ip link set eth0 up; ping -c 3 10.77.2.1"]

[[step]]
do = "run"
level = 2
argv = ["iperf3", "--client", "10.77.2.1", "--bytes", "8M", "--zerocopy"]
"#;

/// Bytes of the header before each packet (`struct virtio_net_hdr_mrg_rxbuf`, include/uapi/linux/virtio_net.h).
const HEAD_BYTES: u64 = 12;

fn number(event: &Value, name: &str) -> u64 {
    event["fields"][name].as_u64().unwrap_or_else(|| panic!("{name} of {event}"))
}

#[test]
fn bytes_of_packets_of_many_parts_are_those_that_were_sent() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("packets");
    lab.run(&["up", "--levels", "2", "--guest-net", "virtio"]).done();
    let folder = tempfile::tempdir().unwrap();
    let [scenario, session] = ["scenario.toml", "session"].map(|name| folder.path().join(name));
    fs::write(&scenario, SCENARIO).unwrap();
    lab.run(&["run", scenario.to_str().unwrap(), "-o", session.to_str().unwrap()]).done();
    let guest = session.join("guest-l2.dat");
    let events = |pattern: &str| -> Vec<Value> {
        let args = ["events", "--format", "jsonl", "-e", pattern, guest.to_str().unwrap()];
        let lines = hyperscope(&args).stdout;
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    // One for each packet that the driver accepted, however it is composed: recorded only for this test.
    let sent = events("net_dev_xmit");
    let sent: Vec<&Value> = sent
        .iter()
        .filter(|event| event["fields"]["name"] == "eth0" && number(event, "rc") == 0)
        .collect();
    let bytes: u64 = sent.iter().map(|event| number(event, "len")).sum();
    let added = events("virtqueue_add_outbuf");
    let more_parts = added.iter().filter(|event| number(event, "parts") > 6).count();
    assert!(bytes > 8 << 20 && more_parts > 20, "{bytes} bytes, {more_parts} of {}", added.len());
    let report = json(&["virtio", "--format", "json", session.to_str().unwrap()]);
    let queues = report["queues"].as_array().unwrap();
    let output = queues.iter().find(|queue| queue["queue"] == "output.0").unwrap();
    let packets = sent.len() as u64;
    eprintln!("{bytes} bytes in {packets} packets, {more_parts} of more than six parts: {output}");
    assert_eq!(
        (output["buffers"].as_u64(), output["cut_buffers"].as_u64()),
        (Some(packets), Some(0))
    );
    assert_eq!(output["out_bytes"], bytes + HEAD_BYTES * packets, "{output}");
}
