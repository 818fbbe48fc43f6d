//! Emulated virtio-serial ports: terminals instead of devices, and sockets like a VMM's, which stay
//! unchanged when the agent ends.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::agent::{Agent, program};

/// The ports, with their resources.
pub(crate) struct Ports {
    folder: tempfile::TempDir,
    /// Kept open: devices exist without an agent.
    _terminals: Vec<File>,
}

const NAMES: [&str; 2] = ["hyperscope.control", "hyperscope.cpu0"];

/// Shows these ports among the machine's devices to the agent only.
const SCRIPT: &str = "set -e; cd \"$1\"; mount --bind class /sys/class; \
    mkdir dev/pts; mount --bind /dev/pts dev/pts; touch dev/null; mount --bind /dev/null dev/null; \
    mount --rbind dev /dev; exec \"$2\" virtio-serial";

impl Ports {
    /// Ports, and an agent that waits on them; prints the reason and returns `None` if a process can't
    /// have its own mounts.
    pub(crate) fn with_agent() -> Option<(Self, Agent)> {
        let unshared = Command::new("unshare").args(["-m", "true"]).status();
        if !unshared.is_ok_and(|status| status.success()) {
            testkit::skip!("no mounts of one's own here");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("dev")).unwrap();
        let terminals = NAMES.iter().zip(1..).map(|(name, at)| port(folder.path(), name, at));
        let terminals = terminals.collect();
        let agent = Agent::spawn(
            Command::new("unshare")
                .args(["-m", "--propagation", "private", "sh", "-c", SCRIPT, "sh"])
                .args([folder.path(), &program()]),
        );
        Some((Self { folder, _terminals: terminals }, agent))
    }

    /// The host's channel.
    pub(crate) fn channel(&self) -> String {
        format!("virtio-serial:{}", self.folder.path().display())
    }
}

/// A port: the terminal that serves as its device.
fn port(folder: &Path, name: &str, at: u32) -> File {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = File::options().read(true).write(true).open(&path).unwrap();
    let mut settings = tcgetattr(&terminal).unwrap();
    settings.make_raw();
    tcsetattr(&terminal, OptionalActions::Now, &settings).unwrap();
    let device = format!("vport0p{at}");
    let class = folder.join("class/virtio-ports").join(&device);
    fs::create_dir_all(&class).unwrap();
    fs::write(class.join("name"), name).unwrap();
    let link = path.strip_prefix("/dev/").unwrap();
    std::os::unix::fs::symlink(link, folder.join("dev").join(device)).unwrap();
    let listener = UnixListener::bind(folder.join(name)).unwrap();
    let device = Arc::new(File::from(master));
    thread::spawn(move || {
        for host in listener.incoming().map_while(Result::ok) {
            let (of_host, to_device) = (host.try_clone().unwrap(), Arc::clone(&device));
            thread::spawn(move || copy(of_host, &*to_device));
            let from_device = Arc::clone(&device);
            thread::spawn(move || copy(&*from_device, host));
        }
    });
    terminal
}

/// Copies bytes until either side closes.
fn copy(mut from: impl Read, mut to: impl Write) {
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..read]).is_err() {
            return;
        }
    }
}
