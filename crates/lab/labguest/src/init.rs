//! The init process: mounts file systems, loads modules, starts the command server, reaps processes.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use labguest::wire::GuestConfig;
use rustix::mount::{MountFlags, mount};
use rustix::process::{WaitOptions, wait};
use rustix::system::{RebootCommand, reboot};

use crate::modules;

/// Mounts; types that the kernel does not have are skipped.
const MOUNTS: [(&str, &str); 8] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("devpts", "/dev/pts"),
    ("tmpfs", "/tmp"),
    ("tmpfs", "/run"),
    ("debugfs", "/sys/kernel/debug"),
    ("tracefs", "/sys/kernel/tracing"),
];

/// Sets the machine up; returns only after a failure.
pub(crate) fn run() -> io::Result<()> {
    let ended = set_up();
    if let Err(error) = &ended {
        // Only the console is available for the message.
        println!("hyperscope-lab: cannot set up the machine: {error}");
    }
    reboot(RebootCommand::PowerOff)?;
    ended
}

fn set_up() -> io::Result<()> {
    for (kind, place) in MOUNTS {
        mount_if_known(kind, place);
    }
    let config: GuestConfig = serde_json::from_slice(&fs::read(labguest::wire::CONFIG_PATH)?)?;
    modules::load(&config);
    shell("/bin/busybox --install -s /bin");
    shell(&format!("hostname l{}; ip link set lo up", config.level));
    let server =
        Command::new("/init").arg("serve").stdin(Stdio::null()).envs(environment()).spawn()?;
    reap_until(server.id())
}

/// The environment of all commands.
fn environment() -> [(&'static str, &'static str); 2] {
    [("PATH", "/bin:/sbin:/usr/bin:/usr/sbin"), ("HOME", "/root")]
}

fn mount_if_known(kind: &str, place: &str) {
    // Folders of a read-only file system (/sys) exist or can't be made: then the mount fails.
    let _ = fs::create_dir_all(place);
    let print_error = |error| println!("hyperscope-lab: {kind} is not mounted on {place}: {error}");
    let _ = mount(kind, Path::new(place), kind, MountFlags::empty(), None::<&CStr>)
        .map_err(print_error);
}

/// Runs a shell command; its output goes to the console.
fn shell(line: &str) {
    let ran = Command::new("/bin/busybox").args(["sh", "-c", line]).envs(environment()).status();
    if !ran.as_ref().is_ok_and(std::process::ExitStatus::success) {
        println!("hyperscope-lab: `{line}` failed: {ran:?}");
    }
}

/// Reaps all processes, as only init can, until the server ends.
fn reap_until(server: u32) -> io::Result<()> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get().unsigned_abs() == server => {
                return Err(io::Error::other(format!("the command server ended: {status:?}")));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
