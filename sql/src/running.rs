//! A child process that is killed when this program no longer waits for it.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;

use datafusion::error::{DataFusionError, Result};
use parking_lot::Mutex;

/// A running program.
#[derive(Debug)]
pub(crate) struct Running {
    child: Arc<Mutex<Child>>,
    input: String,
}

/// The end of a program.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) succeeded: bool,
    /// Its standard output.
    pub(crate) output: String,
    /// Its standard error.
    pub(crate) messages: String,
}

impl Running {
    /// Starts a program that reads `input`.
    ///
    /// # Errors
    /// When it can't be run.
    pub(crate) fn start(mut command: Command, input: &str) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| {
            let name = command.get_program().to_string_lossy();
            DataFusionError::External(format!("cannot run {name}: {error}").into())
        })?;
        Ok(Self { child: Arc::new(Mutex::new(child)), input: input.to_owned() })
    }

    /// Waits for its end; returns its success and its output.
    ///
    /// # Errors
    /// When its output can't be read.
    pub(crate) async fn end(&self) -> Result<Ended> {
        let (child, input) = (Arc::clone(&self.child), self.input.clone());
        let ended = tokio::task::spawn_blocking(move || ended(&child, &input));
        let ended = ended.await.map_err(|error| DataFusionError::External(error.into()))?;
        Ok(ended?)
    }
}

/// Serves all three pipes concurrently, so that neither side blocks.
fn ended(child: &Mutex<Child>, input: &str) -> io::Result<Ended> {
    let (stdin, stdout, stderr) = {
        let mut child = child.lock();
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    };
    let (output, messages) = thread::scope(|scope| {
        // A program that ends early reads no further; its exit status explains it.
        scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        let output = scope.spawn(|| text_of(stdout));
        (text_of(stderr), output.join())
    });
    let status = child.lock().wait()?;
    let (messages, output) = (output?, messages.unwrap_or_else(|_| Ok(String::new()))?);
    Ok(Ended { succeeded: status.success(), output, messages })
}

fn text_of(pipe: Option<impl Read>) -> io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.try_lock() {
            // Mostly it has ended by itself.
            let _ = child.kill();
        }
    }
}
