//! Copies sockets to files continuously: the host's side of ports that a guest writes to.

use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::thread;

/// Copies each `SOCKET=FILE` until a signal ends it, or all sockets are closed.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let mut threads = Vec::new();
    for argument in arguments {
        let wrong = || io::Error::new(io::ErrorKind::InvalidInput, argument.clone());
        let (socket, file) = argument.split_once('=').ok_or_else(wrong)?;
        let (mut from, mut to) = (UnixStream::connect(socket)?, File::create(file)?);
        threads.push(thread::spawn(move || io::copy(&mut from, &mut to)));
    }
    println!("connected");
    for thread in threads {
        thread.join().map_err(|_| io::Error::other("a thread panicked"))??;
    }
    Ok(())
}
