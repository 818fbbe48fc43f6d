//! Names of exit reasons, by this kernel's own format of its event.

use analyses::reasons::ReasonNames;
use bpfload::LoadError;
use eventfmt::EventFormat;
use raw_bytes::{Abi, ByteOrder, LongSize};
use sources::FormatTable;
use tracefs::Tracefs;

use crate::error::Result;

/// Where tracefs has the event that stands for exits.
const FORMAT: &str = "events/kvm/kvm_exit/format";

/// The names of this host's exit reasons; raw codes where the kernel's format says nothing.
///
/// # Errors
/// When tracefs can't be read, or KVM is not loaded.
pub fn reason_names() -> Result<ReasonNames> {
    let tracefs = Tracefs::find()?;
    let path = tracefs.root().join(FORMAT);
    if !path.exists() {
        return Err(LoadError::NoTracepoint("kvm_exit").into());
    }
    let text = tracefs::read(&path)?;
    let format = EventFormat::parse("kvm", text.as_bytes()).ok();
    Ok(ReasonNames::of_formats(&format.into_iter().collect::<FormatTable>(), abi()))
}

fn abi() -> Abi {
    Abi {
        order: if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little },
        long: if cfg!(target_pointer_width = "64") { LongSize::Eight } else { LongSize::Four },
    }
}
