//! The messages of a session.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A message, in either direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Client: begin a session; ends the requests of an earlier one on this port.
    Open(u64),
    /// Server: the answer to the `Open` with this number.
    Opened(u64),
    /// Sent by the server without a request, once the other end of the port is open.
    Ready(Ready),
    /// Client: run a command.
    Exec(Exec),
    /// Client: write a file; its bytes follow as `Data`, then `End`.
    Put(Put),
    /// Client: send the file at this path as `Data`, then `End`.
    Get(String),
    /// Client: from now on this session is a plain byte stream to the Unix socket at this path.
    Connect(String),
    /// Server: that stream is open.
    Connected,
    /// Bytes of a file, or of a command's standard input.
    Data(Vec<u8>),
    /// No more `Data` comes.
    End,
    /// Client: send this signal to the command.
    Signal(i32),
    /// Server: bytes of a command's standard output.
    Stdout(Vec<u8>),
    /// Server: bytes of a command's standard error.
    Stderr(Vec<u8>),
    /// Server: the command has ended.
    Ended(Ended),
    /// Server: the request failed, with the reason.
    Failed(String),
}

/// A server's description of its machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The machine's level in the lab: 1 is the host inside the lab.
    pub level: u8,
    /// Time since the kernel's start.
    pub uptime_ns: u64,
}

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Added to the machine's own environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Whether `Data` for its standard input follows; otherwise its input is empty.
    #[serde(default)]
    pub stdin: bool,
    /// Kills the command and all its processes after this time.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Run it beyond the session: both outputs go to this file, and `Ended` is sent at once.
    #[serde(default)]
    pub detach_to: Option<String>,
}

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Put {
    /// Its path; missing folders are made.
    pub path: String,
    /// Permissions, as in chmod.
    pub mode: u32,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// By itself, with this status.
    Exit(i32),
    Signal(i32),
    /// It exceeded its timeout, and was killed.
    TimedOut,
    /// It runs in the background, with this process id.
    Detached(u32),
}

/// The configuration that init reads from the machine's initramfs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestConfig {
    /// The machine's level in the lab.
    pub level: u8,
    /// Kernel modules in load order: paths of files in the initramfs.
    pub modules: Vec<String>,
    /// Whether it hosts a guest, and loads modules for hosts.
    pub hosts: bool,
    /// Modules of machines that host a guest, in load order.
    pub for_hosts: Vec<String>,
    /// Alternative modules for hosts: the first that loads is enough (kvm_amd, kvm_intel).
    pub one_of: Vec<String>,
}
