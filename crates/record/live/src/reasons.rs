//! Names of exit reasons, from the kernel's format of its event.

use bpf::load::LoadError;
use timeline::reasons::ReasonNames;
use tracefs::Tracefs;

use crate::error::Result;

/// The format of the exit event in tracefs.
const FORMAT: &str = "events/kvm/kvm_exit/format";

/// The names of this host's exit reasons; raw codes if the kernel's format has no names.
///
/// # Errors
/// When tracefs can't be read, or KVM is not loaded.
pub fn reason_names() -> Result<ReasonNames> {
    let tracefs = Tracefs::find()?;
    let path = tracefs.root().join(FORMAT);
    if !path.exists() {
        return Err(LoadError::NoTracepoint("kvm_exit").into());
    }
    Ok(ReasonNames::of_event_text(&tracefs::read(&path)?))
}
