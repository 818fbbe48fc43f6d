//! Workloads on devices: the serial console, the disk, the network.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use rustix::fs::OFlags;
use serde_json::Value;

use super::options::PlantOptions;
use super::pace::Pace;

/// What direct input and output is aligned to.
const BLOCK: usize = 4096;
/// The most that a request or packet has.
const MAX_BYTES: u64 = 1 << 20;

/// Writes lines of `bytes` to the serial console.
pub(super) fn serial(options: &mut PlantOptions) -> io::Result<Value> {
    let bytes = size(options, 64);
    let pace = Pace::read(options)?;
    let mut line = vec![b'.'; bytes];
    line.push(b'\n');
    let mut console = OpenOptions::new().write(true).open("/dev/ttyS0")?;
    pace.run(|batch| (0..batch).try_for_each(|_| console.write_all(&line)))
}

/// Reads, or with `write=1` writes, the disk past all caches, one block after the other in its first MiB.
pub(super) fn disk(options: &mut PlantOptions) -> io::Result<Value> {
    let writes = options.number("write", 0) > 0;
    let bytes = size(options, BLOCK as u64).next_multiple_of(BLOCK);
    let pace = Pace::read(options)?;
    let mut open = OpenOptions::new();
    open.read(true).write(writes).custom_flags(OFlags::DIRECT.bits() as i32);
    let disk = open.open("/dev/vda")?;
    let mut memory = vec![0_u8; bytes + BLOCK];
    let start = memory.as_ptr().align_offset(BLOCK);
    let block = memory.get_mut(start..start + bytes).unwrap_or_default();
    let mut at = 0;
    pace.run(|batch| {
        for _ in 0..batch {
            if writes { disk.write_all_at(block, at) } else { disk.read_exact_at(block, at) }?;
            at = (at + bytes as u64) % MAX_BYTES;
        }
        Ok(())
    })
}

/// Sends packets to a port of this machine at which somebody listens, and takes them in at the end of each batch.
pub(super) fn packets(options: &mut PlantOptions) -> io::Result<Value> {
    let bytes = size(options, 64);
    let pace = Pace::read(options)?;
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    sender.connect(receiver.local_addr()?)?;
    receiver.set_nonblocking(true)?;
    let packet = vec![0; bytes];
    let mut taken_in = [0; 64];
    pace.run(|batch| {
        for _ in 0..batch {
            // A full queue is no reason to stop.
            let _ = sender.send(&packet);
        }
        while receiver.recv(&mut taken_in).is_ok() {}
        Ok(())
    })
}

fn size(options: &mut PlantOptions, default: u64) -> usize {
    let bytes = options.number("bytes", default).clamp(1, MAX_BYTES);
    usize::try_from(bytes).unwrap_or(BLOCK)
}
