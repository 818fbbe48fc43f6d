//! What a client gets: a status, a few headers that keep browsers from more than showing it, and bytes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::connection::Connection;

#[derive(Debug)]
pub struct Answer {
    /// Of HTTP.
    pub status: u16,
    /// What the bytes are.
    pub content_type: &'static str,
    /// The bytes.
    pub body: Body,
}

/// The bytes of an answer.
#[derive(Debug)]
pub enum Body {
    /// In memory.
    Bytes(Vec<u8>),
    /// A number of bytes from the beginning of a file.
    File(Arc<File>, u64),
}

impl Body {
    fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, len) => *len,
        }
    }
}

/// Bytes that are sent at once.
const PIECE_BYTES: usize = 64 << 10;

/// What a client may have sent beyond its request, and how long that is waited for: a connection closed before
/// that was read would be reset, and the answer lost with it.
const MAX_LEFT_BYTES: usize = 64 << 10;
const LEFT_WITHIN: Duration = Duration::from_millis(500);

impl Answer {
    /// Text for programs.
    #[must_use]
    pub fn json(text: Vec<u8>) -> Self {
        Self { status: 200, content_type: "application/json", body: Body::Bytes(text) }
    }

    #[must_use]
    pub fn sentence(status: u16, words: &str) -> Self {
        let body = Body::Bytes(format!("{words}\n").into_bytes());
        Self { status, content_type: "text/plain; charset=utf-8", body }
    }

    pub(crate) fn head(&self) -> Vec<u8> {
        let name = match self.status {
            200 => "OK",
            400 => "Bad Request",
            401 => "Unauthorized",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            415 => "Unsupported Media Type",
            413 => "Content Too Large",
            421 => "Misdirected Request",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            _ => "Internal Server Error",
        };
        let more = match self.status {
            401 => "WWW-Authenticate: Bearer\r\n",
            405 => "Allow: GET\r\n",
            _ => "",
        };
        format!(
            "HTTP/1.1 {} {name}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
             X-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\n{more}\r\n",
            self.status,
            self.content_type,
            self.body.len()
        )
        .into_bytes()
    }

    pub(crate) fn write(&self, stream: &mut Connection, until: Instant) -> io::Result<()> {
        write_until(stream, &self.head(), until)?;
        match &self.body {
            Body::Bytes(bytes) => write_until(stream, bytes, until)?,
            Body::File(file, len) => {
                let mut piece = vec![0u8; PIECE_BYTES];
                let mut at = 0;
                while at < *len {
                    let max = usize::try_from(len - at).unwrap_or(usize::MAX).min(PIECE_BYTES);
                    let piece = piece.get_mut(..max).unwrap_or_default();
                    file.read_exact_at(piece, at)?;
                    write_until(stream, piece, until)?;
                    at += max as u64;
                }
            }
        }
        stream.close()?;
        read_rest(stream)
    }
}

fn write_until(stream: &mut Connection, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    stream.end_by(until);
    while !bytes.is_empty() {
        let most = bytes.get(..PIECE_BYTES).unwrap_or(bytes);
        match stream.write(most) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    stream.flush()
}

fn read_rest(stream: &mut Connection) -> io::Result<()> {
    stream.end_by(Instant::now() + LEFT_WITHIN);
    let mut piece = [0u8; 4096];
    let mut read = 0;
    while read < MAX_LEFT_BYTES {
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            more => read += more,
        }
    }
    Ok(())
}
