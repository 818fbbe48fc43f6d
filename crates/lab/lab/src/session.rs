//! A session with a machine's command server: runs commands, copies files, reaches guests.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use labguest::wire::{Ended, Exec, FrameError, MAX_PAYLOAD_BYTES, Message, Put};
use parking_lot::Mutex;

use crate::cache::Lock;
use crate::channel::{Channel, Patience, Watched};
use crate::error::{LabError, Result};

/// A session with one machine.
pub struct Session {
    level: u8,
    reader: Box<dyn Read + Send>,
    writer: Arc<Mutex<Box<dyn Write + Send>>>,
    patience: Patience,
    watched: Watched,
    lock: Option<Lock>,
}

/// Receivers of a command's output.
pub struct Outputs<'a> {
    /// Gets its standard output as it arrives.
    pub stdout: &'a mut dyn FnMut(&[u8]),
    /// Gets its standard error as it arrives.
    pub stderr: &'a mut dyn FnMut(&[u8]),
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Session").field("level", &self.level).finish_non_exhaustive()
    }
}

impl fmt::Debug for Outputs<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Outputs").finish_non_exhaustive()
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Input").finish_non_exhaustive()
    }
}

/// Sends input and signals to the command of a session, from any thread.
#[derive(Clone)]
pub struct Input {
    writer: Arc<Mutex<Box<dyn Write + Send>>>,
}

/// Output of a finished command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandOutput {
    pub ended: Ended,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

/// Max time for an answer that needs no work.
const ANSWER: Duration = Duration::from_secs(20);
/// Max time for a recorder to begin or end: in an emulated nested guest, it sets and resets filters for minutes.
const EDGE: Duration = Duration::from_secs(300);

impl Session {
    /// Opens a session over a channel; a booting machine answers when it is up.
    pub(crate) fn open(level: u8, mut channel: Channel, wait: Duration) -> Result<Self> {
        channel.patience.set(Some(wait));
        let number = session_number();
        labguest::wire::write(&mut channel.writer, &Message::Open(number))
            .map_err(|error| LabError::Channel { level, source: error.into() })?;
        labguest::wire::skip_to_opened(&mut channel.reader, number)
            .map_err(|source| LabError::of_channel(level, source))?;
        channel.patience.set(None);
        Ok(Self {
            level,
            reader: channel.reader,
            writer: Arc::new(Mutex::new(channel.writer)),
            patience: channel.patience,
            watched: channel.watched,
            lock: channel.lock,
        })
    }

    /// The machine's level.
    #[must_use]
    pub fn level(&self) -> u8 {
        self.level
    }

    /// A handle for input and signals.
    #[must_use]
    pub fn input(&self) -> Input {
        Input { writer: Arc::clone(&self.writer) }
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// When it can't be started, or the machine does not answer.
    pub fn exec(&mut self, exec: &Exec, outputs: &mut Outputs<'_>) -> Result<Ended> {
        self.start(exec)?;
        self.follow(outputs)
    }

    /// Follows the started command to its end.
    ///
    /// # Errors
    /// As [`Session::attend`].
    pub fn follow(&mut self, outputs: &mut Outputs<'_>) -> Result<Ended> {
        loop {
            if let Some(ended) = self.attend(outputs)? {
                return Ok(ended);
            }
        }
    }

    /// Starts a command; [`Session::attend`] follows it to its end.
    ///
    /// # Errors
    /// When the channel fails.
    pub fn start(&mut self, exec: &Exec) -> Result<()> {
        // The server enforces the timeout; this one is for a server that is gone.
        self.patience.set(exec.timeout_ms.map(|ms| Duration::from_millis(ms) + ANSWER));
        self.send(&Message::Exec(exec.clone()))
    }

    /// Limits the time for the started recorder to begin or end: a machine that hangs never reports it.
    pub(crate) fn limit(&self) {
        self.patience.set(Some(EDGE));
    }

    pub(crate) fn unlimit(&self) {
        self.patience.set(None);
    }

    /// Handles the next output of the started command; returns its end, if that is it.
    ///
    /// # Errors
    /// When it could not be started, or the machine does not answer.
    pub fn attend(&mut self, outputs: &mut Outputs<'_>) -> Result<Option<Ended>> {
        match self.receive()? {
            Message::Stdout(bytes) => (outputs.stdout)(&bytes),
            Message::Stderr(bytes) => (outputs.stderr)(&bytes),
            Message::Ended(ended) => {
                self.patience.set(None);
                return Ok(Some(ended));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Runs a command and returns its output.
    ///
    /// # Errors
    /// As [`Session::exec`].
    pub fn output(&mut self, exec: &Exec) -> Result<CommandOutput> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut outputs = Outputs {
            stdout: &mut |bytes| stdout.extend_from_slice(bytes),
            stderr: &mut |bytes| stderr.extend_from_slice(bytes),
        };
        let ended = self.exec(exec, &mut outputs)?;
        Ok(CommandOutput { ended, stdout, stderr })
    }

    /// Runs a command that must succeed; returns its standard output.
    ///
    /// # Errors
    /// As [`Session::exec`], and when the command fails.
    pub fn check(&mut self, argv: &[&str], timeout: Duration) -> Result<String> {
        let output = self.output(&command(argv, timeout))?;
        if output.ended == Ended::Exit(0) {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let text =
            format!("`{}` ended with {:?}: {}", argv.join(" "), output.ended, text.trim_end());
        Err(LabError::Refused { level: self.level, text })
    }

    /// Writes a file from a reader.
    ///
    /// # Errors
    /// When reading or writing fails.
    pub fn put(&mut self, put: &Put, from: &mut impl Read) -> Result<()> {
        self.patience.set(Some(ANSWER));
        self.send(&Message::Put(put.clone()))?;
        let mut buffer = vec![0; MAX_PAYLOAD_BYTES];
        loop {
            let read = from.read(&mut buffer).map_err(|error| self.local(&error))?;
            let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
            self.patience.set(Some(ANSWER));
            self.send(&Message::Data(bytes.to_vec()))?;
        }
        self.send(&Message::End)?;
        self.receive().map(|_| self.patience.set(None))
    }

    /// Reads a file into a writer.
    ///
    /// # Errors
    /// When reading or writing fails.
    pub fn get(&mut self, path: &str, to: &mut impl Write) -> Result<()> {
        self.send(&Message::Get(path.to_owned()))?;
        let mut result = Ok(());
        loop {
            self.patience.set(Some(ANSWER));
            match self.receive()? {
                Message::Data(bytes) => result = result.and_then(|()| to.write_all(&bytes)),
                Message::End => break,
                _ => {}
            }
        }
        self.patience.set(None);
        result.map_err(|error| self.local(&error))
    }

    /// Turns the session into a stream to a Unix socket of its machine.
    pub(crate) fn connect(mut self, path: &str) -> Result<Channel> {
        self.patience.set(Some(ANSWER));
        self.send(&Message::Connect(path.to_owned()))?;
        while self.receive()? != Message::Connected {}
        let level = self.level;
        let writer = Arc::into_inner(self.writer)
            .ok_or_else(|| LabError::Refused { level, text: "the session is in use".into() })?;
        let writer = writer.into_inner();
        let Self { reader, patience, watched, lock, .. } = self;
        Ok(Channel::through(Channel { reader, writer, patience, watched, lock }))
    }

    fn send(&self, message: &Message) -> Result<()> {
        send(&self.writer, message).map_err(|error| self.broken(error.into()))
    }

    fn receive(&mut self) -> Result<Message> {
        match labguest::wire::read(&mut self.reader) {
            Ok(Message::Failed(text)) => Err(LabError::Refused { level: self.level, text }),
            // The server assumed that this client had left, and greets the next one.
            Ok(Message::Ready(_)) => Err(self.broken(FrameError::Closed)),
            Ok(message) => Ok(message),
            Err(source) => Err(self.broken(source)),
        }
    }

    fn broken(&self, source: FrameError) -> LabError {
        LabError::of_channel(self.level, source)
    }

    fn local(&self, error: &std::io::Error) -> LabError {
        LabError::Refused { level: self.level, text: format!("the file on this side: {error}") }
    }
}

impl Input {
    /// Sends bytes to the command's standard input.
    ///
    /// # Errors
    /// When the channel fails.
    pub fn bytes(&self, bytes: &[u8]) -> std::io::Result<()> {
        let mut parts = bytes.chunks(MAX_PAYLOAD_BYTES);
        parts.try_for_each(|part| send(&self.writer, &Message::Data(part.to_vec())))
    }

    /// Ends the command's standard input.
    ///
    /// # Errors
    /// When the channel fails.
    pub fn end(&self) -> std::io::Result<()> {
        send(&self.writer, &Message::End)
    }

    /// Sends the command a signal.
    ///
    /// # Errors
    /// When the channel fails.
    pub fn signal(&self, number: i32) -> std::io::Result<()> {
        send(&self.writer, &Message::Signal(number))
    }
}

/// A command without input.
pub(crate) fn command(argv: &[&str], timeout: Duration) -> Exec {
    Exec {
        argv: argv.iter().map(|&word| word.to_owned()).collect(),
        env: std::collections::BTreeMap::new(),
        stdin: false,
        timeout_ms: Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        detach_to: None,
    }
}

fn send(writer: &Mutex<Box<dyn Write + Send>>, message: &Message) -> std::io::Result<()> {
    let mut writer = writer.lock();
    labguest::wire::write(&mut *writer, message)
}

/// A number that no other session on the same port has had.
fn session_number() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let pid = u64::from(std::process::id());
    (now as u64) ^ (pid << 40) ^ COUNT.fetch_add(1, Ordering::Relaxed)
}
