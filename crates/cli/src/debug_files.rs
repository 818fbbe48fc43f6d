//! Debug files from servers, for verbs that name code in user space.

use std::time::{Duration, Instant};

use debuginfod::{Coming, Debuginfod, Settings, Watch};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use printable::line;

use crate::args::debug_files::DebugFilesArgs;
use command::notice::say;
use command::progress;

/// Without a terminal, shorter downloads are not reported.
const QUIET: Duration = Duration::from_secs(1);
/// Interval at which a bar moves without progress.
const TICK: Duration = Duration::from_millis(200);

/// Enables downloads of missing debug files from the servers in the environment, if there are any.
pub(crate) fn fetch(args: DebugFilesArgs) {
    if args.no_debuginfod {
        return;
    }
    match Settings::of_environment() {
        Ok(None) => {}
        Ok(Some(settings)) => {
            let client = Debuginfod::new(settings, Box::new(Shown::default()));
            symbols::fetch_by(Box::new(client));
        }
        Err(why) => say(&why.to_string()),
    }
}

/// Shows downloads: as a bar on a terminal, otherwise in a line each.
#[derive(Default)]
struct Shown {
    download: Option<One>,
}

/// A download.
struct One {
    start: Instant,
    bar: ProgressBar,
    /// Whether it was reported.
    is_said: bool,
}

impl One {
    fn new(file: &Coming<'_>) -> Self {
        let bar = ProgressBar::hidden();
        let template = "{spinner} debug file of {msg}: {bytes}, {elapsed}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(format!("{} from {}", line(file.name), file.server));
        let is_said = progress::show(&bar);
        if is_said {
            bar.enable_steady_tick(TICK);
        }
        Self { start: Instant::now(), bar, is_said }
    }
}

impl Watch for Shown {
    fn coming(&mut self, file: &Coming<'_>) {
        let download = self.download.get_or_insert_with(|| One::new(file));
        download.bar.set_position(file.bytes);
        if !download.is_said && download.start.elapsed() >= QUIET {
            download.is_said = true;
            let Coming { name, server, total, .. } = file;
            let size = total.map(|total| format!(" ({})", HumanBytes(total))).unwrap_or_default();
            say(&format!("fetching the debug file of {name}{size} from {server}"));
        }
    }

    fn over(&mut self) {
        if let Some(download) = self.download.take() {
            download.bar.finish_and_clear();
        }
    }

    fn warn(&mut self, text: &str) {
        progress::aside(|| say(&format!("debuginfod: {text}")));
    }
}
