//! TLS for TCP and vsock: each side shows its certificate and accepts only the pinned certificates of the other side.
//! There are no names and no authorities.
//!
//! A thread carries bytes between the connection and a socket pair, one end of which is the [`Stream`]: users of the
//! stream need no TLS code.

mod carry;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use os::confine::Confined;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::cipher_suite;
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, CipherSuite, ClientConfig, ClientConnection, Connection,
    DigitallySignedStruct, DistinguishedName, Error, ServerConfig, ServerConnection,
    SignatureScheme, version,
};

use crate::peer::Fingerprint;
use crate::stream::Stream;

/// Max time for the handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// The identity of one side, and the peers that it trusts.
#[derive(Debug)]
pub(crate) struct Keys {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    known: Arc<PinnedCertificates>,
}

impl Keys {
    /// Reads `identity` (a certificate and its key) and `peers` (certificates), both PEM.
    pub(crate) fn read(identity: &Path, peers: &Path) -> io::Result<Self> {
        let failed = |path: &Path, error: rustls::pki_types::pem::Error| {
            let text = format!("cannot read {}: {error:?}", path.display());
            io::Error::new(io::ErrorKind::InvalidInput, text)
        };
        let certificate =
            CertificateDer::from_pem_file(identity).map_err(|e| failed(identity, e))?;
        let key = PrivateKeyDer::from_pem_file(identity).map_err(|e| failed(identity, e))?;
        let known = CertificateDer::pem_file_iter(peers).and_then(Iterator::collect);
        let known: Vec<_> = known.map_err(|e| failed(peers, e))?;
        if known.is_empty() {
            let text = format!("{} holds no certificate", peers.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let provider = Arc::new(fastest_first(ring::default_provider(), has_aes()));
        Ok(Self {
            certificate,
            key,
            known: Arc::new(PinnedCertificates { certificates: known, provider }),
        })
    }

    /// Configuration of the connecting side.
    pub(crate) fn client(&self) -> io::Result<Arc<ClientConfig>> {
        let known = Arc::clone(&self.known);
        let config = ClientConfig::builder_with_provider(Arc::clone(&known.provider))
            .with_protocol_versions(&[&version::TLS13])
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(known)
            .with_client_auth_cert(vec![self.certificate.clone()], self.key.clone_key());
        config.map(Arc::new).map_err(io::Error::other)
    }

    /// Configuration of the listening side.
    pub(crate) fn server(&self) -> io::Result<Acceptor> {
        let known = Arc::clone(&self.known);
        let config = ServerConfig::builder_with_provider(Arc::clone(&known.provider))
            .with_protocol_versions(&[&version::TLS13])
            .map_err(io::Error::other)?
            .with_client_cert_verifier(known)
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key());
        let mut config = config.map_err(io::Error::other)?;
        config.ignore_client_order = !has_aes();
        Ok(Acceptor(Arc::new(config)))
    }
}

/// Whether this processor has AES instructions. A guest may lack them even if its host has them.
fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    let has = std::arch::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    let has = std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let has = false;
    has
}

/// Sorts the ciphers by speed: without AES instructions, AES is much slower than ChaCha20.
fn fastest_first(mut provider: CryptoProvider, has_aes: bool) -> CryptoProvider {
    let chacha20 = CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;
    if !has_aes {
        provider.cipher_suites.sort_by_key(|cipher| cipher.suite() != chacha20);
    }
    provider
}

/// A stream over a connection that this side opened; the peer is authenticated.
pub(crate) fn connect(tcp: TcpStream, config: Arc<ClientConfig>) -> io::Result<Stream> {
    // The certificates have no names, but the protocol requires one.
    let name = ServerName::try_from("hyperscope").map_err(io::Error::other)?;
    let mut connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
    let mut timed = Timed { tcp: &tcp, end: Instant::now() + HANDSHAKE };
    while connection.is_handshaking() {
        connection.complete_io(&mut timed)?;
    }
    carried(tcp, Connection::Client(connection))
}

/// A connection with one deadline for all reads and writes.
struct Timed<'a> {
    tcp: &'a TcpStream,
    end: Instant,
}

impl Timed<'_> {
    fn remaining(&self) -> io::Result<Option<Duration>> {
        let remaining = self.end.saturating_duration_since(Instant::now());
        if remaining.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(remaining)) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.tcp.set_read_timeout(self.remaining()?)?;
        self.tcp.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.tcp.set_write_timeout(self.remaining()?)?;
        self.tcp.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tcp.flush()
    }
}

/// Accepts connections.
#[derive(Debug)]
pub struct Acceptor(Arc<ServerConfig>);

impl Acceptor {
    /// A stream over an accepted connection. The handshake runs in the background, so that no peer delays others;
    /// nothing is read before the peer is authenticated.
    pub(crate) fn accept(&self, tcp: TcpStream) -> io::Result<Stream> {
        let connection = ServerConnection::new(Arc::clone(&self.0)).map_err(io::Error::other)?;
        carried(tcp, Connection::Server(connection))
    }
}

fn carried(tcp: TcpStream, connection: Connection) -> io::Result<Stream> {
    let (inside, outside) = UnixStream::pair()?;
    let shown = Arc::new(OnceLock::new());
    let to_show = Arc::clone(&shown);
    std::thread::Builder::new().name("tls".into()).spawn(move || {
        Confined::Reader.enter();
        carry::carry(&tcp, connection, &inside, &to_show);
    })?;
    Ok(Stream::new(outside)?.shown_by(shown))
}

/// SHA-256 of the peer's certificate.
fn fingerprint(connection: &Connection) -> Option<Fingerprint> {
    let suite = cipher_suite::TLS13_AES_128_GCM_SHA256.tls13()?;
    let hash = suite.common.hash_provider.hash(connection.peer_certificates()?.first()?);
    hash.as_ref().try_into().ok().map(Fingerprint)
}

/// Pinned certificates: nothing else about a certificate is checked.
#[derive(Debug)]
struct PinnedCertificates {
    certificates: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl PinnedCertificates {
    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        if self.certificates.iter().any(|known| known == shown) {
            return Ok(());
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }
}

/// Refuses TLS 1.2.
fn too_old() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::PeerIncompatible(rustls::PeerIncompatible::Tls12NotOffered))
}

impl ServerCertVerifier for PinnedCertificates {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _more: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        too_old()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for PinnedCertificates {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _more: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(shown).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        too_old()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_instructions_for_aes_chacha20_goes_first() {
        let order = |has_aes| {
            let provider = fastest_first(ring::default_provider(), has_aes);
            provider.cipher_suites.iter().map(|cipher| cipher.suite()).collect::<Vec<_>>()
        };
        let (with, without) = (order(true), order(false));
        assert_ne!(with.first(), Some(&CipherSuite::TLS13_CHACHA20_POLY1305_SHA256));
        assert_eq!(without.first(), Some(&CipherSuite::TLS13_CHACHA20_POLY1305_SHA256));
        assert!(without.len() == with.len() && with.iter().all(|suite| without.contains(suite)));
    }
}
