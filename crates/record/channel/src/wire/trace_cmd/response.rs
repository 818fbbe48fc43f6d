//! TRACE_RESP: the ports of an agent's pages.

use super::fields::{Fields, put_count, put_ports, put_u32};
use super::request::USE_FIFOS;
use super::time_sync::{NAME_BYTES, name, put_name};

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// Pages come through FIFOs; the ports have no meaning then.
    pub use_fifos: bool,
    /// Size of a memory page of the agent's machine.
    pub page_size: u32,
    /// Trace id of the agent's recording.
    pub trace_id: u64,
    /// The chosen time synchronisation protocol; empty: none.
    pub time_sync_protocol: String,
    /// Port of the time synchronisation.
    pub time_sync_port: u32,
    /// Port of each CPU's pages, from CPU 0.
    pub ports: Vec<u32>,
}

impl Response {
    /// Flags, number of CPUs, page size, trace id, protocol and its port.
    pub(super) const FIXED_BYTES: usize = 24 + NAME_BYTES;

    pub(super) fn put(&self, fixed: &mut Vec<u8>, rest: &mut Vec<u8>) {
        put_u32(if self.use_fifos { USE_FIFOS } else { 0 }, fixed);
        put_count(self.ports.len(), fixed);
        put_u32(self.page_size, fixed);
        fixed.extend_from_slice(&self.trace_id.to_be_bytes());
        put_name(&self.time_sync_protocol, fixed);
        put_u32(self.time_sync_port, fixed);
        put_ports(&self.ports, rest);
    }

    pub(super) fn parse(fixed: &mut Fields<'_>, mut rest: Fields<'_>) -> Option<Self> {
        let (flags, cpus) = (fixed.u32()?, fixed.u32()?);
        Some(Self {
            use_fifos: flags & USE_FIFOS != 0,
            page_size: fixed.u32()?,
            trace_id: fixed.u64()?,
            time_sync_protocol: name(fixed)?,
            time_sync_port: fixed.u32()?,
            ports: rest.ports(cpus)?,
        })
    }
}
