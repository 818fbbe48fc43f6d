//! Answers calls to a store that come from another process.

use std::io::{self, Read, Write};

use bytes::Bytes;

use super::messages::{Call, Kind, MAX_LISTED, Reply, read, write};
use super::{Before, Objects};
use crate::storage::Entry;

/// Answers calls until the other end closes; without a store, each reply is the reason. An object whose bytes end early
/// is not put.
///
/// # Errors
/// When a call can't be read, or its reply can't be written.
pub fn serve(
    objects: io::Result<impl Objects>,
    mut calls: impl Read,
    mut replies: impl Write,
) -> io::Result<()> {
    while let Some(call) = read(&mut calls)? {
        let objects = match &objects {
            Ok(objects) => objects,
            Err(error) => {
                let remaining = if let Call::Put { bytes, .. } = call { bytes } else { 0 };
                skip(&mut calls.by_ref().take(remaining))?;
                write(&mut replies, &failed(error))?;
                replies.flush()?;
                continue;
            }
        };
        match call {
            Call::Put { name, bytes, before } => {
                let reply = put(objects, &name, bytes, &before, &mut calls)?;
                write(&mut replies, &reply)?;
            }
            Call::List { folder } => list(objects.list(&folder), &mut replies)?,
            Call::Read { file, from, bytes } => {
                let read = objects.read(&file, from, bytes);
                send_bytes(read.map(|bytes| vec![bytes]), &mut replies)?;
            }
            Call::ReadWhole { files } => send_bytes(objects.read_whole(&files), &mut replies)?,
            Call::Remove { names } => {
                let removed = objects.remove(&names).map(|()| None);
                write(&mut replies, &done(removed))?;
            }
        }
        replies.flush()?;
    }
    Ok(())
}

fn failed(error: &io::Error) -> Reply {
    Reply::Failed { kind: Kind::from_error(error), why: error.to_string() }
}

fn done(result: io::Result<Option<String>>) -> Reply {
    result.map_or_else(|error| failed(&error), |version| Reply::Done { version })
}

/// Reads the object's bytes to their end even if the put fails: the next call follows them.
fn put(
    objects: &impl Objects,
    name: &str,
    bytes: u64,
    before: &Before,
    calls: &mut impl Read,
) -> io::Result<Reply> {
    let mut body = calls.take(bytes);
    let put = objects.put(name, bytes, &mut body, before);
    skip(&mut body)?;
    Ok(done(put))
}

/// Skips the rest of an object's bytes.
fn skip(body: &mut io::Take<impl Read>) -> io::Result<()> {
    io::copy(body, &mut io::sink())?;
    match body.limit() {
        0 => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn list(listed: io::Result<Vec<Entry>>, replies: &mut impl Write) -> io::Result<()> {
    let files = match listed {
        Err(error) => return write(replies, &failed(&error)),
        Ok(files) => files,
    };
    let mut parts = files.chunks(MAX_LISTED).peekable();
    if parts.peek().is_none() {
        return write(replies, &Reply::Listed { files: Vec::new(), is_last: true });
    }
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        write(replies, &Reply::Listed { files: part.to_vec(), is_last })?;
    }
    Ok(())
}

fn send_bytes(read: io::Result<Vec<Bytes>>, replies: &mut impl Write) -> io::Result<()> {
    match read {
        Err(error) => write(replies, &failed(&error)),
        Ok(all) => {
            let lengths = all.iter().map(|bytes| bytes.len() as u64).collect();
            write(replies, &Reply::Bytes { lengths })?;
            all.iter().try_for_each(|bytes| replies.write_all(bytes))
        }
    }
}
