//! Shows the steps of bringing a lab up: a progress bar on a terminal, otherwise a line each.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use lab::Step;
use printable::messages;

/// How often the bar is redrawn.
const TICK: Duration = Duration::from_millis(100);
/// Width of the bar in characters.
const WIDTH: usize = 24;

/// State of the display.
pub(crate) struct LabSteps {
    bar: RefCell<Option<ProgressBar>>,
    start: Instant,
}

impl LabSteps {
    /// Shows nothing yet.
    pub(crate) fn new() -> Self {
        Self { bar: RefCell::new(None), start: Instant::now() }
    }

    /// Shows a new step; the previous one is done.
    pub(crate) fn show(&self, step: &Step) {
        if !io::stderr().is_terminal() {
            let _ = writeln!(messages(), "hyperscope: {}", step.text);
            return;
        }
        let bar = ProgressBar::new_spinner().with_message(printable::line(&step.text).into_owned());
        bar.set_style(style(step.usual));
        bar.enable_steady_tick(TICK);
        if let Some(last) = self.bar.replace(Some(bar)) {
            last.finish_and_clear();
        }
    }

    /// Removes the last step; returns the total time.
    pub(crate) fn finish(&self) -> Duration {
        if let Some(last) = self.bar.take() {
            last.finish_and_clear();
        }
        self.start.elapsed()
    }
}

fn style(usual: Option<Duration>) -> ProgressStyle {
    let bar = move |state: &ProgressState, to: &mut dyn std::fmt::Write| {
        let _ = match usual {
            None => write!(to, "{:.0?}", state.elapsed()),
            Some(usual) => to.write_str(&drawn(state.elapsed(), usual)),
        };
    };
    let style = ProgressStyle::with_template("{spinner} {msg}  {share}");
    style.unwrap_or_else(|_| ProgressStyle::default_spinner()).with_key("share", bar)
}

/// A bar that is full when a step has taken its usual time.
fn drawn(elapsed: Duration, usual: Duration) -> String {
    let share = elapsed.as_secs_f64() / usual.as_secs_f64().max(0.001);
    // Not negative, and at most the width.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    let full = ((share * WIDTH as f64) as usize).min(WIDTH);
    let mut text = format!("{}{}", "█".repeat(full), "░".repeat(WIDTH - full));
    let _ = write!(text, "  {:.0} s, usually {:.0} s", elapsed.as_secs_f64(), usual.as_secs_f64());
    text
}
