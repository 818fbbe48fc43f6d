//! The smallest agent there can be: in a guest with an ivshmem device it hands the pages of all
//! CPUs' trace buffers to the host, and the formats of the events that it was asked to record.
//!
//! `guest_agent TRACEFS SECONDS SYSTEM...`, in a guest, as root. The host runs `host_drain`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use shmring::{
    Access, ByteProducer, Filled, GuestSide, Mode, PCI_DEVICES, PageProducer, RegionPlan, Sent,
    SharedMap, shared_memory_devices,
};

/// O_NONBLOCK: a buffer without a page must not stop its thread.
const NONBLOCK: i32 = 0o4000;

fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1);
    let (Some(tracefs), Some(seconds)) = (words.next(), words.next()) else {
        return Err(io::Error::other("guest_agent TRACEFS SECONDS SYSTEM..."));
    };
    let tracefs = PathBuf::from(tracefs);
    let end = Instant::now() + Duration::from_secs(seconds.parse().map_err(io::Error::other)?);
    let mut side = region()?;
    let mut texts = Vec::new();
    add(&mut texts, &tracefs, Path::new("events/header_page"))?;
    for system in words {
        add_formats(&mut texts, &tracefs, &system)?;
        fs::write(tracefs.join("events").join(system).join("enable"), "1")?;
    }
    let pumps: Vec<_> = side
        .pages
        .into_iter()
        .map(|ring| {
            let file = tracefs.join(format!("per_cpu/cpu{}/trace_pipe_raw", ring.cpu()));
            thread::spawn(move || pump(ring, &file, end))
        })
        .collect();
    say(&mut side.to_host, &texts, end);
    for pump in pumps {
        let (cpu, pages, full) = pump.join().map_err(|_| io::Error::other("a pump panicked"))??;
        println!("agent: cpu {cpu}: {pages} pages, {full} times full");
    }
    side.pulse.end();
    Ok(())
}

fn region() -> io::Result<GuestSide> {
    let devices = shared_memory_devices(Path::new(PCI_DEVICES))?;
    let Some(device) = devices.first() else { return Err(io::Error::other("no ivshmem device")) };
    device.enable()?;
    let memory = device.memory_combining.as_ref().unwrap_or(&device.memory);
    println!("agent: {} bytes in {}", device.memory_bytes, memory.display());
    let map = Arc::new(SharedMap::open(memory, Access::ReadWrite)?);
    let cpus = thread::available_parallelism()?.get();
    let plan = RegionPlan {
        cpus,
        page_bytes: 4096,
        slots_per_cpu: 2,
        mode: Mode::Keep,
        control_bytes: 65536,
    };
    let plan = plan.filling(map.len_bytes()).map_err(io::Error::other)?;
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().replace('-', "");
    let boot_id = u128::from_str_radix(&boot_id, 16).map_err(io::Error::other)?;
    GuestSide::create(map, &plan, boot_id.to_be_bytes()).map_err(io::Error::other)
}

/// Reads pages until the time is over; how many, and how often there was no room for one.
fn pump(mut ring: PageProducer, file: &Path, end: Instant) -> io::Result<(usize, u64, u64)> {
    let source = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(file)?;
    let (mut pages, mut full) = (0, 0);
    while Instant::now() < end {
        match ring.read_from(source.as_fd()) {
            Ok(Filled::Page { .. }) => pages += 1,
            Ok(Filled::Full) => {
                full += 1;
                thread::sleep(Duration::from_millis(1));
            }
            Ok(Filled::Nothing) => thread::sleep(Duration::from_millis(10)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(10));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((ring.cpu(), pages, full))
}

fn add_formats(texts: &mut Vec<u8>, tracefs: &Path, system: &str) -> io::Result<()> {
    let folder = Path::new("events").join(system);
    for entry in fs::read_dir(tracefs.join(&folder))? {
        let format = folder.join(entry?.file_name()).join("format");
        if tracefs.join(&format).is_file() {
            add(texts, tracefs, &format)?;
        }
    }
    Ok(())
}

/// A file as a message: a line with its path and length, then its bytes.
fn add(texts: &mut Vec<u8>, tracefs: &Path, path: &Path) -> io::Result<()> {
    // The kernel gives `header_page` to the first read(2) only, so that one must have room for all.
    let mut text = Vec::with_capacity(1 << 16);
    File::open(tracefs.join(path))?.read_to_end(&mut text)?;
    texts.extend(format!("{} {}\n", path.display(), text.len()).into_bytes());
    texts.extend(text);
    Ok(())
}

/// Says everything to each host that comes.
fn say(to_host: &mut ByteProducer, texts: &[u8], end: Instant) {
    let mut rest = texts;
    while Instant::now() < end {
        match to_host.write(rest) {
            Sent::Bytes(0) => thread::sleep(Duration::from_millis(10)),
            Sent::Bytes(sent) => rest = rest.get(sent..).unwrap_or_default(),
            Sent::NewPeer => rest = texts,
        }
    }
}
