//! Commands for the monitor (QMP) of a VM's QEMU, from the machine that hosts it.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::measure::nanoseconds;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// `SOCKET JSON…` has each command done once, and prints the answers; with `ms=N` after the socket they are repeated for that long,
/// and how often that was is printed.
pub(crate) fn run(mut arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let usage = || io::Error::new(io::ErrorKind::InvalidInput, "SOCKET [ms=N] COMMAND…");
    let mut monitor = Monitor::connect(&arguments.next().ok_or_else(usage)?)?;
    let mut commands: Vec<String> = arguments.collect();
    let first = commands.first().and_then(|word| word.strip_prefix("ms="));
    let Some(time) = first.and_then(|ms| ms.parse().ok()).map(Duration::from_millis) else {
        for command in &commands {
            println!("{}", monitor.ask(command)?);
        }
        return Ok(());
    };
    commands.remove(0);
    let (start, mut count) = (Instant::now(), 0_u64);
    while start.elapsed() < time {
        for command in &commands {
            monitor.ask(command)?;
            count += 1;
        }
    }
    println!("{}", json!({ "count": count, "took_ns": nanoseconds(start.elapsed()) }));
    Ok(())
}

struct Monitor {
    answers: BufReader<UnixStream>,
    commands: UnixStream,
}

impl Monitor {
    fn connect(socket: &str) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut monitor = Self { answers: BufReader::new(stream.try_clone()?), commands: stream };
        // It greets first.
        monitor.answer("QMP")?;
        monitor.ask(r#"{"execute":"qmp_capabilities"}"#)?;
        Ok(monitor)
    }

    /// Has a command done; what it returns.
    fn ask(&mut self, command: &str) -> io::Result<Value> {
        self.commands.write_all(format!("{command}\n").as_bytes())?;
        self.answer("return")
    }

    /// The next answer with such a key; events pass by.
    fn answer(&mut self, key: &str) -> io::Result<Value> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.answers.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut answer: Value = serde_json::from_str(&line)?;
            if let Some(error) = answer.get("error") {
                return Err(io::Error::other(error.to_string()));
            }
            if let Some(value) = answer.get_mut(key) {
                return Ok(value.take());
            }
        }
    }
}
