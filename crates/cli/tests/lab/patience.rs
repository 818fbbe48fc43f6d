//! Runs commands that may hang, as their machines do, with timeouts, so that no test hangs.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::tool::Ran;

/// Timeout of a command; the longest one boots machines inside machines, each with its own timeout.
const MOST: Duration = Duration::from_secs(1500);
/// Timeout for a program to end on request, and for its output to arrive.
const SHORT: Duration = Duration::from_secs(15);
/// Interval of checks whether it has ended.
const LOOK: Duration = Duration::from_millis(10);

/// A running command, with its output.
pub(crate) struct Patient {
    command_line: String,
    child: Child,
    stdout: Option<Said>,
    stderr: Option<Said>,
}

/// The output from a pipe.
struct Said {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

/// Runs a command to its end.
pub(crate) fn run(command: Command) -> Ran {
    Patient::start(command).finish(MOST)
}

impl Patient {
    /// Starts a command whose output is captured.
    pub(crate) fn start(mut command: Command) -> Self {
        let all = std::iter::once(command.get_program()).chain(command.get_args());
        let command_line = all.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self::new(child, command_line)
    }

    /// A child that was started with or without pipes.
    pub(crate) fn new(mut child: Child, command_line: String) -> Self {
        let stdout = child.stdout.take().map(Said::from);
        let stderr = child.stderr.take().map(Said::from);
        Self { command_line, child, stdout, stderr }
    }

    /// Waits for its end; after the timeout ends it, and fails with its output so far.
    pub(crate) fn finish(mut self, patience: Duration) -> Ran {
        let ended = self.end_within(patience);
        let [stdout, stderr] = [self.stdout, self.stderr].map(Said::text);
        let Some(ended) = ended else {
            panic!(
                "`{}` was ended after {patience:?}; by then: {stdout}{stderr}",
                self.command_line
            );
        };
        Ran { code: ended.code(), stdout, stderr }
    }

    /// Waits for its end; after the timeout ends it and returns `None`.
    pub(crate) fn end_within(&mut self, patience: Duration) -> Option<ExitStatus> {
        let ended = self.ended_within(patience);
        if ended.is_none() {
            // A termination signal also makes it end the machines that it started. An interrupt would
            // not: background processes of a shell, and their children, ignore it.
            let pid = self.child.id().to_string();
            let _ = Command::new("kill").args(["-TERM", &pid]).status();
            if self.ended_within(SHORT).is_none() {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
        ended
    }

    fn ended_within(&mut self, patience: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOK),
                other => return other.ok().flatten(),
            }
        }
    }
}

impl<P: Read + Send + 'static> From<P> for Said {
    fn from(mut pipe: P) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = pipe.read(&mut buffer) {
                to.lock().extend_from_slice(&buffer[..read]);
            }
        });
        Self { bytes, reader }
    }
}

impl Said {
    /// The complete output; incomplete if a remaining child keeps the pipe open.
    fn text(stream: Option<Self>) -> String {
        let Some(stream) = stream else { return String::new() };
        let deadline = Instant::now() + SHORT;
        while !stream.reader.is_finished() && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
        String::from_utf8_lossy(&stream.bytes.lock()).into_owned()
    }
}

#[test]
fn a_command_that_hangs_is_ended_and_reported() {
    let start = Instant::now();
    let hung = std::panic::catch_unwind(|| {
        let mut command = Command::new("sh");
        command.args(["-c", "echo so far; exec sleep 1000"]);
        Patient::start(command).finish(Duration::from_millis(500));
    });
    let message = hung.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("sleep 1000") && message.contains("so far"), "{message}");
    assert!(start.elapsed() < SHORT);
}
