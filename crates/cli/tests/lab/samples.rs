//! Samples of a whole host: the same work of the kernel's is found below whoever does it.

use serde_json::Value;

use crate::recorded::{hyperscope, json};
use crate::tool::{TestLab, can_run_all};

/// Time of a guest's packets in the host's `tun_get_user`, by what the thread is that runs it.
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

/// Without vhost the VMM writes packets, with it the kernel's worker does.
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
    let taking = moved.clone().find(|one| one["function"] == "tun_get_user [tun]");
    let taking = taking.unwrap_or_else(|| panic!("{}", diff["moved"]));
    assert_eq!((&taking["a"]["part"], &taking["b"]["part"]), (&"vmm".into(), &"vhost".into()));
}
