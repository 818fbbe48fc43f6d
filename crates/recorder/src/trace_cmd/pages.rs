//! Threads that take the pages of one CPU each: bare pages, until the connection ends.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use channel::{Signal, Stream, Wait};
use wire::PageHead;

use crate::guest::GuestFiles;

/// Bytes read at once; less than a page is kept until the rest comes.
const READ_BYTES: usize = 256 << 10;
/// How long one waits at a time; nothing happens in between.
const LOOK: Duration = Duration::from_secs(60);
/// How long nothing may come after the end.
const REST: Duration = Duration::from_secs(2);

/// A thread that takes one CPU's pages.
#[derive(Debug)]
pub(super) struct PageStream {
    cpu: u32,
    thread: JoinHandle<io::Result<()>>,
}

impl PageStream {
    pub(super) fn start(
        cpu: u32,
        stream: Stream,
        files: Arc<GuestFiles>,
        stop: Signal,
    ) -> io::Result<Self> {
        let thread = thread::Builder::new()
            .name(format!("guest-cpu{cpu}"))
            .spawn(move || receive(cpu, &stream, &files, &stop))?;
        Ok(Self { cpu, thread })
    }

    /// Waits for its end: the CPU, and whether its pages came to the end.
    pub(super) fn join(self) -> (u32, io::Result<()>) {
        let ended = self.thread.join();
        let ended = ended.unwrap_or_else(|_| Err(io::Error::other("its thread panicked")));
        (self.cpu, ended)
    }
}

fn receive(cpu: u32, stream: &Stream, files: &GuestFiles, stop: &Signal) -> io::Result<()> {
    let page_bytes = files.page_bytes();
    let mut buffer = vec![0; READ_BYTES.next_multiple_of(page_bytes)];
    // How much of the buffer is used, and what was added to the files before.
    let (mut used, mut offset) = (0, 0_u64);
    let mut is_over = false;
    let ended = loop {
        let stops = [stop.fd()];
        let wait = if is_over { Wait::at_most(REST) } else { Wait::at_most(LOOK).or(&stops) };
        let room = buffer.get_mut(used..).unwrap_or_default();
        match stream.read(room, wait) {
            Ok(0) => break Ok(()),
            Ok(read) => used += read,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                if is_over {
                    break Err(io::Error::other("the agent did not end them"));
                }
                is_over = stop.is_given();
                continue;
            }
            // The guest, or the machine it is in, is gone: what came before counts.
            Err(error) => break Err(error),
        }
        let whole = used - used % page_bytes;
        if whole > 0 {
            let bytes = u32::try_from(whole).unwrap_or(u32::MAX);
            let head = PageHead { cpu, session: 0, offset, bytes };
            files.add(&head, buffer.get_mut(..whole).unwrap_or_default());
            offset += whole as u64;
            buffer.copy_within(whole..used, 0);
            used -= whole;
        }
    };
    files.note_senseless(used as u64);
    ended
}
