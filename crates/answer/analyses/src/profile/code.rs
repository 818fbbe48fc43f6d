//! From places to code: the functions that addresses are in, of a guest's kernel and of its host's.

use std::cell::RefCell;

use eventfmt::Kallsyms;
use symbols::{Machine, Names};

use super::CodeFrame;
use super::host_samples::{Place, is_kernel};
use super::sums::Stratum;
use crate::states::VcpuState;

/// Frames of a stack that are shown: as many as the kernel's own limit for each half of it.
const MOST_FRAMES: usize = 254;

/// Symbols of a guest and of its host, and the stacks that samples of the host have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code<'r> {
    pub(super) guest: Option<&'r Kallsyms>,
    pub(super) host: Option<&'r Machine<'r>>,
    pub(super) names: &'r RefCell<Names>,
    /// By number: frames, innermost first.
    pub(super) stacks: &'r [Box<[symbols::Place]>],
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

    /// A stack of the host's; code of user space that no file is known of is one frame where it follows each
    /// other.
    pub(super) fn of_host(&self, place: Place) -> Vec<CodeFrame> {
        let Place::Host(Some(number)) = place else { return Vec::new() };
        let stack = usize::try_from(number).ok().and_then(|at| self.stacks.get(at));
        let (Some(stack), Some(host)) = (stack, self.host) else { return Vec::new() };
        let mut names = self.names.borrow_mut();
        let mut frames: Vec<CodeFrame> = stack
            .iter()
            .take(MOST_FRAMES)
            .rev()
            .map(|&place| host_frame(&mut names, host, place))
            .collect();
        frames.dedup_by(|one, other| one.symbol.is_none() && one == other);
        frames
    }
}

fn host_frame(names: &mut Names, host: &Machine<'_>, place: symbols::Place) -> CodeFrame {
    let user_space = match place {
        symbols::Place::User(_) => return CodeFrame::of_user_space(),
        symbols::Place::File { .. } => true,
        symbols::Place::Kernel(_) => false,
    };
    let name = names.name(host, place);
    CodeFrame {
        address: Some(name.offset).filter(|_| name.symbol.is_none()),
        symbol: name.symbol.as_deref().map(str::to_owned),
        module: name.module.as_deref().map(str::to_owned),
        build_id: name.build_id,
        user_space,
    }
}

fn frame(address: u64, kallsyms: Option<&Kallsyms>) -> CodeFrame {
    if !is_kernel(address) && address != 0 {
        return CodeFrame::of_user_space();
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let symbol = kallsyms.and_then(|one| one.function(address));
    CodeFrame {
        address: Some(address).filter(|&address| symbol.is_none() && address != 0),
        module: symbol.and_then(|one| one.module).map(text),
        symbol: symbol.map(|one| text(one.name)),
        ..CodeFrame::default()
    }
}
