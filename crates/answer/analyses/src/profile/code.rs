//! From places to code: the functions that addresses are in, of a guest's kernel and of its host's.

use std::cell::RefCell;
use std::collections::HashMap;

use ftrace::eventfmt::Kallsyms;
use symbols::{Machine, Names};

use super::CodeFrame;
use super::instruction::{KeptCode, Listing};
use super::samples::{Place, is_kernel};
use super::sums::Stratum;
use crate::states::VcpuState;

/// Frames of a stack that are shown: as many as the kernel's own limit for each half of it.
const MAX_FRAMES: usize = 254;

/// Symbols and mappings of a guest and of its host, and the stacks that samples of the host have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code<'r> {
    pub(super) guest: Option<&'r Machine<'r>>,
    pub(super) host: Option<&'r Machine<'r>>,
    /// The kernel's symbols of the guest.
    pub(super) guest_kernel: Option<&'r Kallsyms>,
    /// Those of the guest inside the guest.
    pub(super) nested: Option<&'r Kallsyms>,
    /// The guest's threads, with their processes.
    pub(super) processes: Option<&'r HashMap<u32, u32>>,
    pub(super) names: &'r RefCell<Names>,
    /// By number: frames, innermost first.
    pub(super) stacks: &'r [Box<[symbols::Place]>],
    /// Code of kernels, where innermost frames are to have their instructions.
    pub(super) kept_code: Option<KeptCode<'r>>,
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
    pub(super) fn at(&self, stratum: &Stratum, place: Place) -> CodeAt {
        match place {
            Place::Guest(address) => self.of_guest(stratum, address),
            Place::Host(_) => {
                CodeAt { state: stratum.state, host_code: true, stack: self.of_host(place) }
            }
            Place::GuestStack(number) => {
                let mut stack =
                    self.stack(number, self.guest, self.kept_code.map(KeptCode::of_guest));
                self.address_leaf(number, &mut stack);
                let in_kernel = stack.last().map(|leaf| !leaf.user_space);
                let state = guest_state(stratum.state, in_kernel);
                CodeAt { state, host_code: false, stack }
            }
        }
    }

    fn of_guest(&self, stratum: &Stratum, address: u64) -> CodeAt {
        let in_kernel = Some(is_kernel(address)).filter(|_| address != 0);
        let frame = match stratum.level {
            1 => self.guest_frame(stratum, address),
            // Of a guest inside this one, this one's symbols and code say nothing.
            _ => frame(address, self.nested, self.kept_code.map(KeptCode::of_none)),
        };
        let state = guest_state(stratum.state, in_kernel);
        CodeAt { state, host_code: false, stack: vec![frame] }
    }

    /// The function at an address of a guest's.
    fn guest_frame(&self, stratum: &Stratum, address: u64) -> CodeFrame {
        if !is_kernel(address) && address != 0 {
            let process = stratum.task.and_then(|task| self.processes?.get(&task));
            let Some((guest, &process)) = self.guest.zip(process) else {
                return CodeFrame::of_user_space_at(address);
            };
            // The host's samples don't have the guest's clock: by what it had mapped last.
            let place = guest.user_place(process, u64::MAX, address);
            if let symbols::Place::User(_) = place {
                return CodeFrame::of_user_space_at(address);
            }
            let kernel = self.kept_code.map(KeptCode::of_none);
            return code_frame(&mut self.names.borrow_mut(), guest, place, kernel);
        }
        frame(address, self.guest_kernel, self.kept_code.map(KeptCode::of_guest))
    }

    /// A stack of the host's; code of user space that no file is known of is one frame where it follows each
    /// other.
    pub(super) fn of_host(&self, place: Place) -> Vec<CodeFrame> {
        match place {
            Place::Host(number) => {
                self.stack(number, self.host, self.kept_code.map(KeptCode::of_host))
            }
            Place::Guest(_) | Place::GuestStack(_) => Vec::new(),
        }
    }

    /// Where the innermost frame of a guest's stack is of a program of which no file is known, its address says where.
    fn address_leaf(&self, number: Option<u32>, frames: &mut [CodeFrame]) {
        let at = number.and_then(|number| usize::try_from(number).ok());
        let innermost = at.and_then(|at| self.stacks.get(at)?.first());
        if let (Some(symbols::Place::User(address)), Some(leaf)) = (innermost, frames.last_mut()) {
            *leaf = CodeFrame::of_user_space_at(*address);
        }
    }

    /// `code`: the innermost frame has its instruction, by this.
    fn stack(
        &self,
        number: Option<u32>,
        machine: Option<&Machine<'_>>,
        code: Option<Listing<'_>>,
    ) -> Vec<CodeFrame> {
        let at = number.and_then(|number| usize::try_from(number).ok());
        let stack = at.and_then(|at| self.stacks.get(at));
        let (Some(stack), Some(machine)) = (stack, machine) else { return Vec::new() };
        let mut names = self.names.borrow_mut();
        let mut frames: Vec<CodeFrame> = stack
            .iter()
            .take(MAX_FRAMES)
            .enumerate()
            .rev()
            .map(|(at, &place)| code_frame(&mut names, machine, place, code.filter(|_| at == 0)))
            .collect();
        frames.dedup_by(|frame, other| frame.symbol.is_none() && frame == other);
        frames
    }
}

/// The state that the code of a guest shows, where the guest's recording doesn't say; `None`: it shows nothing.
const fn guest_state(known: VcpuState, in_kernel: Option<bool>) -> VcpuState {
    match (known, in_kernel) {
        (VcpuState::Guest, Some(true)) => VcpuState::GuestKernel,
        (VcpuState::Guest, Some(false)) => VcpuState::GuestUser,
        (state, _) => state,
    }
}

/// What a place is called; with its instruction, where `code` is there to read that.
fn code_frame(
    names: &mut Names,
    machine: &Machine<'_>,
    place: symbols::Place,
    code: Option<Listing<'_>>,
) -> CodeFrame {
    let user_space = match place {
        symbols::Place::User(_) => return CodeFrame::of_user_space(),
        symbols::Place::File { .. } => true,
        symbols::Place::Kernel(_) => false,
    };
    let name = names.name(machine, place);
    let frame = CodeFrame {
        address: Some(name.offset).filter(|_| name.symbol.is_none()),
        symbol: name.symbol.as_deref().map(str::to_owned),
        module: name.module.as_deref().map(str::to_owned),
        build_id: name.build_id,
        user_space,
        instruction: None,
    };
    match code {
        Some(code) => code.at(frame, (names, machine), (place, &name)),
        None => frame,
    }
}

fn frame(address: u64, kallsyms: Option<&Kallsyms>, code: Option<Listing<'_>>) -> CodeFrame {
    if !is_kernel(address) && address != 0 {
        return CodeFrame::of_user_space_at(address);
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let symbol = kallsyms.and_then(|kallsyms| kallsyms.function(address));
    let frame = CodeFrame {
        address: Some(address).filter(|&address| symbol.is_none() && address != 0),
        module: symbol.and_then(|symbol| symbol.module).map(text),
        symbol: symbol.map(|symbol| text(symbol.name)),
        ..CodeFrame::default()
    };
    match (code.filter(|_| address != 0), symbol) {
        (None, _) => frame,
        (Some(code), Some(symbol)) => code.of_kernel(frame, address, symbol.offset),
        (Some(_), None) => Listing::of_no_function(frame, address),
    }
}
