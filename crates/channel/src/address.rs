//! Channels as they are written on command lines.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The port of vsock and TCP, when none is given. trace-cmd's agent has 823.
pub const PORT: u32 = 8823;

/// What a text is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no channel: {usage}")]
pub struct AddressError {
    text: String,
    usage: &'static str,
}

/// Where the host finds a guest's agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAddress {
    /// `vsock:CID[:PORT]`: the agent listens there.
    Vsock {
        /// The guest.
        cid: u32,
        /// The port.
        port: u32,
    },
    /// `tcp:HOST:PORT`, not encrypted.
    Tcp {
        /// Host and port.
        to: String,
    },
    /// `virtio-serial:FOLDER`: the sockets of ports, named after them.
    VirtioSerial {
        /// The folder with `hyperscope.control` and `hyperscope.cpuN`.
        folder: PathBuf,
    },
    /// `shm:FILE`: memory that the guest has as an ivshmem device.
    SharedMemory {
        /// The file behind the device.
        path: PathBuf,
    },
    /// `unix:PATH`: an agent of this machine listens there.
    Unix {
        /// The socket.
        path: PathBuf,
    },
}

/// Where a guest's agent waits for its host, or finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuestAddress {
    /// `vsock[:PORT]`: listen to the host.
    Vsock {
        /// The port.
        port: u32,
    },
    /// `tcp:ADDRESS:PORT`: listen there, not encrypted.
    Tcp {
        /// Address and port.
        at: String,
    },
    /// `shm[:PCI-ADDRESS]`: an ivshmem device; `shm:/FILE`, where the machine is its own guest.
    SharedMemory {
        /// Which; unset: the first.
        at: Option<String>,
    },
    /// `virtio-serial`: the ports whose names begin with `hyperscope.`.
    VirtioSerial,
    /// `unix:PATH`: listen there; for whoever records one machine as if it were two.
    Unix {
        /// The socket.
        path: PathBuf,
    },
    /// `connect:vsock[:PORT]` or `connect:tcp:HOST:PORT`: the host listens (`hyperscope listen`).
    Connect(HostAddress),
}

const HOST_USAGE: &str = "shm:FILE, virtio-serial:FOLDER, vsock:CID[:PORT], tcp:HOST:PORT and \
                          unix:PATH are";
const GUEST_USAGE: &str = "shm[:DEVICE], virtio-serial, vsock[:PORT], tcp:ADDRESS:PORT, unix:PATH, \
                           connect:vsock[:PORT] and connect:tcp:HOST:PORT are";

impl FromStr for HostAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = || AddressError { text: text.to_owned(), usage: HOST_USAGE };
        let (kind, rest) = text.split_once(':').ok_or_else(error)?;
        if rest.is_empty() {
            return Err(error());
        }
        match kind {
            "vsock" => {
                let (cid, port) = rest.split_once(':').map_or((rest, None), |(a, b)| (a, Some(b)));
                let cid = cid.parse().map_err(|_| error())?;
                Ok(Self::Vsock { cid, port: port_or_usual(port).ok_or_else(error)? })
            }
            "tcp" if rest.contains(':') => Ok(Self::Tcp { to: rest.to_owned() }),
            "virtio-serial" => Ok(Self::VirtioSerial { folder: rest.into() }),
            "shm" => Ok(Self::SharedMemory { path: rest.into() }),
            "unix" => Ok(Self::Unix { path: rest.into() }),
            _ => Err(error()),
        }
    }
}

impl FromStr for GuestAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = || AddressError { text: text.to_owned(), usage: GUEST_USAGE };
        let (kind, rest) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
        match (kind, rest) {
            ("vsock", port) => Ok(Self::Vsock { port: port_or_usual(port).ok_or_else(error)? }),
            ("shm", None) => Ok(Self::SharedMemory { at: None }),
            ("shm", Some(at)) if !at.is_empty() => {
                Ok(Self::SharedMemory { at: Some(at.to_owned()) })
            }
            ("virtio-serial", None) => Ok(Self::VirtioSerial),
            ("tcp", Some(at)) if at.contains(':') => Ok(Self::Tcp { at: at.to_owned() }),
            ("unix", Some(path)) if !path.is_empty() => Ok(Self::Unix { path: path.into() }),
            ("connect", Some("vsock")) => Ok(Self::Connect(to_host(PORT))),
            ("connect", Some(to)) => match to.strip_prefix("vsock:") {
                Some(port) => Ok(Self::Connect(to_host(port.parse().map_err(|_| error())?))),
                None if to.starts_with("tcp:") => {
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

fn port_or_usual(port: Option<&str>) -> Option<u32> {
    port.map_or(Some(PORT), |port| port.parse().ok())
}

impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vsock { cid, port } => write!(f, "vsock:{cid}:{port}"),
            Self::Tcp { to } => write!(f, "tcp:{to}"),
            Self::VirtioSerial { folder } => write!(f, "virtio-serial:{}", folder.display()),
            Self::SharedMemory { path } => write!(f, "shm:{}", path.display()),
            Self::Unix { path } => write!(f, "unix:{}", path.display()),
        }
    }
}

impl fmt::Display for GuestAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vsock { port } => write!(f, "vsock:{port}"),
            Self::Tcp { at } => write!(f, "tcp:{at}"),
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
        for same in
            ["shm:/dev/shm/a", "vsock:3:99", "tcp:[::1]:5", "virtio-serial:/run/vm,a", "unix:/s"]
        {
            assert_eq!(host(same).unwrap(), same);
        }
        for wrong in ["", "vsock", "vsock:", "vsock:x", "vsock:3:y", "tcp:host", "pigeon:1"] {
            let error = host(wrong).unwrap_err().to_string();
            assert!(error.contains("vsock:CID"), "{wrong}: {error}");
        }
    }

    #[test]
    fn guests_listen_or_connect() {
        let guest = |text: &str| text.parse::<GuestAddress>().map(|address| address.to_string());
        assert_eq!(guest("vsock").unwrap(), "vsock:8823");
        assert_eq!(guest("connect:vsock").unwrap(), "connect:vsock:2:8823");
        assert_eq!(guest("connect:vsock:7").unwrap(), "connect:vsock:2:7");
        for same in
            ["shm", "shm:00:05.0", "virtio-serial", "tcp:0.0.0.0:5", "unix:/s", "connect:tcp:h:1"]
        {
            assert_eq!(guest(same).unwrap(), same);
        }
        for wrong in
            ["", "shm:", "vsock:", "virtio-serial:x", "unix:", "connect:", "connect:unix:/s"]
        {
            assert!(guest(wrong).is_err(), "{wrong}");
        }
    }
}
