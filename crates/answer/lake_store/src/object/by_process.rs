//! Calls a store through a process that has its client.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use parking_lot::Mutex;

use super::messages::{Call, Reply, bytes, read, write};
use super::{Before, Objects};
use crate::storage::Entry;

/// Max objects of a lake, and of one call.
const MAX_LISTED: usize = 1 << 22;
/// Max bytes of one reply.
const MAX_BYTES: u64 = 128 << 20;

/// A process that answers calls; dropping this ends it.
pub struct ObjectsByProcess {
    ends: Mutex<Ends>,
    process: Option<Child>,
}

struct Ends {
    /// `None`: closed.
    calls: Option<Box<dyn Write + Send>>,
    replies: Box<dyn Read + Send>,
}

impl std::fmt::Debug for ObjectsByProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectsByProcess").field("process", &self.process).finish_non_exhaustive()
    }
}

impl ObjectsByProcess {
    /// Starts the process.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (calls, replies) = (process.stdin.take(), process.stdout.take());
        let closed = || io::Error::other("the process has no pipes");
        let mut objects = Self::over(calls.ok_or_else(closed)?, replies.ok_or_else(closed)?);
        objects.process = Some(process);
        Ok(objects)
    }

    /// Connects through pipes to a process that [serves](super::serve).
    #[must_use]
    pub fn over(calls: impl Write + Send + 'static, replies: impl Read + Send + 'static) -> Self {
        let calls: Box<dyn Write + Send> = Box::new(BufWriter::new(calls));
        let replies = Box::new(BufReader::new(replies));
        Self { ends: Mutex::new(Ends { calls: Some(calls), replies }), process: None }
    }

    /// Makes one call at a time and reads its reply. After a transport error all calls fail: a late reply would be
    /// taken for that of the next call.
    fn call<T>(
        &self,
        call: &Call,
        (body, bytes): (&mut dyn Read, u64),
        answer: impl FnOnce(&mut dyn Read) -> io::Result<io::Result<T>>,
    ) -> io::Result<T> {
        let mut ends = self.ends.lock();
        let Some(mut calls) = ends.calls.take() else { return Err(gone()) };
        let sent = write(&mut calls, call)
            .and_then(|()| io::copy(&mut body.take(bytes), &mut calls))
            .and_then(|sent| {
                if sent == bytes {
                    calls.flush()
                } else {
                    Err(io::Error::other("the file is shorter than expected"))
                }
            });
        if let Err(error) = sent {
            return Err(if is_closed(&error) { gone() } else { error });
        }
        let answered = answer(&mut ends.replies)
            .map_err(|error| if is_closed(&error) { gone() } else { error })?;
        ends.calls = Some(calls);
        answered
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof)
}

fn gone() -> io::Error {
    io::Error::other("the program that accesses the store has exited")
}

fn unexpected() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the reply does not match the request")
}

fn reply(from: &mut dyn Read) -> io::Result<Reply> {
    read(from)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn done(from: &mut dyn Read) -> io::Result<io::Result<Option<String>>> {
    match reply(from)? {
        Reply::Done { version } => Ok(Ok(version)),
        Reply::Failed { kind, why } => Ok(Err(kind.error(why))),
        Reply::Listed { .. } | Reply::Bytes { .. } => Err(unexpected()),
    }
}

fn listed(from: &mut dyn Read) -> io::Result<io::Result<Vec<Entry>>> {
    let mut all = Vec::new();
    loop {
        match reply(from)? {
            Reply::Listed { files, is_last } => {
                all.extend(files);
                if is_last {
                    return Ok(Ok(all));
                }
                if all.len() > MAX_LISTED {
                    return Err(io::Error::other("the lake has more files than allowed"));
                }
            }
            Reply::Failed { kind, why } => return Ok(Err(kind.error(why))),
            Reply::Done { .. } | Reply::Bytes { .. } => return Err(unexpected()),
        }
    }
}

fn several(from: &mut dyn Read, count: usize) -> io::Result<io::Result<Vec<Bytes>>> {
    let lengths = match reply(from)? {
        Reply::Bytes { lengths } if lengths.len() == count => lengths,
        Reply::Failed { kind, why } => return Ok(Err(kind.error(why))),
        _ => return Err(unexpected()),
    };
    if lengths.iter().fold(0, |sum: u64, length| sum.saturating_add(*length)) > MAX_BYTES {
        return Err(unexpected());
    }
    lengths.into_iter().map(|length| bytes(from, length)).collect::<io::Result<_>>().map(Ok)
}

impl Objects for ObjectsByProcess {
    fn put(
        &self,
        name: &str,
        bytes: u64,
        body: &mut dyn Read,
        before: &Before,
    ) -> io::Result<Option<String>> {
        let call = Call::Put { name: name.to_owned(), bytes, before: before.clone() };
        self.call(&call, (body, bytes), done)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.call(&Call::List { folder: folder.to_owned() }, (&mut io::empty(), 0), listed)
    }

    fn read(&self, file: &Entry, from: u64, bytes: u64) -> io::Result<Bytes> {
        let call = Call::Read { file: file.clone(), from, bytes };
        let mut all = self.call(&call, (&mut io::empty(), 0), |from| several(from, 1))?;
        all.pop().ok_or_else(unexpected)
    }

    fn read_whole(&self, files: &[Entry]) -> io::Result<Vec<Bytes>> {
        let call = Call::ReadWhole { files: files.to_vec() };
        self.call(&call, (&mut io::empty(), 0), |from| several(from, files.len()))
    }

    fn remove(&self, names: &[String]) -> io::Result<()> {
        // A document with 1000 names stays short.
        for names in names.chunks(1000) {
            let call = Call::Remove { names: names.to_vec() };
            self.call(&call, (&mut io::empty(), 0), done)?;
        }
        Ok(())
    }
}

impl Drop for ObjectsByProcess {
    fn drop(&mut self) {
        // The process ends when its input ends.
        self.ends.get_mut().calls = None;
        if let Some(process) = &mut self.process {
            let _ = process.wait();
        }
    }
}
