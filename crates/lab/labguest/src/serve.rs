//! The command server: one thread per control port, one session at a time on each.
//!
//! It never wakes up by itself: polling would cause exits in what is measured, waiting costs nothing.

use std::fs;
use std::io;
use std::thread;

use labguest::wire::{FrameError, GuestConfig, Message, Ready};

use crate::failure::Failure;
use crate::ports::Port;
use crate::{exec, files, ports, relay};

/// Serves all control ports forever.
pub(crate) fn run() -> io::Result<()> {
    let config: GuestConfig = serde_json::from_slice(&fs::read(labguest::wire::CONFIG_PATH)?)?;
    let ports = ports::open_control_ports()?;
    println!("{} after {} ms", labguest::wire::READY_LINE, uptime_ns() / 1_000_000);
    let level = config.level;
    let threads: Vec<_> =
        ports.into_iter().map(|port| thread::spawn(move || serve(&port, level))).collect();
    for thread in threads {
        let _ = thread.join();
    }
    Err(io::Error::other("all control ports failed"))
}

fn uptime_ns() -> u64 {
    sys::clock_ns(sys::ClockId::Boottime)
}

fn serve(port: &Port, level: u8) {
    loop {
        let served = port.wait_for_client(Ready { level, uptime_ns: uptime_ns() });
        let served = served.map_err(FrameError::Io).and_then(|()| session(port));
        if let Err(FrameError::Io(error)) = served
            && error.kind() != io::ErrorKind::WriteZero
        {
            println!("hyperscope-lab: a control port failed: {error}");
            return;
        }
    }
}

/// Executes requests until the client is gone.
fn session(port: &Port) -> Result<(), FrameError> {
    let mut next = None;
    loop {
        let message = match next.take().map_or_else(|| labguest::wire::read(&mut &*port), Ok) {
            // A client died within a message, and the next one came before that was detected.
            Err(FrameError::Malformed { .. }) => {
                Message::Open(labguest::wire::skip_to_open(&mut &*port)?)
            }
            other => other?,
        };
        next = answer(port, message)?;
    }
}

/// Executes a request. Returns a message that interrupted it, to be handled next.
fn answer(port: &Port, message: Message) -> Result<Option<Message>, FrameError> {
    let outcome = match message {
        Message::Open(number) => {
            labguest::wire::write(&mut &*port, &Message::Opened(number))?;
            return Ok(None);
        }
        Message::Exec(exec) => exec::run(port, &exec),
        Message::Put(put) => files::receive(port, &put),
        Message::Get(path) => files::send(port, &path),
        Message::Connect(path) => relay::run(port, &path),
        // Left over from a request that has ended: input for it, or a signal to it.
        _ => return Ok(None),
    };
    match outcome {
        Ok(interruption) => Ok(interruption),
        Err(Failure::Channel(error)) => Err(error),
        Err(Failure::Request(text)) => {
            labguest::wire::write(&mut &*port, &Message::Failed(text))?;
            Ok(None)
        }
    }
}
