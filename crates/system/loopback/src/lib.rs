//! Answers browsers of this machine: HTTP/1.1 on the loopback address, to those who know the address: GET alone,
//! unless [`Bounds::body_bytes`] lets programs post JSON.
//!
//! Whoever runs a program on this machine can connect, and any web page can make a browser do so. So the address
//! has a token that can't be guessed, requests must name this server as their host (a page of another name that was
//! resolved to this machine does not), a request has a deadline as a whole and a few kilobytes, and no more
//! connections are served at once than [`Bounds`] allows. Every connection has one request and its answer.
//!
//! What any user of this machine may know, such as metrics for a collector that can't learn a token, has an
//! address without one ([`Loopback::open`]); all else holds there, too.
#![forbid(unsafe_code)]

mod answer;
mod request;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub use answer::{Answer, Body};
pub use request::Query;

use request::Refusal;

/// What clients may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections at once; each of more gets that as an answer and is closed.
    pub connections: usize,
    /// Bytes of JSON that may be posted; 0: only GET is answered. A page in a browser can't post it: browsers ask
    /// before (OPTIONS), and are refused.
    pub body_bytes: usize,
    /// Time for a request as a whole, however its bytes trickle in.
    pub request_within: Duration,
    /// Time for an answer as a whole, however slowly it is taken.
    pub answer_within: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 16,
            body_bytes: 0,
            request_within: Duration::from_secs(5),
            answer_within: Duration::from_secs(60),
        }
    }
}

/// Bytes of randomness in a token.
const TOKEN_BYTES: usize = 16;

/// After an error of the listener itself, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// A server that listens.
#[derive(Debug)]
pub struct Loopback {
    listener: TcpListener,
    address: SocketAddr,
    /// None: whoever connects may ask.
    token: Option<String>,
    bounds: Bounds,
}

impl Loopback {
    /// Listens on 127.0.0.1; port 0 is any that is free.
    ///
    /// # Errors
    /// When the port is taken, or the system has no randomness.
    pub fn bind(port: u16, bounds: Bounds) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, token: Some(token()?), bounds })
    }

    /// Listens where whoever runs a program on this machine may ask, without a token; port 0 is any that is free.
    ///
    /// # Errors
    /// When the address is not one of this machine alone, or its port is taken.
    pub fn open(address: SocketAddr, bounds: Bounds) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{address} is not a loopback address"),
            ));
        }
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, token: None, bounds })
    }

    /// The address to open, with its token if it has one.
    #[must_use]
    pub fn address(&self) -> String {
        match &self.token {
            Some(token) => format!("http://{}/{token}/", self.address),
            None => format!("http://{}/", self.address),
        }
    }

    /// Answers requests for what lies below the address, for as long as the process runs.
    pub fn serve(&self, handler: &(dyn Fn(&Query) -> Answer + Sync)) {
        let open = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            loop {
                let Ok((stream, _)) = self.listener.accept() else {
                    std::thread::sleep(PAUSE);
                    continue;
                };
                if open.fetch_add(1, Ordering::AcqRel) >= self.bounds.connections {
                    refuse_at_once(stream);
                    open.fetch_sub(1, Ordering::AcqRel);
                    continue;
                }
                let open = &open;
                let served = std::thread::Builder::new().spawn_scoped(scope, move || {
                    // The client has gone, or was too slow: nobody is left to hear of it.
                    let _ = self.one(stream, handler);
                    open.fetch_sub(1, Ordering::AcqRel);
                });
                if served.is_err() {
                    open.fetch_sub(1, Ordering::AcqRel);
                }
            }
        });
    }

    fn one(
        &self,
        mut stream: TcpStream,
        handler: &(dyn Fn(&Query) -> Answer + Sync),
    ) -> io::Result<()> {
        let until = Instant::now() + self.bounds.request_within;
        let answer = match request::read(&mut stream, until)? {
            Ok((head, begun)) => {
                let asked = head.query(self.address, self.token.as_deref(), self.bounds.body_bytes);
                match asked {
                    Ok(mut query) => match request::body(&mut stream, &head, begun, until)? {
                        Ok(body) => {
                            query.body = body;
                            handler(&query)
                        }
                        Err(refusal) => refusal.answer(),
                    },
                    Err(refusal) => refusal.answer(),
                }
            }
            Err(refusal) => refusal.answer(),
        };
        answer.write(&mut stream, Instant::now() + self.bounds.answer_within)
    }
}

/// Too many are served: a few bytes that fit into what the system buffers, without waiting for anything.
fn refuse_at_once(mut stream: TcpStream) {
    let _ = stream.set_nonblocking(true);
    let _ = stream.write(&Refusal::Busy.answer().head());
}

/// Hexadecimal digits that nobody guesses.
fn token() -> io::Result<String> {
    let mut bytes = [0u8; TOKEN_BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = bytes.get_mut(filled..).unwrap_or_default();
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
