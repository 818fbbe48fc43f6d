//! What a host may request from a guest's agent, and what only the guest's owner can allow.

use crate::agent::Agent;
use crate::tool::{left_in_tracefs, lock_tracing, run};

#[test]
fn a_hosts_own_probes_need_the_leave_of_the_guests_owner() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let channel = format!("unix:{}", folder.path().join("agent").display());
    let (guest, to) = (format!("g={channel}"), folder.path().join("s"));
    let refusal = |probe: &str| {
        let words = ["record", "-e", "sched_switch", "--guest", &guest, "--guest-kprobe", probe];
        let ran = run(&[&words[..], &["-o", to.to_str().unwrap(), "--for", "100ms"]].concat());
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        ran.stderr
    };
    let agent = Agent::start(&channel);
    let stderr = refusal("vfs_read x=@jiffies");
    assert!(stderr.contains("--allow-kprobes") && stderr.contains("@virtio"), "{stderr}");
    assert!(refusal("@nonsense").contains("unknown probe set"));
    drop(agent);
    let _agent = Agent::start_with(&[&channel, "--allow-kprobes"]);
    let stderr = refusal("vfs_read x=%di\n-:theirs/probe");
    assert!(stderr.contains("is not a probe") && stderr.contains("one line"), "{stderr}");
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}
