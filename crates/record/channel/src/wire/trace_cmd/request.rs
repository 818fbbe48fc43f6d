//! TRACE_REQ: a host's request to an agent to record.

use super::fields::{Fields, put_count, put_text, put_u32};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The host offers FIFOs for the pages; the response shows whether they are used.
    pub use_fifos: bool,
    /// Trace id of the host's own recording.
    pub trace_id: u64,
    /// Arguments of `trace-cmd record`.
    pub arguments: Vec<String>,
    /// Time synchronisation protocols that the host supports.
    pub time_sync_protocols: Vec<String>,
}

/// Flag bit of [`Request::use_fifos`], in the response as well.
pub(super) const USE_FIFOS: u32 = 1;
/// Parameter number of the arguments.
const ARGUMENTS: u32 = 0;
/// Parameter number of the protocol names.
const PROTOCOLS: u32 = 1;

impl Request {
    /// Flags, an unused number of arguments, the trace id.
    pub(super) const FIXED_BYTES: usize = 16;

    pub(super) fn put(&self, fixed: &mut Vec<u8>, rest: &mut Vec<u8>) {
        put_u32(if self.use_fifos { USE_FIFOS } else { 0 }, fixed);
        put_u32(0, fixed);
        fixed.extend_from_slice(&self.trace_id.to_be_bytes());
        if !self.arguments.is_empty() {
            let mut value = Vec::new();
            put_count(self.arguments.len(), &mut value);
            self.arguments.iter().for_each(|argument| put_text(argument, &mut value));
            put_parameter(ARGUMENTS, &value, rest);
        }
        if !self.time_sync_protocols.is_empty() {
            let mut value = Vec::new();
            self.time_sync_protocols.iter().for_each(|name| put_text(name, &mut value));
            value.push(0);
            put_parameter(PROTOCOLS, &value, rest);
        }
    }

    pub(super) fn parse(
        fixed: &mut Fields<'_>,
        mut rest: Fields<'_>,
    ) -> Result<Self, &'static str> {
        let cut = "flags and a trace id";
        let flags = fixed.u32().ok_or(cut)?;
        fixed.u32().ok_or(cut)?;
        let mut request = Self {
            use_fifos: flags & USE_FIFOS != 0,
            trace_id: fixed.u64().ok_or(cut)?,
            ..Self::default()
        };
        while !rest.rest().is_empty() {
            let cut = "a parameter with its size";
            let number = rest.u32().ok_or(cut)?;
            let size = rest.u32().and_then(|size| usize::try_from(size).ok()).ok_or(cut)?;
            let value = Fields::new(rest.take(size).ok_or(cut)?);
            match number {
                ARGUMENTS => request.arguments = arguments(value).ok_or("arguments")?,
                PROTOCOLS => request.time_sync_protocols = protocols(value).ok_or("protocols")?,
                // A parameter of a later version.
                _ => {}
            }
        }
        Ok(request)
    }
}

fn put_parameter(number: u32, value: &[u8], to: &mut Vec<u8>) {
    put_u32(number, to);
    put_count(value.len(), to);
    to.extend_from_slice(value);
}

fn arguments(mut value: Fields<'_>) -> Option<Vec<String>> {
    let count = value.u32()?;
    // Each takes at least a byte: this bounds the count before memory is allocated.
    let count = usize::try_from(count).ok().filter(|&count| count <= value.rest().len())?;
    (0..count).map(|_| value.text()).collect()
}

/// Names up to an empty one.
fn protocols(mut value: Fields<'_>) -> Option<Vec<String>> {
    let mut names = Vec::new();
    while !value.rest().is_empty() {
        match value.text()? {
            name if name.is_empty() => break,
            name => names.push(name),
        }
    }
    Some(names)
}
