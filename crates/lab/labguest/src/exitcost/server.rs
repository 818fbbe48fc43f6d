//! Who takes the frames that the tiny machine sends: the thread that runs it, another one, or the
//! kernel's vhost-net.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use sys::Tap;
use sys::kvm::{Queue, TinyVm};

use crate::exitcost::waker::{ring, wait};

/// Where the queue is in the machine's memory: as many bytes as `BYTES`.
pub(crate) const AT: usize = 0xd000;
const BYTES: usize = 0x1000;
/// Its one descriptor that is in use, the first, is what all entries of the queue name: they are 0.
const LENGTH: u16 = 16;
const AVAILABLE: usize = AT + 0x100;
const USED: usize = AT + 0x200;
const FRAME_AT: usize = AT + 0x400;
/// Where the guest counts what it has made available.
pub(crate) const AVAILABLE_COUNT: u32 = AVAILABLE as u32 + 2;

/// A shortest frame, of a protocol for experiments, to nobody; nothing is left to be done for it.
const FRAME: [u8; 70] = {
    let mut frame = [0; 70];
    // To, and from, addresses that are locally administered.
    (frame[10], frame[15], frame[16], frame[21]) = (2, 1, 2, 2);
    (frame[22], frame[23]) = (0x88, 0xb5);
    frame
};

/// Whoever serves; ends when dropped.
#[derive(Debug)]
pub(crate) enum Server {
    /// Whom the doorbell comes back to.
    Own(Tap),
    Thread {
        thread: Option<JoinHandle<io::Result<()>>>,
        bell: OwnedFd,
        is_over: Arc<AtomicBool>,
    },
    /// It is the machine's.
    Vhost,
}

/// Empties the queue, and has vhost serve it.
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

/// Has a thread serve, which sleeps until the doorbell rings.
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

/// Sends the frame, and notifies the guest that it is gone.
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
