//! Handles the frames that the tiny machine sends: in the vCPU's thread, in another thread, or in the kernel's
//! vhost-net.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use sys::Tap;
use sys::kvm::{Queue, TinyVm};

use crate::exitcost::waker::{ring, wait};

/// Address of the queue in the machine's memory; its size is `BYTES`.
pub(crate) const AT: usize = 0xd000;
const BYTES: usize = 0x1000;
/// The queue uses only its first descriptor: all entries of the queue are 0.
const LENGTH: u16 = 16;
const AVAILABLE: usize = AT + 0x100;
const USED: usize = AT + 0x200;
const FRAME_AT: usize = AT + 0x400;
/// Where the guest counts available buffers.
pub(crate) const AVAILABLE_COUNT: u32 = AVAILABLE as u32 + 2;

/// A frame of min length with an experimental EtherType, to nobody, so that it needs no further handling.
const FRAME: [u8; 70] = {
    let mut frame = [0; 70];
    // To and from locally administered addresses.
    (frame[10], frame[15], frame[16], frame[21]) = (2, 1, 2, 2);
    (frame[22], frame[23]) = (0x88, 0xb5);
    frame
};

/// A running server; ends when dropped.
#[derive(Debug)]
pub(crate) enum Server {
    /// The vCPU's thread handles the doorbell.
    Own(Tap),
    Thread {
        thread: Option<JoinHandle<io::Result<()>>>,
        bell: OwnedFd,
        is_over: Arc<AtomicBool>,
    },
    /// The kernel handles it.
    Vhost,
}

/// Empties the queue, and makes vhost handle it.
pub(crate) fn by_vhost(
    vm: &mut TinyVm,
    tap: &Tap,
    asks: &OwnedFd,
    wakes: &OwnedFd,
) -> Result<Server, sys::kvm::KvmError> {
    let mut queue = [0; BYTES];
    let descriptor = [FRAME_AT as u64, FRAME.len() as u64].map(u64::to_le_bytes).concat();
    for (at, bytes) in [(0, descriptor.as_slice()), (FRAME_AT - AT, &FRAME)] {
        queue.iter_mut().skip(at).zip(bytes).for_each(|(to, from)| *to = *from);
    }
    if let Some(place) = vm.memory_mut().get_mut(AT..AT + BYTES) {
        place.copy_from_slice(&queue);
    }
    let queue = Queue {
        length: LENGTH,
        descriptors: AT as u64,
        available: AVAILABLE as u64,
        used: USED as u64,
    };
    vm.serve_by_vhost(queue, tap.as_fd(), asks.as_fd(), wakes.as_fd())?;
    Ok(Server::Vhost)
}

/// Starts a thread that sleeps until the doorbell rings.
pub(crate) fn by_thread(tap: Tap, asks: &OwnedFd, wakes: &OwnedFd) -> io::Result<Server> {
    let (asks_clone, bell, wakes) = (asks.try_clone()?, asks.try_clone()?, wakes.try_clone()?);
    let is_over = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&is_over);
    let serve = move || loop {
        wait(&asks_clone)?;
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        send(&tap, &wakes)?;
    };
    let thread = Some(Builder::new().name("server".into()).spawn(serve)?);
    Ok(Server::Thread { thread, bell, is_over })
}

/// Sends the frame, and interrupts the guest.
pub(crate) fn send(tap: &Tap, wakes: &OwnedFd) -> io::Result<()> {
    tap.send(&FRAME)?;
    ring(wakes)
}

impl Drop for Server {
    fn drop(&mut self) {
        let Self::Thread { thread, bell, is_over } = self else { return };
        is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = thread.take().filter(|_| ring(bell).is_ok()) {
            let _ = thread.join();
        }
    }
}
