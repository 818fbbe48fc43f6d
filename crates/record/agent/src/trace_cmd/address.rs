//! Addresses that hosts connect to: `vsock`, `vsock:PORT`, `tcp:ADDRESS:PORT`.

use channel::AgentAddress;
use channel::wire::trace_cmd::PORT;

/// Parses an address as for our own protocol, but with trace-cmd's port.
///
/// # Errors
/// When the text is not an address, or trace-cmd can't connect to it.
pub fn address(text: &str) -> Result<AgentAddress, String> {
    if text == "vsock" {
        return Ok(AgentAddress::Vsock { port: PORT });
    }
    // trace-cmd has only plain TCP.
    match text.replacen("tcp:", "tcp-plain:", 1).parse() {
        Ok(address @ (AgentAddress::Vsock { .. } | AgentAddress::Tcp { .. })) => Ok(address),
        _ => Err(format!(
            "{text:?} is not an address for trace-cmd: write vsock, vsock:PORT or tcp:ADDRESS:PORT"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_they_are_written() {
        let written = |text: &str| address(text).map(|address| address.to_string());
        assert_eq!(written("vsock").unwrap(), "vsock:823");
        assert_eq!(written("vsock:9000").unwrap(), "vsock:9000");
        assert_eq!(written("tcp:127.0.0.1:823").unwrap(), "tcp-plain:127.0.0.1:823");
        assert_eq!(written("tcp:[::1]:0").unwrap(), "tcp-plain:[::1]:0");
        for wrong in ["", "tcp", "tcp:823", "vsock:", "unix:/s", "virtio-serial", "connect:vsock"] {
            assert!(written(wrong).unwrap_err().contains("write vsock"), "{wrong}");
        }
    }
}
