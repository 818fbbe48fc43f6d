//! Progress bars on the terminal for long runs.

use std::sync::LazyLock;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use session::Session;

/// The visible bars, one below the other; none without a terminal.
static SHOWN: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Shows a bar; returns whether there is a terminal.
pub fn show(bar: &ProgressBar) -> bool {
    if SHOWN.is_hidden() {
        return false;
    }
    SHOWN.add(bar.clone());
    true
}

/// Runs a function that writes to standard error, with the bars hidden.
pub fn aside(write: impl FnOnce()) {
    SHOWN.suspend(write);
}

/// A bar that counts bytes; hidden in the first second, and without a terminal.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    start: std::time::Instant,
}

/// Runs shorter than this show no bar.
const QUIET: Duration = Duration::from_secs(1);

impl Progress {
    /// A bar up to `bytes`.
    pub fn new(bytes: u64) -> Self {
        // Drawn to standard error, and only if it is a terminal.
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
        let template =
            "{bar:30} {percent:>3}%  {bytes} of {total_bytes}  {bytes_per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, start: std::time::Instant::now() }
    }

    /// Advances by this number of bytes.
    pub fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
        if self.bar.is_hidden() && self.start.elapsed() > QUIET {
            show(&self.bar);
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Reads a session `passes` times with a bar over its bytes.
pub fn reading<T>(
    session: &Session,
    passes: u64,
    read: impl FnOnce(&(dyn Fn(u64) + Sync)) -> T,
) -> T {
    let progress = Progress::new(session.view().stored_len().saturating_mul(passes));
    let read = read(&|bytes| progress.advance(bytes));
    progress.finish();
    read
}
