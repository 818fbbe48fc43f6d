//! What protects an address that more than this machine's programs reach: encryption, and a token in each request.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::process::geteuid;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Minimum length of a token in characters: 128 bits in hexadecimal digits, which cannot be guessed.
const MIN_TOKEN: usize = 32;
/// Bytes of a file with a token, a key or certificates.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What a client must know, and how it speaks.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// The token that requests have in their header `Authorization: Bearer TOKEN`.
    pub token: Option<Token>,
    /// The server's side of TLS.
    pub tls: Option<Tls>,
}

/// A secret that each request must contain.
#[derive(Clone)]
pub struct Token(String);

/// Certificates and their key, for TLS 1.2 and 1.3.
#[derive(Clone, Debug)]
pub struct Tls(pub(crate) Arc<ServerConfig>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// The first line of a regular file that belongs to this user or root and that other users
    /// cannot read.
    ///
    /// # Errors
    /// When it can't be read, others can read it, it is another user's, or what it has is short enough to be guessed.
    pub fn read(path: &Path) -> io::Result<Self> {
        let bytes = secret(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let token = text.lines().next().unwrap_or_default().trim();
        let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
        if token.len() < MIN_TOKEN || !is_plain {
            return Err(invalid(format!(
                "{} has no token: it needs one line of at least {MIN_TOKEN} letters, digits and signs, such as \
                 the output of \"openssl rand -hex 32\"",
                path.display()
            )));
        }
        Ok(Self(token.to_owned()))
    }

    pub(crate) fn is(&self, given: &str) -> bool {
        is_same(given.as_bytes(), self.0.as_bytes())
    }
}

impl Tls {
    /// Certificates (the server's own first) and their key, both PEM.
    ///
    /// # Errors
    /// When a file can't be read, others can read the key, or the two don't belong together.
    pub fn read(certificates: &Path, key: &Path) -> io::Result<Self> {
        let missing =
            |path: &Path, what: &str| invalid(format!("{} has no {what}", path.display()));
        let text = bounded(open(certificates)?)?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        let chain = chain.map_err(|_| missing(certificates, "certificates in PEM"))?;
        if chain.is_empty() {
            return Err(missing(certificates, "certificate in PEM"));
        }
        let secret = PrivateKeyDer::from_pem_slice(&secret(key)?);
        let secret = secret.map_err(|_| missing(key, "private key in PEM"))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(|why| {
                let (certificates, key) = (certificates.display(), key.display());
                invalid(format!("{certificates} and {key} are not a valid server certificate with its key: {why}"))
            })?;
        Ok(Self(Arc::new(config)))
    }
}

/// In a time that does not depend on where they differ.
pub(crate) fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// A file that belongs to this user or root and that other users cannot read.
fn secret(path: &Path) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let metadata = file.metadata()?;
    let (owner, path) = (metadata.uid(), path.display());
    if owner != 0 && owner != geteuid().as_raw() {
        return Err(invalid(format!(
            "{path} belongs to user {owner}, who can read and change it: chown root {path}"
        )));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(invalid(format!(
            "other users of this machine can access {path}: chmod go= {path}"
        )));
    }
    bounded(file)
}

/// Opens a regular file: a pipe would be waited for without end.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = file.map_err(|why| at(path, &why))?;
    if !file.metadata()?.is_file() {
        return Err(invalid(format!("{} is not a regular file", path.display())));
    }
    Ok(file)
}

fn bounded(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn at(path: &Path, why: &io::Error) -> io::Error {
    io::Error::new(why.kind(), format!("cannot read {}: {why}", path.display()))
}

fn invalid(words: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, words)
}
