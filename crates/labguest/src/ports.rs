//! The virtio-serial ports of this machine, by name.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::thread;
use std::time::Duration;

/// Where the kernel lists them.
const CLASS: &str = "/sys/class/virtio-ports";

/// How long ports may take to appear after their driver was loaded.
const TRIES: u32 = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// Opens the control ports, for reading and writing, in the order of their numbers.
pub(crate) fn open_control_ports() -> io::Result<Vec<File>> {
    (0..labwire::PORTS).map(|at| open(&format!("{}{at}", labwire::PORT_PREFIX))).collect()
}

fn open(name: &str) -> io::Result<File> {
    for _ in 0..TRIES {
        if let Some(device) = device(name) {
            return OpenOptions::new().read(true).write(true).open(format!("/dev/{device}"));
        }
        thread::sleep(BETWEEN_TRIES);
    }
    Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no virtio port {name}")))
}

fn device(name: &str) -> Option<String> {
    let entries = fs::read_dir(CLASS).ok()?;
    let mut devices = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    devices.find(|device| {
        fs::read_to_string(format!("{CLASS}/{device}/name")).is_ok_and(|text| text.trim() == name)
    })
}
