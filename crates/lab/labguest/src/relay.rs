//! A session that carries bytes to and from a Unix socket of this machine, for example a control port of its guest, or
//! the monitor of the guest's QEMU.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use labguest::wire::{FrameError, MAX_PAYLOAD_BYTES, Message};
use rustix::event::{PollFd, PollFlags, poll};

use crate::failure::Failure;
use crate::ports::{Port, PortState};

/// Relays until either end is closed.
pub(crate) fn run(port: &Port, path: &str) -> Result<Option<Message>, Failure> {
    let socket = UnixStream::connect(path)
        .map_err(|error| Failure::Request(format!("cannot connect to {path}: {error}")))?;
    labguest::wire::write(&mut &*port, &Message::Connected).map_err(Failure::channel)?;
    loop {
        let (from_port, from_socket) = wait(port, &socket)?;
        if from_socket && !forward(&socket, port)? {
            labguest::wire::write(&mut &*port, &Message::End).map_err(Failure::channel)?;
            return Ok(None);
        }
        if from_port == PortState::Left && port.is_left() {
            return Err(Failure::Channel(FrameError::Closed));
        }
        if from_port == PortState::Readable {
            match labguest::wire::read(&mut &*port)? {
                // The end of a broken socket is detected when reading from it.
                Message::Data(bytes) => drop((&socket).write_all(&bytes)),
                Message::End => {
                    labguest::wire::write(&mut &*port, &Message::End).map_err(Failure::channel)?;
                    return Ok(None);
                }
                other => return Ok(Some(other)),
            }
        }
    }
}

/// Waits for either; returns the port's state, and whether the socket is readable or closed.
fn wait(port: &Port, socket: &UnixStream) -> Result<(PortState, bool), Failure> {
    let mut both = [PollFd::new(port, PollFlags::IN), PollFd::new(socket, PollFlags::IN)];
    match poll(&mut both, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(Failure::channel(error.into())),
    }
    let [port, socket] = both.map(|fd| fd.revents());
    Ok((PortState::from_flags(port), !socket.is_empty()))
}

/// Forwards the socket's data; false when it is closed.
fn forward(mut socket: &UnixStream, port: &Port) -> Result<bool, Failure> {
    let mut buffer = vec![0; MAX_PAYLOAD_BYTES];
    let Ok(read) = socket.read(&mut buffer) else { return Ok(false) };
    if read == 0 {
        return Ok(false);
    }
    buffer.truncate(read);
    labguest::wire::write(&mut &*port, &Message::Data(buffer))
        .map_err(|error| Failure::Channel(FrameError::Io(error)))?;
    Ok(true)
}
