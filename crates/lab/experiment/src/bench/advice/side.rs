//! Boots a guest with one side of a switch, and records its workloads one after another.

use std::path::Path;

use lab::Lab;

use super::recorded::{self, AdvisedRun};
use super::switches::{Side, Switch};
use crate::bench::error::Result;
use crate::bench::machines::{BootedMachine, FOLDER};

/// Size of the disk, more than workloads read.
const DISK_MIB: u32 = 64;
/// Restores the defaults of host settings that a side may have changed, and stops programs that compete with a guest.
const AS_USUAL: &str = "cd /sys/module/kvm/parameters
echo 200000 > halt_poll_ns; echo 2 > halt_poll_ns_grow; echo 10000 > halt_poll_ns_grow_start
echo always > /sys/kernel/mm/transparent_hugepage/enabled
kill $(cat /tmp/competitor) 2>/dev/null; rm -f /tmp/competitor; true";
/// A page for guests to fetch, and its server.
const SERVE: &str = "mkdir -p /tmp/www; echo hello > /tmp/www/page; pidof httpd >/dev/null || httpd -p 80 -h /tmp/www";
/// Sets up the guest's network, if it has one.
const CONNECT: &str =
    "ip address add 10.77.2.2/24 dev eth0; ip link set eth0 up; ping -c 1 10.77.2.1 >/dev/null";
/// The recorder's message once it records.
const BEGUN: &str = "hyperscope: recording";

/// Records each workload once.
pub(super) fn run(
    switch: &Switch,
    side: &Side,
    lab: &Lab,
    host: &mut BootedMachine,
    folder: &Path,
) -> Result<Vec<AdvisedRun>> {
    let mut guest = boot(switch, side, lab, host)?;
    let mut runs = Vec::new();
    for workload in switch.workloads {
        runs.push(recorded(workload.script, host, &mut guest, folder)?);
    }
    host.shell(AS_USUAL)?;
    Ok(runs)
}

/// Boots the side's guest, ready for workloads.
fn boot(
    switch: &Switch,
    side: &Side,
    lab: &Lab,
    host: &mut BootedMachine,
) -> Result<BootedMachine> {
    host.shell(AS_USUAL)?;
    host.shell(side.host)?;
    let mut wanted = lab.description()?;
    wanted.guest.board = switch.board;
    wanted.guest.net = side.net;
    wanted.guest.disk_mib = Some(DISK_MIB);
    wanted.guest.qemu = side.qemu.to_owned();
    lab.replace_guest(&wanted)?;
    let mut guest = BootedMachine::at_level(lab, 2)?;
    if side.net.is_some() {
        host.shell(SERVE)?;
        guest.shell(CONNECT)?;
    }
    guest.shell(side.guest)?;
    host.shell(side.meanwhile)?;
    Ok(guest)
}

fn recorded(
    script: &str,
    host: &mut BootedMachine,
    guest: &mut BootedMachine,
    folder: &Path,
) -> Result<AdvisedRun> {
    let record =
        format!("exec hyperscope record -e kvm -e sched --buffer 20000 -o {FOLDER}/advice");
    host.shell(&format!("rm -rf {FOLDER}/advice"))?;
    let recorder = host.start(&record, &format!("{FOLDER}/advice.log"), BEGUN)?;
    let ran = guest.shell(script);
    host.end(recorder, "INT")?;
    ran?;
    let file = folder.join("host.dat");
    host.get(&format!("{FOLDER}/advice/host.dat"), &file)?;
    recorded::read(&file)
}
