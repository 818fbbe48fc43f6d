//! Extra permissions that the guest's owner gives the host.

use std::io;

use channel::{AgentAddress, HostAddress, KeyFiles};

/// Permissions; none unless the agent's command line has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Any user of the host may command the agent over vsock. Earlier versions of the host need it.
    pub unprivileged_port: bool,
    /// The host may set its own probes, whose arguments can read any memory of this kernel.
    pub kprobes: bool,
}

/// Refuses vsock without TLS on a machine that has keys, because its owner wants them used.
///
/// # Errors
/// The address to use instead.
pub(crate) fn check_keys_are_used(address: &AgentAddress, keys: &KeyFiles) -> io::Result<()> {
    let instead = match address {
        AgentAddress::Vsock { port } => format!("tls-vsock:{port}"),
        AgentAddress::Connect(HostAddress::Vsock { port, .. }) => {
            format!("connect:tls-vsock:{port}")
        }
        _ => return Ok(()),
    };
    if !keys.are_there() {
        return Ok(());
    }
    let KeyFiles { identity, peers } = keys;
    let (identity, peers) = (identity.display(), peers.display());
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "this machine has keys ({identity} and {peers}), so it refuses vsock without them; use {instead}, or move the keys away"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_machine_with_keys_refuses_vsock_without_them() {
        let folder = std::env::temp_dir().join(format!("hyperscope-keys-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let keys =
            KeyFiles { identity: folder.join("identity.pem"), peers: folder.join("peers.pem") };
        let refusal = |address: &str| {
            let checked = check_keys_are_used(&address.parse().unwrap(), &keys);
            checked.map_err(|error| error.to_string()).err()
        };
        assert_eq!(refusal("vsock"), None);
        fs::write(&keys.identity, "").unwrap();
        assert_eq!(refusal("vsock"), None);
        fs::write(&keys.peers, "").unwrap();
        assert!(refusal("vsock:7").unwrap().contains("use tls-vsock:7"));
        assert!(refusal("connect:vsock:7").unwrap().contains("use connect:tls-vsock:7"));
        for other in ["tls-vsock", "connect:tls-vsock", "shm", "virtio-serial", "unix:/s"] {
            assert_eq!(refusal(other), None, "{other}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
