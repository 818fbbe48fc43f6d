//! Converts places to code: functions of addresses in a guest's kernel and in its host.

use std::cell::RefCell;
use std::collections::HashMap;

use ftrace::eventfmt::Kallsyms;
use symbols::{Machine, Names};

use super::CodeFrame;
use super::instruction::{KeptCode, Listing};
use super::samples::{Place, is_kernel};
use super::sums::Stratum;
use crate::states::VcpuState;

/// Max shown frames of a stack: twice the kernel's limit, because a stack has a kernel part and a user part.
const MAX_FRAMES: usize = 254;

/// Symbols and mappings of a guest and its host, and the stacks of the host's samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code<'r> {
    pub(super) guest: Option<&'r Machine<'r>>,
    pub(super) host: Option<&'r Machine<'r>>,
    /// Symbols of the guest's kernel.
    pub(super) guest_kernel: Option<&'r Kallsyms>,
    /// Symbols of the nested guest's kernel.
    pub(super) nested: Option<&'r Kallsyms>,
    /// Processes by guest thread.
    pub(super) processes: Option<&'r HashMap<u32, u32>>,
    pub(super) names: &'r RefCell<Names>,
    /// Stacks by number: frames, innermost first.
    pub(super) stacks: &'r [Box<[symbols::Place]>],
    /// Code of kernels, if innermost frames need their instructions.
    pub(super) kept_code: Option<KeptCode<'r>>,
}

/// Code at a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CodeAt {
    /// The state that the address implies, if the guest's recording lacks it.
    pub(super) state: VcpuState,
    pub(super) host_code: bool,
    /// Frames from the root.
    pub(super) stack: Vec<CodeFrame>,
}

impl Code<'_> {
    /// The code at a sample's place in a stratum.
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
            // The guest's symbols and code do not apply to a nested guest.
            _ => frame(address, self.nested, self.kept_code.map(KeptCode::of_none)),
        };
        let state = guest_state(stratum.state, in_kernel);
        CodeAt { state, host_code: false, stack: vec![frame] }
    }

    /// The function at a guest's address.
    fn guest_frame(&self, stratum: &Stratum, address: u64) -> CodeFrame {
        if !is_kernel(address) && address != 0 {
            let process = stratum.task.and_then(|task| self.processes?.get(&task));
            let Some((guest, &process)) = self.guest.zip(process) else {
                return CodeFrame::of_user_space_at(address);
            };
            // The host's samples use another clock than the guest's mappings, so the latest mappings apply.
            let place = guest.user_place(process, u64::MAX, address);
            if let symbols::Place::User(_) = place {
                return CodeFrame::of_user_space_at(address);
            }
            let kernel = self.kept_code.map(KeptCode::of_none);
            return code_frame(&mut self.names.borrow_mut(), guest, place, kernel);
        }
        frame(address, self.guest_kernel, self.kept_code.map(KeptCode::of_guest))
    }

    /// A stack of the host. Consecutive frames of unknown user-space files are merged.
    pub(super) fn of_host(&self, place: Place) -> Vec<CodeFrame> {
        match place {
            Place::Host(number) => {
                self.stack(number, self.host, self.kept_code.map(KeptCode::of_host))
            }
            Place::Guest(_) | Place::GuestStack(_) => Vec::new(),
        }
    }

    /// If the innermost frame of a guest's stack is in an unknown file, sets its address.
    fn address_leaf(&self, number: Option<u32>, frames: &mut [CodeFrame]) {
        let at = number.and_then(|number| usize::try_from(number).ok());
        let innermost = at.and_then(|at| self.stacks.get(at)?.first());
        if let (Some(symbols::Place::User(address)), Some(leaf)) = (innermost, frames.last_mut()) {
            *leaf = CodeFrame::of_user_space_at(*address);
        }
    }

    /// Frames of a stack; with `code`, the innermost frame gets its instruction.
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

/// State of a guest by its code, if the guest's recording lacks it; `in_kernel` is `None` if the code is unknown.
const fn guest_state(known: VcpuState, in_kernel: Option<bool>) -> VcpuState {
    match (known, in_kernel) {
        (VcpuState::Guest, Some(true)) => VcpuState::GuestKernel,
        (VcpuState::Guest, Some(false)) => VcpuState::GuestUser,
        (state, _) => state,
    }
}

/// Name of a place; with its instruction, if `code` is available.
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
