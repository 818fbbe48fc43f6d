//! Whether this process was started without a standard output.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

// Rust's runtime opens /dev/null for closed descriptors before main, which hides that they were
// closed. Functions in this section run earlier.
#[used]
// SAFETY: the section holds pointers to functions without arguments, which the loader calls; this is one.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD takes no argument and changes nothing; a closed descriptor is an error.
    if unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1 {
        IS_CLOSED.store(true, Relaxed);
    }
}

/// Whether standard output was closed when this process started: output is then lost without an
/// error.
#[must_use]
pub fn standard_output_was_closed() -> bool {
    IS_CLOSED.load(Relaxed)
}
