//! The messages and their encoding.

use super::fields::{Fields, put_count, put_ports, put_text, put_u32};
use super::request::Request;
use super::response::Response;
use super::time_sync::TimeSync;

/// A message, named as in trace-cmd's trace-msg.c (`MSG_MAP`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// CLOSE: the recording ends.
    Close,
    /// TINIT, the first message of `trace-cmd record -N`.
    Init {
        /// CPUs whose pages will be sent.
        cpus: u32,
        page_size: u32,
        /// The sender's preferences: "tcp", "vsock".
        options: Vec<String>,
    },
    /// RINIT, the answer to TINIT: a port for each CPU.
    InitAnswer(Vec<u32>),
    /// SEND_DATA: a piece of a file.
    Data(Vec<u8>),
    /// FIN_DATA: the file is complete.
    EndOfData,
    /// NOT_SUPP: the last message was not understood.
    NotSupported,
    /// TRACE_REQ: start a recording.
    Request(Request),
    /// TRACE_RESP: parameters of the recording, and the ports of its pages.
    Response(Response),
    /// CLOSE_RESP: the recording has ended.
    CloseResponse,
    /// TIME_SYNC: a message of a time synchronisation protocol.
    TimeSync(TimeSync),
    /// TRACE_PROXY: a guest's request to record its host.
    Proxy {
        request: Request,
        /// The guest's CPUs.
        cpus: u32,
        /// Number of guests recorded with it.
        siblings: u32,
    },
    /// CONT: continue.
    Continue,
    /// An unknown command. The answer is [`Message::NotSupported`].
    Unknown(u32),
}

/// Why bytes are not a valid message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No message has this size.
    #[error(
        "a message of {bytes} bytes instead of 12 to 8192: this is not trace-cmd's protocol, version 3"
    )]
    Size {
        /// Size in the head.
        bytes: u32,
    },
    /// The fixed part is longer than the message.
    #[error("message {command} of {bytes} bytes claims a fixed part of {fixed_bytes} bytes")]
    FixedPart {
        /// The command's number.
        command: u32,
        /// Size of the fixed part in the head.
        fixed_bytes: u32,
        /// Number of bytes after the head.
        bytes: usize,
    },
    /// The content is malformed.
    #[error("message {command} lacks {what}")]
    Content {
        /// The command's number.
        command: u32,
        /// What is missing or wrong.
        what: &'static str,
    },
}

const CLOSE: u32 = 0;
const TINIT: u32 = 1;
const RINIT: u32 = 2;
const SEND_DATA: u32 = 3;
const FIN_DATA: u32 = 4;
const NOT_SUPP: u32 = 5;
const TRACE_REQ: u32 = 6;
const TRACE_RESP: u32 = 7;
const CLOSE_RESP: u32 = 8;
const TIME_SYNC: u32 = 9;
const TRACE_PROXY: u32 = 10;
const CONT: u32 = 11;

/// Size of a command's fixed part. Another version may send more bytes, which are skipped, or fewer, whose fields are 0
/// then.
pub(super) fn fixed_bytes(command: u32) -> usize {
    match command {
        TINIT => 12,
        RINIT => 4,
        TRACE_REQ => Request::FIXED_BYTES,
        TRACE_RESP => Response::FIXED_BYTES,
        TIME_SYNC => TimeSync::FIXED_BYTES,
        TRACE_PROXY => Request::FIXED_BYTES + 8,
        _ => 0,
    }
}

impl Message {
    /// The command's number, the fixed part and the rest.
    pub(super) fn parts(&self) -> (u32, Vec<u8>, Vec<u8>) {
        let (mut fixed, mut rest) = (Vec::new(), Vec::new());
        let command = match self {
            Self::Close => CLOSE,
            Self::Init { cpus, page_size, options } => {
                put_u32(*cpus, &mut fixed);
                put_u32(*page_size, &mut fixed);
                put_count(options.len(), &mut fixed);
                options.iter().for_each(|option| put_text(option, &mut rest));
                TINIT
            }
            Self::InitAnswer(ports) => {
                put_count(ports.len(), &mut fixed);
                put_ports(ports, &mut rest);
                RINIT
            }
            Self::Data(bytes) => {
                rest.extend_from_slice(bytes);
                SEND_DATA
            }
            Self::EndOfData => FIN_DATA,
            Self::NotSupported => NOT_SUPP,
            Self::Request(request) => {
                request.put(&mut fixed, &mut rest);
                TRACE_REQ
            }
            Self::Response(response) => {
                response.put(&mut fixed, &mut rest);
                TRACE_RESP
            }
            Self::CloseResponse => CLOSE_RESP,
            Self::TimeSync(sync) => {
                sync.put(&mut fixed, &mut rest);
                TIME_SYNC
            }
            Self::Proxy { request, cpus, siblings } => {
                request.put(&mut fixed, &mut rest);
                put_u32(*cpus, &mut fixed);
                put_u32(*siblings, &mut fixed);
                TRACE_PROXY
            }
            Self::Continue => CONT,
            Self::Unknown(command) => *command,
        };
        (command, fixed, rest)
    }

    /// Decodes a message; `fixed` has [`fixed_bytes`] bytes.
    pub(super) fn from_parts(command: u32, fixed: &[u8], rest: &[u8]) -> Result<Self, DecodeError> {
        let (mut fixed, rest) = (Fields::new(fixed), Fields::new(rest));
        let wrong = |what| DecodeError::Content { command, what };
        Ok(match command {
            CLOSE => Self::Close,
            TINIT => init(&mut fixed, rest).ok_or(wrong("options"))?,
            RINIT => {
                let mut rest = rest;
                let ports = fixed.u32().and_then(|cpus| rest.ports(cpus));
                Self::InitAnswer(ports.ok_or(wrong("a port for each CPU"))?)
            }
            SEND_DATA => Self::Data(rest.rest().to_vec()),
            FIN_DATA => Self::EndOfData,
            NOT_SUPP => Self::NotSupported,
            TRACE_REQ => Self::Request(Request::parse(&mut fixed, rest).map_err(wrong)?),
            TRACE_RESP => {
                let response = Response::parse(&mut fixed, rest);
                Self::Response(response.ok_or(wrong("a port for each CPU"))?)
            }
            CLOSE_RESP => Self::CloseResponse,
            TIME_SYNC => {
                let sync = TimeSync::parse(&mut fixed, &rest);
                Self::TimeSync(sync.ok_or(wrong("a protocol's name and a number"))?)
            }
            TRACE_PROXY => {
                let request = Request::parse(&mut fixed, rest).map_err(wrong)?;
                let numbers = fixed.u32().zip(fixed.u32());
                let (cpus, siblings) = numbers.ok_or(wrong("two numbers of CPUs and guests"))?;
                Self::Proxy { request, cpus, siblings }
            }
            CONT => Self::Continue,
            other => Self::Unknown(other),
        })
    }
}

fn init(fixed: &mut Fields<'_>, mut rest: Fields<'_>) -> Option<Message> {
    let (cpus, page_size, count) = (fixed.u32()?, fixed.u32()?, fixed.u32()?);
    // Each takes at least a byte.
    let count = usize::try_from(count).ok().filter(|&count| count <= rest.rest().len())?;
    let options = (0..count).map(|_| rest.text()).collect::<Option<_>>()?;
    Some(Message::Init { cpus, page_size, options })
}
