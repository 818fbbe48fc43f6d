//! An HTTP/1.1 server for browsers and programs: only GET, unless [`Bounds::body_bytes`] lets
//! programs post JSON; on a secret loopback address, and for other machines only over TLS with a
//! token.
//!
//! Any program on this machine can connect, and any web page can make a browser do so. So the address contains
//! a token that cannot be guessed, requests must name this server as their host (a page of another name that
//! resolves to this machine does not), a request has a deadline and a size limit of a few kilobytes, and
//! [`Bounds`] limits the number of simultaneous connections. Each connection carries one request and its
//! answer.
//!
//! Data that every user of this machine may read, such as metrics for a collector without a token,
//! has an address without a token ([`Server::open`]); the other rules apply there, too. If a
//! [`Guard`] requires a token in a header, the host name is not checked: no web page can send that
//! header.
#![forbid(unsafe_code)]

mod answer;
mod connection;
mod guard;
mod places;
mod request;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

pub use answer::{Answer, Body};
pub use guard::{Guard, Tls, Token};
pub use request::Query;

use connection::Connection;
use places::Places;
use request::{Refusal, Rules};

/// Resource limits for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum simultaneous connections; further clients wait briefly for a free place, then get an
    /// error and are closed.
    pub connections: usize,
    /// Maximum bytes of posted JSON; 0 allows only GET. Web pages cannot post JSON: browsers send a
    /// preflight request (OPTIONS), which is refused.
    pub body_bytes: usize,
    /// Time limit for the complete request, independent of how its bytes arrive.
    pub request_within: Duration,
    /// Time limit for the complete response, independent of how fast the client reads.
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

/// Random bytes of a token.
const TOKEN_BYTES: usize = 16;

/// Pause after an error of the listener itself, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    /// Token at the start of paths, if there is one; otherwise paths are names.
    path_token: Option<String>,
    guard: Guard,
    bounds: Bounds,
}

impl Server {
    /// Listens on 127.0.0.1; port 0 selects a free port.
    ///
    /// # Errors
    /// If the port is in use, or if the system provides no random bytes.
    pub fn bind(port: u16, bounds: Bounds) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, path_token: Some(token()?), guard: Guard::default(), bounds })
    }

    /// Listens for requests that satisfy `guard`; without a guard, for any program on this machine. Port 0
    /// selects a free port.
    ///
    /// # Errors
    /// If other machines could reach the address and the guard lacks TLS or a token, or if its port
    /// is in use.
    pub fn open(address: SocketAddr, guard: Guard, bounds: Bounds) -> io::Result<Self> {
        if !address.ip().is_loopback() && (guard.tls.is_none() || guard.token.is_none()) {
            let words = format!("{address} is not a loopback address: it requires TLS and a token");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, path_token: None, guard, bounds })
    }

    /// The address to open, including the token in its path, if any.
    #[must_use]
    pub fn address(&self) -> String {
        let scheme = if self.guard.tls.is_some() { "https" } else { "http" };
        match &self.path_token {
            Some(token) => format!("{scheme}://{}/{token}/", self.address),
            None => format!("{scheme}://{}/", self.address),
        }
    }

    /// Serves requests below the address until the process ends.
    pub fn serve(&self, handler: &(dyn Fn(&Query) -> Answer + Sync)) {
        let places = Places::new(self.bounds.connections);
        std::thread::scope(|scope| {
            loop {
                let Ok((stream, _)) = self.listener.accept() else {
                    std::thread::sleep(PAUSE);
                    continue;
                };
                let Some(place) = places.take() else {
                    // During a TLS handshake, a plain response would have no meaning.
                    if self.guard.tls.is_none() {
                        refuse_at_once(stream);
                    }
                    continue;
                };
                // If no thread can be started, the place becomes free and the connection is closed.
                let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
                    // The client has disconnected or was too slow: an error cannot be reported to
                    // it.
                    let _ = self.serve_connection(stream, handler);
                    drop(place);
                });
            }
        });
    }

    fn rules(&self) -> Rules<'_> {
        Rules {
            at: self.address,
            path_token: self.path_token.as_deref(),
            bearer: self.guard.token.as_ref(),
            body_bytes: self.bounds.body_bytes,
        }
    }

    fn serve_connection(
        &self,
        socket: TcpStream,
        handler: &(dyn Fn(&Query) -> Answer + Sync),
    ) -> io::Result<()> {
        let until = Instant::now() + self.bounds.request_within;
        let mut stream = Connection::new(socket, self.guard.tls.as_ref().map(|tls| &tls.0))?;
        let answer = match request::read(&mut stream, until)? {
            Ok((head, body_start)) => match head.query(&self.rules()) {
                Ok(mut query) => match request::body(&mut stream, &head, body_start, until)? {
                    Ok(body) => {
                        query.body = body;
                        handler(&query)
                    }
                    Err(refusal) => refusal.answer(),
                },
                Err(refusal) => refusal.answer(),
            },
            Err(_) if stream.is_handshaking() => return Ok(()),
            Err(refusal) => refusal.answer(),
        };
        answer.write(&mut stream, Instant::now() + self.bounds.answer_within)
    }
}

/// Refuses a client because of too many connections: the few bytes fit into the socket buffer, so
/// nothing blocks.
fn refuse_at_once(mut stream: TcpStream) {
    let _ = stream.set_nonblocking(true);
    let _ = stream.write(&Refusal::Busy.answer().head());
}

/// Random hexadecimal digits.
fn token() -> io::Result<String> {
    let mut bytes = [0u8; TOKEN_BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = bytes.get_mut(filled..).unwrap_or_default();
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
