//! Random numbers of sessions: over some channels, a peer that knows one may receive the pages of
//! its guest, or make some up.

use std::io;

/// A number that no other session has.
///
/// # Errors
/// When the kernel has no random numbers.
pub fn session_number() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    // 0 is what an agent says before it has a number.
    Ok(u64::from_ne_bytes(bytes).max(1))
}
