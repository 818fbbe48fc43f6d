//! Lets other programs request a dump from a running flight recorder: a line of JSON each way, over a socket that only
//! the recorder's user and root can reach.
//!
//! The socket is `PID.flight` in the folder of the running recorders' files. The folder keeps other users out, and the
//! kernel identifies the peer (`SO_PEERCRED`): a peer that is neither root nor the recorder's user gets no answer.

use std::fs::Permissions;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use os::confine::Confined;
use os::folder::Folder;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Uid, geteuid};
use serde::{Deserialize, Serialize};
use session_json::TriggerKind;

use super::{Dumped, trigger_now};
use crate::error::{RecordError, Result};
use crate::flight_plan::{Ask, DumpReply, FlightEvent};

/// Suffix of a socket's name, after the process id.
const SUFFIX: &str = ".flight";
/// Max size of a request and of an answer.
const MAX_BYTES: u64 = 16 << 10;
/// Max time to receive a request, and to send an answer.
const WITHIN: Duration = Duration::from_secs(5);
/// Max time of a dump, including earlier queued dumps.
const DUMPS_WITHIN: Duration = Duration::from_secs(600);

/// A request of another program.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// The reason of the dump, as free text.
    dump: Option<String>,
}

/// The answer for a written or failed session.
#[must_use]
pub fn answer_of(dumped: std::result::Result<&Dumped, &str>) -> DumpReply {
    match dumped {
        Ok(dumped) => DumpReply {
            session: std::path::absolute(&dumped.path).ok(),
            duration_ns: dumped.recorded.duration_ns,
            bytes: dumped.recorded.cpus.iter().map(|cpu| cpu.bytes).sum(),
            error: None,
        },
        Err(error) => {
            DumpReply { session: None, duration_ns: 0, bytes: 0, error: Some(error.to_owned()) }
        }
    }
}

/// The socket; drop removes it.
#[derive(Debug)]
pub struct Control {
    folder: Folder,
    name: String,
}

impl Control {
    /// Starts accepting requests.
    ///
    /// # Errors
    /// When the socket can't be made.
    pub fn open(asks: Sender<FlightEvent>) -> Result<Self> {
        let folder = tracefs::run_folder()?;
        let name = format!("{}{SUFFIX}", std::process::id());
        remove_left(&folder);
        let path = folder.path().join(&name);
        let failed = |what| RecordError::io(what, &path);
        let listener = UnixListener::bind(&path).map_err(failed("listen at"))?;
        let control = Self { folder, name };
        let mode = Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, mode).map_err(failed("protect"))?;
        // After confinement the thread can't ask for this any more.
        let user = geteuid();
        thread::Builder::new()
            .name("flight-control".to_owned())
            .spawn(move || {
                Confined::Listener.enter();
                for stream in listener.incoming() {
                    match stream {
                        // A client that does not read its answer gets none.
                        Ok(stream) => drop(serve(stream, user, &asks)),
                        Err(_) => thread::sleep(Duration::from_millis(100)),
                    }
                }
            })
            .map_err(failed("start a thread for"))?;
        Ok(control)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = self.folder.remove(&self.name);
    }
}

/// Removes stale sockets of killed recorders.
fn remove_left(folder: &Folder) {
    for name in folder.names().unwrap_or_default() {
        let connects = || UnixStream::connect(folder.path().join(&name));
        let is_refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        if name.ends_with(SUFFIX) && connects().err().is_some_and(is_refused) {
            // A stale socket is harmless.
            let _ = folder.remove(&name);
        }
    }
}

/// Serves one client: root, or the recorder's own user.
fn serve(mut stream: UnixStream, user: Uid, asks: &Sender<FlightEvent>) -> io::Result<()> {
    let peer = socket_peercred(&stream)?.uid;
    if !peer.is_root() && peer != user {
        return Ok(());
    }
    let answer = match read_line(&mut stream).map(|line| serde_json::from_slice::<Request>(&line)) {
        Ok(Ok(Request { dump })) => {
            let (reply, replied) = mpsc::channel();
            let trigger = trigger_now(TriggerKind::Command, dump);
            let result = asks.send(FlightEvent::Dump(Ask { trigger, reply: Some(reply) }));
            let answer = result.ok().and_then(|()| replied.recv_timeout(DUMPS_WITHIN).ok());
            answer.unwrap_or_else(|| answer_of(Err("the recorder is stopping")))
        }
        Ok(Err(error)) => answer_of(Err(&format!("invalid request: {error}"))),
        Err(error) => answer_of(Err(&format!("no request arrived: {error}"))),
    };
    stream.set_write_timeout(Some(WITHIN))?;
    stream.write_all(&(serde_json::to_vec(&answer)?))?;
    stream.write_all(b"\n")
}

/// Reads a line, with limits on its total time and size.
fn read_line(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let until = Instant::now() + WITHIN;
    let mut line = Vec::new();
    let mut part = [0; 1024];
    while !line.ends_with(b"\n") {
        let remaining = until.saturating_duration_since(Instant::now());
        if remaining.is_zero() || line.len() as u64 > MAX_BYTES {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(remaining))?;
        match stream.read(&mut part)? {
            0 => break,
            read => line.extend_from_slice(part.get(..read).unwrap_or_default()),
        }
    }
    Ok(line)
}

/// Running flight recorders, by process id, with their sockets: this user's, or everybody's for root.
///
/// # Errors
/// When this user may not read the folder.
pub fn running() -> Result<Vec<(u32, PathBuf)>> {
    let folder = tracefs::run_folder()?;
    let names = folder.names().map_err(RecordError::io("read", folder.path()))?;
    let mut sockets: Vec<PathBuf> = names.iter().map(|name| folder.path().join(name)).collect();
    if geteuid().is_root() {
        let others =
            tracefs::run_folders_of_others().into_iter().filter_map(|at| at.read_dir().ok());
        sockets.extend(others.flatten().flatten().map(|entry| entry.path()));
    }
    let recorder_at = |path: PathBuf| {
        let pid = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?.parse().ok()?;
        // Nobody answers on the socket of a killed recorder.
        UnixStream::connect(&path).is_ok().then_some((pid, path))
    };
    let mut running: Vec<(u32, PathBuf)> = sockets.into_iter().filter_map(recorder_at).collect();
    running.sort();
    Ok(running)
}

/// Requests a dump from the recorder at a socket, and waits for it.
///
/// # Errors
/// When the recorder does not answer.
pub fn ask(socket: &Path, why: Option<&str>) -> Result<DumpReply> {
    let failed = || RecordError::io("contact the flight recorder at", socket);
    let exchange = || {
        let mut stream = UnixStream::connect(socket)?;
        let request = Request { dump: why.map(str::to_owned) };
        stream.write_all(&[&serde_json::to_vec(&request)?, b"\n".as_slice()].concat())?;
        stream.set_read_timeout(Some(DUMPS_WITHIN))?;
        let mut answer = Vec::new();
        (&mut stream).take(MAX_BYTES).read_to_end(&mut answer)?;
        Ok(serde_json::from_slice::<DumpReply>(&answer)?)
    };
    exchange().map_err(failed())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a client's request; returns what the recorder received and what the client received.
    fn exchange(request: &[u8]) -> (Option<Option<String>>, Option<DumpReply>) {
        let (mut client, server) = UnixStream::pair().unwrap();
        let (asks, inbox) = mpsc::channel();
        let recorder = thread::spawn(move || {
            let Ok(FlightEvent::Dump(ask)) = inbox.recv() else { return None };
            ask.reply.unwrap().send(answer_of(Err("the disk is full"))).unwrap();
            assert_eq!(ask.trigger.kind, TriggerKind::Command);
            Some(ask.trigger.text)
        });
        client.write_all(request).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let served = thread::spawn(move || serve(server, geteuid(), &asks));
        let mut answer = Vec::new();
        // The unread rest of an oversized request resets the connection.
        let read = client.read_to_end(&mut answer);
        served.join().unwrap().unwrap();
        let answer = read.ok().map(|_| serde_json::from_slice(&answer).unwrap());
        (recorder.join().unwrap(), answer)
    }

    #[test]
    fn who_asks_is_answered() {
        let (why, answer) = exchange(b"{\"dump\":\"slow\"}\n");
        assert_eq!(why, Some(Some("slow".to_owned())));
        assert_eq!(answer.unwrap().error.as_deref(), Some("the disk is full"));
    }

    #[test]
    fn what_is_no_request_reaches_nobody() {
        let long = [b"{\"dump\":\"".as_slice(), &[b'x'; 40 << 10]].concat();
        for request in [b"".as_slice(), b"{}x\n", b"{\"other\":1}\n", &long] {
            let (why, answer) = exchange(request);
            assert!(why.is_none() && answer.is_none_or(|answer| answer.error.is_some()));
        }
    }
}
