//! Threads that take what a guest sends on its page streams.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use channel::{Stream, Wait};
use wire::{PageDecoder, Piece};

use crate::guest::files::{Arriving, GuestFiles};
use crate::pump::Stop;

/// Bytes read at once.
const READ_BYTES: usize = 256 << 10;
/// How long one waits at a time; nothing happens in between.
const LOOK: Duration = Duration::from_secs(60);
/// How long the bytes behind a batch of pages may take before it is believed to be whole.
const CONFIRM: Duration = Duration::from_millis(200);
/// How long what is still on its way may take after the end.
const REST: Duration = Duration::from_millis(300);

/// A thread that takes one page stream.
#[derive(Debug)]
pub(crate) struct Receiver(JoinHandle<io::Result<()>>);

impl Receiver {
    /// Begins to take the pages of a session.
    pub(crate) fn start(
        at: usize,
        stream: Stream,
        session: u64,
        files: Arc<GuestFiles>,
        stop: Stop,
    ) -> io::Result<Self> {
        let thread = thread::Builder::new()
            .name(format!("guest-pages{at}"))
            .spawn(move || receive(&stream, session, &files, &stop))?;
        Ok(Self(thread))
    }

    /// Waits for its end.
    pub(crate) fn join(self) -> io::Result<()> {
        self.0.join().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
    }
}

fn receive(stream: &Stream, session: u64, files: &GuestFiles, stop: &Stop) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    let mut decoder = PageDecoder::new(session);
    let mut arriving = Arriving::new(files);
    let mut is_over = false;
    loop {
        let wait = match is_over {
            false if arriving.is_whole() => Wait { most: CONFIRM, stop: Some(stop.fd()) },
            false => Wait { most: LOOK, stop: Some(stop.fd()) },
            true => Wait::at_most(REST),
        };
        let read = match stream.read(&mut buffer, wait) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::TimedOut && is_over => break,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                arriving.flush()?;
                is_over = stop.is_told();
                continue;
            }
            // The guest, or the machine it is in, is gone: what came before counts.
            Err(_) => break,
        };
        decoder.push(buffer.get(..read).unwrap_or_default(), |piece| {
            match piece {
                Piece::Head(head) => arriving.head(head)?,
                Piece::Pages(bytes) => arriving.pages(bytes),
                Piece::Skipped(bytes) => arriving.senseless(bytes),
            }
            Ok::<(), io::Error>(())
        })?;
    }
    arriving.end()
}
