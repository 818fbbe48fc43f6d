//! The response to a client: a status, headers that restrict what browsers do with it, and a body.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::connection::Connection;

#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Media type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Body,
}

/// The body of a response.
#[derive(Debug)]
pub enum Body {
    /// In memory.
    Bytes(Vec<u8>),
    /// This many bytes from the start of a file.
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

/// Bytes per write.
const PIECE_BYTES: usize = 64 << 10;

/// Maximum unread bytes from a client after its request, and how long to wait for them: closing a
/// connection with unread data would reset it and lose the response.
const MAX_LEFT_BYTES: usize = 64 << 10;
const LEFT_WITHIN: Duration = Duration::from_millis(500);

impl Answer {
    /// A JSON response.
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
