//! Parses and prints channel addresses of the command line.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The default port of vsock and TCP. trace-cmd's agent uses 823.
pub const PORT: u32 = 8823;

/// The text is not an address of this form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a channel: {usage}")]
pub struct AddressError {
    text: String,
    usage: &'static str,
}

/// Files with a side's identity and its trusted peers; see `hyperscope keys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFiles {
    /// A certificate and its key.
    pub identity: PathBuf,
    /// Certificates of the other side.
    pub peers: PathBuf,
}

/// The default folder of keys.
const IDENTITY: &str = "/etc/hyperscope/identity.pem";
const PEERS: &str = "/etc/hyperscope/peers.pem";

impl KeyFiles {
    /// The default files.
    #[must_use]
    pub fn usual() -> Self {
        Self { identity: IDENTITY.into(), peers: PEERS.into() }
    }

    /// Whether both files exist.
    #[must_use]
    pub fn are_there(&self) -> bool {
        self.identity.exists() && self.peers.exists()
    }

    /// Splits `HOST:PORT` from the file options after it.
    fn split_tcp(text: &str) -> Option<(String, Self)> {
        Self::split(text).filter(|(place, _)| place.contains(':'))
    }

    /// Splits an address from the file options after it.
    fn split(text: &str) -> Option<(String, Self)> {
        let mut parts = text.split(',');
        let place = parts.next()?;
        let mut keys = Self::usual();
        for part in parts {
            match part.split_once('=')? {
                ("identity", file) => keys.identity = file.into(),
                ("peers", file) => keys.peers = file.into(),
                _ => return None,
            }
        }
        Some((place.to_owned(), keys))
    }
}

impl fmt::Display for KeyFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ",identity={},peers={}", self.identity.display(), self.peers.display())
    }
}

/// How the host reaches a guest's agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAddress {
    /// `vsock:CID[:PORT]`: the agent listens there.
    Vsock {
        /// The guest's CID.
        cid: u32,
        port: u32,
    },
    /// `tls-vsock:CID[:PORT][,identity=FILE][,peers=FILE]`: vsock with TLS.
    TlsVsock {
        /// The guest's CID.
        cid: u32,
        port: u32,
        /// This side's identity, and the peers that it trusts.
        keys: KeyFiles,
    },
    /// `tcp-plain:HOST:PORT`, unencrypted.
    Tcp {
        /// Host and port.
        to: String,
    },
    /// `tls:HOST:PORT[,identity=FILE][,peers=FILE]`.
    Tls {
        /// Host and port.
        to: String,
        /// This side's identity, and the peers that it trusts.
        keys: KeyFiles,
    },
    /// `virtio-serial:FOLDER`: sockets named after the ports.
    VirtioSerial {
        /// The folder with `hyperscope.control` and `hyperscope.cpuN`.
        folder: PathBuf,
    },
    /// `shm:FILE`: memory of the guest's ivshmem device.
    SharedMemory {
        /// The file that backs the device.
        path: PathBuf,
    },
    /// `unix:PATH`: an agent of this machine listens there.
    Unix {
        /// The socket.
        path: PathBuf,
    },
}

/// Where a guest's agent listens for its host, or connects to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentAddress {
    /// `vsock[:PORT]`: listens for the host.
    Vsock { port: u32 },
    /// `tls-vsock[:PORT][,identity=FILE][,peers=FILE]`: listens for a host that authenticates.
    TlsVsock {
        port: u32,
        /// This side's identity, and the peers that it trusts.
        keys: KeyFiles,
    },
    /// `tcp-plain:ADDRESS:PORT`: listens for any peer, unencrypted.
    Tcp {
        /// Address and port.
        at: String,
    },
    /// `tls:ADDRESS:PORT[,identity=FILE][,peers=FILE]`: listens for trusted peers.
    Tls {
        /// Address and port.
        at: String,
        /// This side's identity, and the peers that it trusts.
        keys: KeyFiles,
    },
    /// `shm[:PCI-ADDRESS]`: an ivshmem device; `shm:/FILE` if the machine is its own guest.
    SharedMemory {
        /// The PCI address; `None`: the first device.
        at: Option<String>,
    },
    /// `virtio-serial`: the ports whose names begin with `hyperscope.`.
    VirtioSerial,
    /// `unix:PATH`: listens on a socket of this machine, to record one machine as if it were two.
    Unix {
        /// The socket.
        path: PathBuf,
    },
    /// `connect:vsock[:PORT]`, `connect:tls-vsock[:PORT]`, `connect:tls:HOST:PORT`: the host listens
    /// (`hyperscope listen`).
    Connect(HostAddress),
}

const HOST_USAGE: &str = "use shm:FILE, virtio-serial:FOLDER, vsock:CID[:PORT], tls-vsock:CID[:PORT], tls:HOST:PORT, tcp-plain:HOST:PORT or unix:PATH";
const GUEST_USAGE: &str = "use shm[:DEVICE], virtio-serial, vsock[:PORT], tls-vsock[:PORT], \
                           tls:ADDRESS:PORT, tcp-plain:ADDRESS:PORT, unix:PATH, \
                           connect:vsock[:PORT], connect:tls-vsock[:PORT] or connect:tls:HOST:PORT";

const PLAIN_USAGE: &str =
    "tcp is not encrypted; write tls:HOST:PORT, or tcp-plain:HOST:PORT to accept that";

impl HostAddress {
    /// Whether several hosts, or several programs of one host, may connect at the same time.
    #[must_use]
    pub fn takes_several(&self) -> bool {
        match self {
            Self::Vsock { .. }
            | Self::TlsVsock { .. }
            | Self::Tcp { .. }
            | Self::Tls { .. }
            | Self::Unix { .. } => true,
            Self::VirtioSerial { .. } | Self::SharedMemory { .. } => false,
        }
    }
}

impl FromStr for HostAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let usage = if text.starts_with("tcp:") { PLAIN_USAGE } else { HOST_USAGE };
        let error = || AddressError { text: text.to_owned(), usage };
        let (kind, rest) = text.split_once(':').ok_or_else(error)?;
        if rest.is_empty() {
            return Err(error());
        }
        match kind {
            "vsock" => {
                let (cid, port) = cid_and_port(rest).ok_or_else(error)?;
                Ok(Self::Vsock { cid, port })
            }
            "tls-vsock" => {
                let (place, keys) = KeyFiles::split(rest).ok_or_else(error)?;
                let (cid, port) = cid_and_port(&place).ok_or_else(error)?;
                Ok(Self::TlsVsock { cid, port, keys })
            }
            "tcp-plain" if rest.contains(':') => Ok(Self::Tcp { to: rest.to_owned() }),
            "tls" => {
                let (to, keys) = KeyFiles::split_tcp(rest).ok_or_else(error)?;
                Ok(Self::Tls { to, keys })
            }
            "virtio-serial" => Ok(Self::VirtioSerial { folder: rest.into() }),
            "shm" => Ok(Self::SharedMemory { path: rest.into() }),
            "unix" => Ok(Self::Unix { path: rest.into() }),
            _ => Err(error()),
        }
    }
}

impl FromStr for AgentAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let is_plain = text.starts_with("tcp:") || text.starts_with("connect:tcp:");
        let usage = if is_plain { PLAIN_USAGE } else { GUEST_USAGE };
        let error = || AddressError { text: text.to_owned(), usage };
        if let Some(rest) = text.strip_prefix("tls-vsock") {
            let (port, keys) = port_and_keys(rest).ok_or_else(error)?;
            return Ok(Self::TlsVsock { port, keys });
        }
        if let Some(rest) = text.strip_prefix("connect:tls-vsock") {
            let (port, keys) = port_and_keys(rest).ok_or_else(error)?;
            let cid = sys::vsock::CID_HOST;
            return Ok(Self::Connect(HostAddress::TlsVsock { cid, port, keys }));
        }
        let (kind, rest) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
        match (kind, rest) {
            ("vsock", port) => Ok(Self::Vsock { port: port_or_usual(port).ok_or_else(error)? }),
            ("shm", None) => Ok(Self::SharedMemory { at: None }),
            ("shm", Some(at)) if !at.is_empty() => {
                Ok(Self::SharedMemory { at: Some(at.to_owned()) })
            }
            ("virtio-serial", None) => Ok(Self::VirtioSerial),
            ("tcp-plain", Some(at)) if at.contains(':') => Ok(Self::Tcp { at: at.to_owned() }),
            ("tls", Some(rest)) => {
                let (at, keys) = KeyFiles::split_tcp(rest).ok_or_else(error)?;
                Ok(Self::Tls { at, keys })
            }
            ("unix", Some(path)) if !path.is_empty() => Ok(Self::Unix { path: path.into() }),
            ("connect", Some("vsock")) => Ok(Self::Connect(to_host(PORT))),
            ("connect", Some(to)) => match to.strip_prefix("vsock:") {
                Some(port) => Ok(Self::Connect(to_host(port.parse().map_err(|_| error())?))),
                None if to.starts_with("tcp-plain:") || to.starts_with("tls:") => {
                    Ok(Self::Connect(to.parse().map_err(|_| error())?))
                }
                None => Err(error()),
            },
            _ => Err(error()),
        }
    }
}

fn to_host(port: u32) -> HostAddress {
    HostAddress::Vsock { cid: sys::vsock::CID_HOST, port }
}

/// `CID[:PORT]`.
fn cid_and_port(text: &str) -> Option<(u32, u32)> {
    let (cid, port) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
    Some((cid.parse().ok()?, port_or_usual(port)?))
}

/// `[:PORT][,identity=FILE][,peers=FILE]`.
fn port_and_keys(text: &str) -> Option<(u32, KeyFiles)> {
    let (place, keys) = KeyFiles::split(text)?;
    let port = if place.is_empty() { None } else { Some(place.strip_prefix(':')?) };
    Some((port_or_usual(port)?, keys))
}

fn port_or_usual(port: Option<&str>) -> Option<u32> {
    port.map_or(Some(PORT), |port| port.parse().ok())
}

impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vsock { cid, port } => write!(f, "vsock:{cid}:{port}"),
            Self::TlsVsock { cid, port, keys } => write!(f, "tls-vsock:{cid}:{port}{keys}"),
            Self::Tcp { to } => write!(f, "tcp-plain:{to}"),
            Self::Tls { to, keys } => write!(f, "tls:{to}{keys}"),
            Self::VirtioSerial { folder } => write!(f, "virtio-serial:{}", folder.display()),
            Self::SharedMemory { path } => write!(f, "shm:{}", path.display()),
            Self::Unix { path } => write!(f, "unix:{}", path.display()),
        }
    }
}

impl fmt::Display for AgentAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vsock { port } => write!(f, "vsock:{port}"),
            Self::TlsVsock { port, keys } => write!(f, "tls-vsock:{port}{keys}"),
            Self::Tcp { at } => write!(f, "tcp-plain:{at}"),
            Self::Tls { at, keys } => write!(f, "tls:{at}{keys}"),
            Self::SharedMemory { at: None } => write!(f, "shm"),
            Self::SharedMemory { at: Some(at) } => write!(f, "shm:{at}"),
            Self::VirtioSerial => write!(f, "virtio-serial"),
            Self::Unix { path } => write!(f, "unix:{}", path.display()),
            Self::Connect(to) => write!(f, "connect:{to}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_meant() {
        let host = |text: &str| text.parse::<HostAddress>().map(|address| address.to_string());
        assert_eq!(host("vsock:3").unwrap(), "vsock:3:8823");
        for same in [
            "shm:/dev/shm/a",
            "vsock:3:99",
            "tls-vsock:3:99,identity=/a,peers=/b",
            "tcp-plain:[::1]:5",
            "tls:h:1,identity=/a,peers=/b",
            "virtio-serial:/run/vm,a",
            "unix:/s",
        ] {
            assert_eq!(host(same).unwrap(), same);
        }
        for wrong in [
            "",
            "vsock",
            "vsock:",
            "vsock:x",
            "vsock:3:y",
            "tls-vsock:",
            "tls-vsock:x",
            "tls-vsock:3,x=y",
            "tcp:host:1",
            "tls:host",
            "tls:h:1,x=y",
            "pigeon:1",
        ] {
            let error = host(wrong).unwrap_err().to_string();
            assert!(error.contains("tls:HOST:PORT"), "{wrong}: {error}");
        }
    }

    #[test]
    fn guests_listen_or_connect() {
        let guest = |text: &str| text.parse::<AgentAddress>().map(|address| address.to_string());
        assert_eq!(guest("vsock").unwrap(), "vsock:8823");
        assert_eq!(guest("connect:vsock").unwrap(), "connect:vsock:2:8823");
        assert_eq!(guest("connect:vsock:7").unwrap(), "connect:vsock:2:7");
        let keys = ",identity=/a,peers=/b";
        let written = guest(&format!("tls-vsock{keys}")).unwrap();
        assert_eq!(written, format!("tls-vsock:8823{keys}"));
        let written = guest(&format!("connect:tls-vsock:7{keys}")).unwrap();
        assert_eq!(written, format!("connect:tls-vsock:2:7{keys}"));
        for same in [
            "shm",
            "shm:00:05.0",
            "virtio-serial",
            "tls-vsock:7,identity=/a,peers=/b",
            "tcp-plain:0.0.0.0:5",
            "tls::5,identity=/a,peers=/b",
            "unix:/s",
            "connect:tcp-plain:h:1",
        ] {
            assert_eq!(guest(same).unwrap(), same);
        }
        for wrong in [
            "",
            "shm:",
            "vsock:",
            "virtio-serial:x",
            "unix:",
            "connect:",
            "connect:unix:/s",
            "tls-vsock:",
        ] {
            assert!(guest(wrong).is_err(), "{wrong}");
        }
    }
}
