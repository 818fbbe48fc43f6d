//! The lab's host and guest, ready to be recorded again and again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use lab::{Ended, Exec, Lab, Session};

use super::draw::PROGRAMS;
use super::effect::Counters;
use crate::bench::machines::{agent, hyperscope, put};
use crate::bench::{BenchError, Result};

/// How long a script may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Where files of recordings go.
pub(super) const FOLDER: &str = "/tmp/corpus";

/// Symbols of modules alone: those of the whole kernel are larger than a recording. The tracer's control group is at hand.
const PREPARE: &str = "mkdir -p /tmp/corpus
grep -E '\\[(kvm|kvm_amd|kvm_intel|vhost[a-z_]*|tun|virtio[a-z_]*)\\]' /proc/kallsyms > /tmp/kallsyms
mount --bind /tmp/kallsyms /proc/kallsyms
mkdir -p /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null; true";
/// What the agent says once it waits.
const WAITING: &str = "until grep -q 'waiting on' /tmp/agent.log; do sleep 0.1; done";
/// The guest's end of its network, where it has one.
const CONNECT: &str = "if [ -e /sys/class/net/eth0 ]; then ip address add 10.77.2.2/24 dev eth0; \
    ip link set eth0 up; ping -c 1 10.77.2.1 >/dev/null; fi";
/// Names that scripts of the host can use.
const NAMES: &str = "QEMU=$(pidof qemu-system-x86_64 | cut -d' ' -f1); VHOST=
ALL=$(printf %x $(((1 << $(nproc)) - 1)))
for task in /proc/$QEMU/task/*; do read -r name < $task/comm; case \"$name\" in
\"CPU 0/KVM\") VCPU0=${task##*/};; \"CPU 1/KVM\") VCPU1=${task##*/};; esac; done
for file in /proc/[0-9]*/comm; do read -r name < $file 2>/dev/null; case \"$name\" in
vhost-*) file=${file%/comm}; VHOST=\"$VHOST ${file##*/}\";; esac; done
";

/// Host and guest of a lab that is up.
pub(super) struct CorpusMachines {
    lab: Lab,
    host: Session,
    guest: Session,
    nested: Option<Session>,
    pub(super) kernel_release: String,
    /// The process on this system that executes them.
    executor: Option<i32>,
}

impl CorpusMachines {
    /// Puts programs into the machines of a lab.
    pub(super) fn set_up(lab: &Lab) -> Result<Self> {
        let mut host = lab.session(1)?;
        put(&mut host, &hyperscope()?, "/bin/hyperscope")?;
        shell(&mut host, &prepare())?;
        let kernel_release = shell(&mut host, "uname -r")?.trim().to_owned();
        let guest = prepared_guest(lab)?;
        let nested = (lab.description()?.levels > 2).then(|| prepared_nested(lab)).transpose()?;
        let executor = lab.status()?.pid;
        Ok(Self { lab: lab.clone(), host, guest, nested, kernel_release, executor })
    }

    /// Boots another guest in place of this one.
    pub(super) fn renew_guest(&mut self) -> Result<()> {
        self.lab.replace_guest(&self.lab.description()?)?;
        self.guest = prepared_guest(&self.lab)?;
        Ok(())
    }

    /// Runs a script in the host that must succeed; what it prints.
    pub(super) fn in_host(&mut self, script: &str) -> Result<String> {
        if script.is_empty() {
            Ok(String::new())
        } else {
            shell(&mut self.host, &format!("{NAMES}{script}"))
        }
    }

    /// The same in the guest.
    pub(super) fn in_guest(&mut self, script: &str) -> Result<String> {
        if script.is_empty() { Ok(String::new()) } else { shell(&mut self.guest, script) }
    }

    /// The same in the guest's guest.
    pub(super) fn in_nested_guest(&mut self, script: &str) -> Result<String> {
        match &mut self.nested {
            Some(nested) => shell(nested, script),
            None => {
                Err(BenchError::Malformed { what: "a cause", text: "it needs 3 levels".into() })
            }
        }
    }

    /// Starts a script in the host; its process, which leads a group of its own.
    pub(super) fn start(&mut self, script: &str, log: &str) -> Result<u32> {
        let argv = ["sh", "-c", &format!("{NAMES}{script}")].map(str::to_owned).into();
        let exec = Exec {
            argv,
            env: BTreeMap::new(),
            stdin: false,
            timeout_ms: None,
            detach_to: Some(log.to_owned()),
        };
        match self.host.output(&exec)?.ended {
            Ended::Detached(pid) => Ok(pid),
            _ => Err(BenchError::Malformed { what: "the lab", text: script.to_owned() }),
        }
    }

    /// Sends a started script and all that it started a signal, and waits until it has ended.
    pub(super) fn end(&mut self, pid: u32, signal: &str) -> Result<()> {
        let script = format!(
            "kill -{signal} -{pid} 2>/dev/null; while kill -0 {pid} 2>/dev/null; do sleep 0.05; done"
        );
        shell(&mut self.host, &script).map(drop)
    }

    /// The host's counters.
    pub(super) fn host_counters(&mut self) -> Result<Counters> {
        counters(&mut self.host)
    }

    /// The guest's counters.
    pub(super) fn guest_counters(&mut self) -> Result<Counters> {
        counters(&mut self.guest)
    }

    /// Copies a file of the host to a file here.
    pub(super) fn get(&mut self, from: &str, to: &Path) -> Result<()> {
        let mut file = File::create(to).map_err(BenchError::io("cannot write", to))?;
        Ok(self.host.get(from, &mut file)?)
    }

    /// Time for which the threads that execute the machines waited for a processor so far.
    pub(super) fn disturbed_ns(&self) -> u64 {
        let Some(pid) = self.executor else { return 0 };
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
        let waits = threads.filter_map(|thread| {
            let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            text.split_whitespace().nth(1)?.parse::<u64>().ok()
        });
        waits.sum()
    }
}

/// What both machines need.
fn prepare() -> String {
    let links = PROGRAMS.map(|name| format!("ln -sf /init /bin/{name}\n")).concat();
    format!("{links}{PREPARE}")
}

fn prepared_guest(lab: &Lab) -> Result<Session> {
    let mut guest = lab.session(2)?;
    put(&mut guest, &agent(&hyperscope()?)?, "/bin/hyperscope-agent")?;
    shell(&mut guest, &prepare())?;
    shell(&mut guest, CONNECT)?;
    let exec = Exec {
        argv: ["/bin/hyperscope-agent", "vsock"].map(str::to_owned).into(),
        env: BTreeMap::new(),
        stdin: false,
        timeout_ms: Some(10_000),
        detach_to: Some("/tmp/agent.log".to_owned()),
    };
    guest.output(&exec)?;
    guest.check(&["timeout", "30", "sh", "-c", WAITING], PATIENCE)?;
    Ok(guest)
}

fn prepared_nested(lab: &Lab) -> Result<Session> {
    let mut nested = lab.session(3)?;
    shell(&mut nested, &prepare())?;
    Ok(nested)
}

fn shell(session: &mut Session, script: &str) -> Result<String> {
    Ok(session.check(&["sh", "-c", script], PATIENCE)?)
}

fn counters(session: &mut Session) -> Result<Counters> {
    let text = session.check(&["hyperscope-labguest", "counters"], PATIENCE)?;
    serde_json::from_str(&text).map_err(BenchError::malformed("hyperscope-labguest counters"))
}
