//! Protects an address that other machines can reach: TLS, and a token in each request.

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

/// Minimum length of a token in characters: 128 bits in hexadecimal, which cannot be guessed.
const MIN_TOKEN: usize = 32;
/// Maximum bytes of a file with a token, a key or certificates.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The credentials that clients need, and the encryption.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// The token in the request header `Authorization: Bearer TOKEN`.
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
    /// Reads the token from the first line of a regular file that belongs to this user or root and
    /// that other users cannot read.
    ///
    /// # Errors
    /// If the file cannot be read, if others can read it, if another user owns it, or if the token
    /// is too short.
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
    /// Reads certificates (the server's own first) and their key, both PEM.
    ///
    /// # Errors
    /// If a file cannot be read, if others can read the key, or if the key does not match the
    /// certificate.
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

/// Compares in a time that is independent of the first difference.
pub(crate) fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// Reads a file that belongs to this user or root and that other users cannot read.
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

/// Opens a regular file: opening a pipe could block forever.
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
