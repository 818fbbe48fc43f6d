//! The peer of a connection, as identified by the kernel or a certificate.

use std::fmt;
use std::net::IpAddr;

/// The peer of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// A machine of this hypervisor, by its vsock CID: 2 is the host.
    Vsock(u32),
    /// An unauthenticated peer, by its IP address. Over TLS, a peer before the end of its handshake.
    Tcp(IpAddr),
    /// A holder of the certificate's private key.
    Tls(Fingerprint),
    /// A process of this machine.
    Unix,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vsock(cid) => write!(f, "vsock:{cid}"),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
            Self::Tls(fingerprint) => write!(f, "tls:sha256:{fingerprint}"),
            Self::Unix => write!(f, "unix"),
        }
    }
}

impl Peer {
    /// The peer whose share of places a connection takes. An IPv6 network (/64) counts as one peer: a user of one
    /// address there has 2^64 of them.
    #[must_use]
    pub fn party(&self) -> Self {
        match self {
            Self::Tcp(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
                Some(address) => Self::Tcp(address.into()),
                None => Self::Tcp(IpAddr::V6((address.to_bits() >> 64 << 64).into())),
            },
            other => other.clone(),
        }
    }
}

/// SHA-256 of a certificate, as `openssl x509 -fingerprint -sha256` shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// Its first 8 bytes in hexadecimal, for names.
    #[must_use]
    pub fn short(&self) -> String {
        self.0.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_is_one_party() {
        let party = |text: &str| Peer::Tcp(text.parse().unwrap()).party();
        assert_eq!(party("2001:db8::1"), party("2001:db8::ffff:0:0:2"));
        assert_ne!(party("2001:db8::1"), party("2001:db8:0:1::1"));
        assert_eq!(party("::ffff:10.0.0.1"), party("10.0.0.1"));
        assert_ne!(party("10.0.0.1"), party("10.0.0.2"));
    }

    #[test]
    fn a_fingerprint_is_written_as_others_write_it() {
        let print = Fingerprint([0xab; 32]);
        assert_eq!(print.short(), "ab".repeat(8));
        assert_eq!(Peer::Tls(print).to_string(), format!("tls:sha256:{}", "ab".repeat(32)));
    }
}
