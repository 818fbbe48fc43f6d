//! From places to code: the functions that addresses are in, of a guest's kernel and of its host's.

use eventfmt::Kallsyms;

use super::host_samples::Place;
use super::sums::Stratum;
use super::{CodeFrame, USER_MODULE};
use crate::states::VcpuState;

/// Frames of a stack that are shown: as many as the kernel's own limit for each half of it.
const MOST_FRAMES: usize = 254;

/// Symbols of a guest and of its host, and the stacks that samples of the host have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code<'r> {
    pub(super) guest: Option<&'r Kallsyms>,
    pub(super) host: Option<&'r Kallsyms>,
    /// By number: addresses, innermost first.
    pub(super) stacks: &'r [Box<[u64]>],
}

/// What a place says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CodeAt {
    /// The state that the address shows, where the guest's recording doesn't.
    pub(super) state: VcpuState,
    pub(super) host_code: bool,
    /// From the root on.
    pub(super) stack: Vec<CodeFrame>,
}

impl Code<'_> {
    /// The code at a place that a sample in a stratum saw.
    pub(super) fn at(&self, of: &Stratum, place: Place) -> CodeAt {
        match place {
            Place::Guest(address) => self.of_guest(of, address),
            Place::Host(_) => {
                CodeAt { state: of.state, host_code: true, stack: self.of_host(place) }
            }
        }
    }

    fn of_guest(&self, of: &Stratum, address: u64) -> CodeAt {
        let state = match (of.state, is_kernel(address)) {
            (VcpuState::Guest, _) if address == 0 => VcpuState::Guest,
            (VcpuState::Guest, true) => VcpuState::GuestKernel,
            (VcpuState::Guest, false) => VcpuState::GuestUser,
            (state, _) => state,
        };
        // Of a guest inside this one, this one's symbols say nothing.
        let frame = frame(address, self.guest.filter(|_| of.level == 1));
        CodeAt { state, host_code: false, stack: vec![frame] }
    }

    /// A stack of the host's; of user space, which has no symbols here, all that follows each other is one frame.
    pub(super) fn of_host(&self, place: Place) -> Vec<CodeFrame> {
        let Place::Host(Some(number)) = place else { return Vec::new() };
        let stack = usize::try_from(number).ok().and_then(|at| self.stacks.get(at));
        let Some(stack) = stack else { return Vec::new() };
        let mut frames: Vec<CodeFrame> = stack
            .iter()
            .take(MOST_FRAMES)
            .rev()
            .map(|&address| frame(address, self.host))
            .collect();
        frames.dedup_by(|one, other| one.symbol.is_none() && one == other);
        frames
    }
}

/// Of the canonical addresses of x86-64, arm64 and RISC-V the upper half is the kernel's: its first byte is
/// 0xff. Others are what a walk over frame pointers found on some stack.
fn is_kernel(address: u64) -> bool {
    address >> 56 == 0xff
}

fn frame(address: u64, kallsyms: Option<&Kallsyms>) -> CodeFrame {
    if !is_kernel(address) && address != 0 {
        let module = Some(USER_MODULE.to_owned());
        return CodeFrame { symbol: None, module, address: None };
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match kallsyms.and_then(|one| one.function(address)) {
        Some(symbol) => CodeFrame {
            symbol: Some(text(symbol.name)),
            module: symbol.module.map(text),
            address: None,
        },
        None => {
            let address = Some(address).filter(|&address| address != 0);
            CodeFrame { symbol: None, module: None, address }
        }
    }
}
