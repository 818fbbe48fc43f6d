//! Replaces TLS in a program that was built without it: every use returns an error.

use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use crate::stream::Stream;

/// Has no values.
#[derive(Debug)]
pub(crate) enum Keys {}

/// Has no values.
#[derive(Debug)]
pub enum Acceptor {}

impl Acceptor {
    pub(crate) fn accept(&self, _tcp: TcpStream) -> io::Result<Stream> {
        match *self {}
    }
}

/// Has no values.
pub(crate) enum ClientConfig {}

impl Keys {
    pub(crate) fn read(_identity: &Path, _peers: &Path) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this program was built without TLS"))
    }

    pub(crate) fn client(&self) -> io::Result<Arc<ClientConfig>> {
        match *self {}
    }

    pub(crate) fn server(&self) -> io::Result<Acceptor> {
        match *self {}
    }
}

pub(crate) fn connect(_tcp: TcpStream, config: Arc<ClientConfig>) -> io::Result<Stream> {
    match *config {}
}
