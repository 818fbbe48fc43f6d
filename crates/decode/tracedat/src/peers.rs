//! Options that relate a host's recording to those of its guests.

use crate::Damage;
use crate::options::RawOption;
use raw_bytes::{ByteOrder, Cursor, Truncated, slice};

/// A guest recorded together with this host: a GUEST option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Its name, such as the name of the libvirt domain.
    pub name: String,
    /// Trace id of the guest's own recording.
    pub trace_id: u64,
    /// The host thread of each guest CPU.
    pub vcpus: Vec<GuestCpu>,
}

/// A guest's CPU and its thread on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestCpu {
    /// Number of the CPU in the guest.
    pub cpu: u32,
    /// Host thread id; 0 if the recorder did not find it.
    pub pid: u32,
}

impl Guest {
    /// Parses the option; after truncation, CPUs before it remain.
    pub(crate) fn parse(option: &RawOption, order: ByteOrder) -> (Option<Self>, Option<Damage>) {
        let mut cursor = option.cursor(order);
        let mut guest = None;
        let damage = Self::fill(&mut cursor, &mut guest).err();
        (guest, damage.map(|cut| Damage::short("GUEST option", cut)))
    }

    fn fill(cursor: &mut Cursor<'_>, out: &mut Option<Self>) -> Result<(), Truncated> {
        let name = slice::text(cursor.c_str()?);
        let trace_id = cursor.u64()?;
        let guest = out.insert(Self { name, trace_id, vcpus: Vec::new() });
        for _ in 0..cursor.u32()? {
            guest.vcpus.push(GuestCpu { cpu: cursor.u32()?, pid: cursor.u32()? });
        }
        Ok(())
    }
}

/// Conversion from TSC ticks to nanoseconds: `ns = ticks * mult >> shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tsc2Nsec {
    /// Multiplier; 0 means no conversion.
    pub mult: u32,
    /// Bits to shift right after multiplying.
    pub shift: u32,
    /// The TSC's start in nanoseconds; stored but not applied, as in trace-cmd.
    pub offset: u64,
}

impl Tsc2Nsec {
    pub(crate) fn parse(option: &RawOption, order: ByteOrder) -> Result<Self, Damage> {
        let mut cursor = option.cursor(order);
        let mut read =
            || Ok(Self { mult: cursor.u32()?, shift: cursor.u32()?, offset: cursor.u64()? });
        read().map_err(|cut| Damage::short("TSC2NSEC option", cut))
    }
}
