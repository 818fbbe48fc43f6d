//! Random session numbers: over some channels, a peer that knows the number may receive the guest's pages, or fake
//! some.

use std::io;

/// A random number, unique among sessions.
///
/// # Errors
/// When the kernel has no random numbers.
pub fn session_number() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    // An agent without a session uses 0.
    Ok(u64::from_ne_bytes(bytes).max(1))
}
