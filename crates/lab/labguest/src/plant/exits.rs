//! Instructions that make a guest exit, in batches.

use std::io;

#[cfg(target_arch = "x86_64")]
use labguest_ports::read_port;
use serde_json::Value;

use super::options::PlantOptions;
use super::pace::Pace;
use crate::exits::make_asked;

/// Exits of one kind. `port` reads the port `number`, which must be one that reading does not change.
pub(super) fn storm(kind: &str, options: &mut PlantOptions) -> io::Result<Value> {
    #[cfg(target_arch = "x86_64")]
    if kind == "port" {
        return read_port(options);
    }
    Pace::read(options)?.run(|batch| make_asked(&format!("{kind}={batch}")).map(drop))
}

#[cfg(target_arch = "x86_64")]
mod labguest_ports {
    use std::io;

    use serde_json::Value;
    use sys::guest_instructions::PortReader;

    use super::super::options::PlantOptions;
    use super::super::pace::Pace;

    /// The status port of the keyboard's controller.
    const KEYBOARD: u64 = 0x64;

    pub(super) fn read_port(options: &mut PlantOptions) -> io::Result<Value> {
        let number = options.number("number", KEYBOARD);
        let number = u16::try_from(number).map_err(io::Error::other)?;
        let port = PortReader::acquire(number)?;
        Pace::read(options)?.run(|batch| {
            let _ = port.read_loop(batch);
            Ok(())
        })
    }
}
