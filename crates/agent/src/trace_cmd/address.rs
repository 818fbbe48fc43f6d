//! Where hosts connect to: `vsock`, `vsock:PORT`, `tcp:ADDRESS:PORT`.

use channel::GuestAddress;
use wire::trace_cmd::PORT;

/// The address that a text names: as for the own protocol, but with trace-cmd's port.
///
/// # Errors
/// When it names none, or one that trace-cmd can't connect to.
pub fn address(text: &str) -> Result<GuestAddress, String> {
    if text == "vsock" {
        return Ok(GuestAddress::Vsock { port: PORT });
    }
    match text.parse() {
        Ok(address @ (GuestAddress::Vsock { .. } | GuestAddress::Tcp { .. })) => Ok(address),
        _ => Err(format!(
            "{text:?} is no address for trace-cmd: give vsock, vsock:PORT or tcp:ADDRESS:PORT"
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
        for same in ["vsock:9000", "tcp:127.0.0.1:823", "tcp:[::1]:0"] {
            assert_eq!(written(same).unwrap(), same);
        }
        for wrong in ["", "tcp", "tcp:823", "vsock:", "unix:/s", "virtio-serial", "connect:vsock"] {
            assert!(written(wrong).unwrap_err().contains("give vsock"), "{wrong}");
        }
    }
}
