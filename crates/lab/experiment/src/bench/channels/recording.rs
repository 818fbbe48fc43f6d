//! Starts and ends a recording of the guest with each variant.

use std::fs;
use std::path::Path;

use session_json::{GuestSummary, Session};

use crate::bench::channels::Variant;
use crate::bench::channels::arrived::{Arrived, count};
use crate::bench::error::{BenchError, Result};
use crate::bench::machines::{BootedMachine, BootedMachines, FOLDER, Running};

/// The recorded events of the guest.
const EVENTS: [&str; 2] = ["sched:sched_switch", "sched:sched_wakeup"];
/// The recorded event of the host, which never occurs here.
const NOTHING: &str = "kvm:kvm_hv_hypercall";
/// The tracefs instance of variants that use shell commands.
const INSTANCE: &str = "/sys/kernel/tracing/instances/bench";

/// A running recording.
#[derive(Debug)]
pub(crate) enum Recording {
    None,
    /// Events go to an instance without a reader.
    KernelBuffer,
    /// Recorder and agent.
    Hyperscope {
        variant: Variant,
        recorder: Running,
        agent: Running,
    },
    /// The program that drains the ports.
    Cat {
        drain: Running,
    },
    /// Recorder and agent.
    TraceCmd {
        recorder: Running,
        agent: Running,
    },
}

impl Recording {
    /// Starts recording the guest.
    pub(crate) fn begin(
        variant: Variant,
        machines: &mut BootedMachines,
        buffer_kib: u32,
    ) -> Result<Self> {
        match variant {
            Variant::None => Ok(Self::None),
            Variant::KernelBuffer => {
                machines.guest.shell(&format!("{}; {ON}", instance(buffer_kib)))?;
                Ok(Self::KernelBuffer)
            }
            Variant::Shm | Variant::VirtioSerial | Variant::Vsock => {
                hyperscope(variant, machines, buffer_kib)
            }
            Variant::Cat => cat(machines, buffer_kib),
            Variant::TraceCmd => trace_cmd(machines, buffer_kib),
        }
    }

    /// Ends it, and counts what arrived; files go through the folder.
    pub(crate) fn end(self, machines: &mut BootedMachines, folder: &Path) -> Result<Arrived> {
        match self {
            Self::None => Ok(Arrived::default()),
            Self::KernelBuffer => end_kernel_buffer(&mut machines.guest),
            Self::Hyperscope { variant, recorder, agent } => {
                machines.host.end(recorder, "INT")?;
                machines.guest.end(agent, "TERM")?;
                end_hyperscope(variant, &mut machines.host, folder)
            }
            Self::Cat { drain } => end_cat(drain, machines, folder),
            Self::TraceCmd { recorder, agent } => {
                machines.host.shell(&format!("echo > {FOLDER}/end"))?;
                machines.host.end(recorder, "0")?;
                machines.guest.end(agent, "TERM")?;
                let file = folder.join("guest.dat");
                machines.host.get(&format!("{FOLDER}/host-l2.dat"), &file)?;
                count(Variant::TraceCmd, &file)
            }
        }
    }
}

/// Enables events in a new instance.
const ON: &str = "echo 1 > tracing_on";

fn instance(buffer_kib: u32) -> String {
    let on = EVENTS.map(|event| format!("echo 1 > events/{}/enable", event.replace(':', "/")));
    format!(
        "mkdir {INSTANCE} && cd {INSTANCE} && echo 0 > tracing_on && echo x86-tsc > trace_clock && \
         echo {buffer_kib} > buffer_size_kb && {}",
        on.join(" && ")
    )
}

fn end_kernel_buffer(guest: &mut BootedMachine) -> Result<Arrived> {
    let stats = guest.shell(&format!(
        "cd {INSTANCE} && echo 0 > tracing_on && cat per_cpu/cpu*/stats && cd / && rmdir {INSTANCE}"
    ))?;
    // Overwritten events were recorded, too: without a reader, nothing can be lost.
    let events = sum(&stats, "entries") + sum(&stats, "overrun") + sum(&stats, "read events");
    Ok(Arrived { events, ..Arrived::default() })
}

/// Sums a line of the `stats` of several CPUs.
fn sum(stats: &str, name: &str) -> u64 {
    let values = stats.lines().filter_map(|line| line.split_once(':'));
    let values = values.filter(|(key, _)| key.trim() == name);
    values.filter_map(|(_, value)| value.trim().parse::<u64>().ok()).sum()
}

fn hyperscope(
    variant: Variant,
    machines: &mut BootedMachines,
    buffer_kib: u32,
) -> Result<Recording> {
    let (at_guest, at_host) = variant.addresses().unwrap_or_default();
    let agent = machines.guest.start(
        &format!("exec hyperscope-agent {at_guest}"),
        &format!("{FOLDER}/agent.log"),
        "waiting on",
    )?;
    let events = EVENTS.map(|event| format!("--guest-event {event}")).join(" ");
    let recorder = machines.host.start(
        &format!(
            "rm -rf {FOLDER}/session; exec hyperscope record -e {NOTHING} --buffer 64 \
             --guest l2={at_host} {events} --guest-buffer {buffer_kib} --guest-wait 180s -o {FOLDER}/session"
        ),
        &format!("{FOLDER}/recorder.log"),
        "hyperscope: recording",
    )?;
    Ok(Recording::Hyperscope { variant, recorder, agent })
}

fn end_hyperscope(variant: Variant, host: &mut BootedMachine, folder: &Path) -> Result<Arrived> {
    let text = host.shell(&format!("cat {FOLDER}/session/session.json"))?;
    let session: Session =
        serde_json::from_str(&text).map_err(BenchError::malformed("hyperscope record"))?;
    let file = folder.join("guest.dat");
    host.get(&format!("{FOLDER}/session/guest-l2.dat"), &file)?;
    let mut arrived = count(variant, &file)?;
    let guests = session.recorded.unwrap_or_default().guests;
    let events_lost = guests.iter().filter_map(GuestSummary::events_lost).sum();
    arrived.events_lost = arrived.events_lost.max(events_lost);
    arrived.lost_bytes =
        guests.iter().flat_map(|guest| &guest.cpus).map(|cpu| cpu.lost_bytes).sum();
    Ok(arrived)
}

/// Finds the ports by name, since there is no udev.
const PORTS: &str = "for n in /sys/class/virtio-ports/*/name; do \
    case $(cat $n) in hyperscope.cpu*) d=${n%/name}; \
    c=$(cat $n); c=${c#hyperscope.cpu}; \
    cat per_cpu/cpu$c/trace_pipe_raw > /dev/${d##*/} 2>/dev/null & echo $! >> /tmp/bench/cats;; esac; done";

fn cat(machines: &mut BootedMachines, buffer_kib: u32) -> Result<Recording> {
    let pages = format!("{FOLDER}/pages");
    let drain = machines.host.start(
        &format!(
            "rm -rf {pages}; mkdir -p {pages}; cd /run/lab/l2; all=; \
             for s in hyperscope.cpu*; do all=\"$all /run/lab/l2/$s={pages}/${{s#hyperscope.}}\"; done; \
             exec hyperscope-labguest drain $all"
        ),
        &format!("{FOLDER}/drain.log"),
        "connected",
    )?;
    let start = format!("rm -f {FOLDER}/cats; {}; {PORTS}; {ON}", instance(buffer_kib));
    machines.guest.start(&format!("{start}; echo begun; wait"), "/tmp/bench/cat.log", "begun")?;
    Ok(Recording::Cat { drain })
}

fn end_cat(drain: Running, machines: &mut BootedMachines, folder: &Path) -> Result<Arrived> {
    let read = machines.guest.shell(&format!(
        "cd {INSTANCE} && echo 0 > tracing_on; i=0; \
         while grep -h ^entries: per_cpu/cpu*/stats | grep -vq ' 0$' && [ $i -lt 100 ]; do \
         i=$((i+1)); sleep 0.1; done; cat per_cpu/cpu*/stats"
    ));
    // Waits until no more data arrives from the guest's and QEMU's queues.
    machines.host.shell(&format!(
        "cd {FOLDER}/pages; was=; while sleep 0.5; is=$(wc -c *); [ \"$is\" != \"$was\" ]; \
         do was=$is; done"
    ))?;
    let stats = read?;
    machines.guest.shell(&format!(
        "kill $(cat {FOLDER}/cats); cd /; i=0; until rmdir {INSTANCE} 2>/dev/null || \
         [ $i -ge 50 ]; do i=$((i+1)); sleep 0.1; done"
    ))?;
    machines.host.end(drain, "TERM")?;
    let pages = folder.join("pages");
    let make = |path: &Path| fs::create_dir_all(path).map_err(BenchError::io("cannot make", path));
    let _ = fs::remove_dir_all(&pages);
    make(&pages.join("events"))?;
    let tracing = "/sys/kernel/tracing/events";
    let mut text = |name: &str, to: &Path| {
        // Files of tracefs have no size.
        let text = machines.guest.shell(&format!("cat {tracing}/{name}"))?;
        fs::write(to, text).map_err(BenchError::io("cannot write", to))
    };
    text("header_page", &pages.join("events/header_page"))?;
    for event in EVENTS {
        let path = event.replace(':', "/");
        make(&pages.join("events").join(&path))?;
        let file = format!("{path}/format");
        text(&file, &pages.join("events").join(&file))?;
    }
    for name in machines.host.shell(&format!("ls {FOLDER}/pages"))?.lines() {
        machines.host.get(&format!("{FOLDER}/pages/{name}"), &pages.join(name))?;
    }
    let mut arrived = count(Variant::Cat, &pages)?;
    let lost = sum(&stats, "overrun") + sum(&stats, "dropped events");
    arrived.events_lost = arrived.events_lost.max(lost);
    Ok(arrived)
}

fn trace_cmd(machines: &mut BootedMachines, buffer_kib: u32) -> Result<Recording> {
    let log = format!("{FOLDER}/agent.log");
    let agent = machines.guest.start("echo starting; exec trace-cmd agent", &log, "starting")?;
    machines.guest.shell(&lab::until_it_accepts(agent.pid))?;
    let events = EVENTS.map(|event| format!("-e {event}")).join(" ");
    let hold = format!("echo begun > {FOLDER}/began; cat {FOLDER}/end");
    let recorder = machines.host.start(
        &format!(
            "cd {FOLDER}; rm -f began end host*.dat; mkfifo end; echo starting; exec trace-cmd record -b 64 \
             -e {NOTHING} -o {FOLDER}/host.dat -A @3:823 --name l2 -b {buffer_kib} {events} \
             sh -c '{hold}'"
        ),
        &format!("{FOLDER}/recorder.log"),
        "starting",
    )?;
    let pid = recorder.pid;
    machines.host.shell(&format!(
        "until [ -s {FOLDER}/began ]; do kill -0 {pid} 2>/dev/null || \
         {{ cat {FOLDER}/recorder.log >&2; exit 1; }}; sleep 0.05; done"
    ))?;
    Ok(Recording::TraceCmd { recorder, agent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_of_processors_are_added_up() {
        let stats = "entries: 12\noverrun: 3\ncommit overrun: 100\nread events: 7\n\
                     entries: 1\noverrun: 0\nread events: 2\n";
        assert_eq!(sum(stats, "entries"), 13);
        assert_eq!(sum(stats, "overrun"), 3);
        assert_eq!(sum(stats, "read events"), 9);
    }
}
