//! QEMU's monitor (QMP): stop, continue, save, load, quit.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::channel::Channel;
use crate::error::{LabError, Result};

/// A connection to a monitor.
pub(crate) struct Monitor {
    channel: Channel,
    /// Bytes of an incomplete line.
    rest: Vec<u8>,
}

/// Max time for an answer.
const ANSWER: Duration = Duration::from_secs(20);
/// Max time for saving and loading.
const MIGRATION: Duration = Duration::from_secs(120);

impl Monitor {
    /// Negotiates capabilities.
    pub(crate) fn open(channel: Channel) -> Result<Self> {
        let mut monitor = Self { channel, rest: Vec::new() };
        monitor.channel.patience.set(Some(ANSWER));
        monitor.line()?;
        monitor.ask("qmp_capabilities", &json!({}))?;
        Ok(monitor)
    }

    /// Stops the machine's CPUs.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.ask("stop", &json!({})).map(drop)
    }

    /// Resumes the machine's CPUs.
    pub(crate) fn go_on(&mut self) -> Result<()> {
        self.ask("cont", &json!({})).map(drop)
    }

    /// Whether the machine runs.
    pub(crate) fn is_running(&mut self) -> Result<bool> {
        let answer = self.ask("query-status", &json!({}))?;
        Ok(answer.get("status").and_then(Value::as_str) == Some("running"))
    }

    /// Ends QEMU.
    pub(crate) fn quit(&mut self) -> Result<()> {
        self.ask("quit", &json!({})).map(drop)
    }

    /// Saves the state of a stopped machine, without its memory, which is in a file already.
    pub(crate) fn save(&mut self, path: &str) -> Result<()> {
        self.keep_memory()?;
        self.ask("migrate", &json!({ "uri": format!("exec:cat > {}", quoted(path)) }))?;
        self.until("query-migrate", "completed", "failed")
    }

    /// Loads a state into a machine that waits for it.
    pub(crate) fn load(&mut self, path: &str) -> Result<()> {
        self.keep_memory()?;
        self.ask("migrate-incoming", &json!({ "uri": format!("exec:cat {}", quoted(path)) }))?;
        self.until("query-status", "paused", "internal-error")
    }

    /// Runs a QEMU command; returns the answer.
    pub(crate) fn command(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        self.ask(command, arguments)
    }

    fn keep_memory(&mut self) -> Result<()> {
        let on = json!({ "capabilities": [{ "capability": "x-ignore-shared", "state": true }] });
        self.ask("migrate-set-capabilities", &on).map(drop)
    }

    fn until(&mut self, question: &str, wanted: &str, failed: &str) -> Result<()> {
        let deadline = Instant::now() + MIGRATION;
        loop {
            let answer = self.ask(question, &json!({}))?;
            match answer.get("status").and_then(Value::as_str) {
                Some(status) if status == wanted => return Ok(()),
                Some(status) if status == failed => {
                    return Err(LabError::Monitor(answer.to_string()));
                }
                _ if Instant::now() > deadline => {
                    return Err(LabError::Monitor(format!(
                        "expected {wanted} within {MIGRATION:?}, got: {answer}"
                    )));
                }
                _ => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    fn ask(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        let mut text = json!({ "execute": command, "arguments": arguments }).to_string();
        text.push('\n');
        self.channel.patience.set(Some(ANSWER));
        self.channel.writer.write_all(text.as_bytes()).map_err(|error| failed(&error))?;
        loop {
            let mut answer = self.line()?;
            if let Some(result) = answer.get_mut("return") {
                return Ok(result.take());
            }
            if let Some(error) = answer.get("error") {
                return Err(LabError::Monitor(format!("{command}: {error}")));
            }
            // Skips events.
        }
    }

    fn line(&mut self) -> Result<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return serde_json::from_slice(&line)
                    .map_err(|error| LabError::Monitor(error.to_string()));
            }
            let mut buffer = [0; 4096];
            let read = self.channel.reader.read(&mut buffer).map_err(|error| failed(&error))?;
            if read == 0 {
                return Err(LabError::Monitor("QEMU has ended".into()));
            }
            self.rest.extend_from_slice(buffer.get(..read).unwrap_or_default());
        }
    }
}

fn failed(error: &std::io::Error) -> LabError {
    LabError::Monitor(error.to_string())
}

/// Quotes a path for the shell that QEMU runs.
fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}
