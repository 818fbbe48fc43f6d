//! A progress bar on the terminal for runs that last.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar over a number of bytes; nothing is drawn in the first second, nor without a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    begun: std::time::Instant,
}

/// Runs shorter than this show no bar.
const QUIET: Duration = Duration::from_secs(1);

impl Progress {
    /// A bar up to `bytes`.
    pub(crate) fn new(bytes: u64) -> Self {
        // Drawn to standard error, and by itself only where that is a terminal.
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
        let template =
            "{bar:30} {percent:>3}%  {bytes} of {total_bytes}  {bytes_per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, begun: std::time::Instant::now() }
    }

    /// This number of bytes more is done.
    pub(crate) fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
        if self.bar.is_hidden() && self.begun.elapsed() > QUIET {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
