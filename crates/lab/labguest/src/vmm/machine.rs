//! The VMM's machine: one CPU in a loop of writes to devices, in each architecture's machine code.

use std::io;

#[cfg(target_arch = "x86_64")]
use sys::kvm::Registers;
use sys::kvm::{Controllers, TinyVm, VmExit};

const MEMORY_BYTES: usize = 0x10000;
const CODE: u16 = 0x1000;
/// Each device is a page at this address plus its number; nothing is mapped there.
#[cfg(target_arch = "aarch64")]
const DEVICES: u64 = 0x1000_0000;

/// A machine that writes to each device, `rounds` times, and to `last` at its end.
pub(super) fn machine(rounds: u16, devices: [u8; 4], last: u8) -> io::Result<TinyVm> {
    let mut vm = TinyVm::new(MEMORY_BYTES, Controllers::User).map_err(io::Error::other)?;
    let program = program(rounds, devices, last);
    let at = usize::from(CODE);
    if let Some(place) = vm.memory_mut().get_mut(at..at + program.len()) {
        place.copy_from_slice(&program);
    }
    begin(&mut vm).map_err(io::Error::other)?;
    Ok(vm)
}

/// Runs in the mode after reset.
#[cfg(target_arch = "x86_64")]
fn program(rounds: u16, devices: [u8; 4], last: u8) -> Vec<u8> {
    let [low, high] = rounds.to_le_bytes();
    let out = |port: u8| [0xe6, port];
    let mut code = vec![0xb9, low, high];
    code.extend(devices.into_iter().flat_map(out));
    // dec cx; jnz to the first write; then the last one, and hlt.
    code.extend([0x49, 0x75, 0xf5]);
    code.extend(out(last));
    code.push(0xf4);
    code
}

#[cfg(target_arch = "x86_64")]
fn begin(vm: &mut TinyVm) -> Result<(), sys::kvm::KvmError> {
    let mut registers = vm.special_registers()?;
    (registers.cs.base, registers.cs.selector) = (0, 0);
    vm.set_special_registers(&registers)?;
    vm.set_registers(&Registers { rip: CODE.into(), rflags: 2, ..Registers::default() })
}

/// Runs without address translation, as after reset.
#[cfg(target_arch = "aarch64")]
fn program(rounds: u16, devices: [u8; 4], last: u8) -> Vec<u8> {
    // add x3, x0, #device, lsl #12; strb w1, [x3]
    let write = |device: u8| [0x9140_0003 | u32::from(device) << 10, 0x3900_0061];
    // movz x0, #(DEVICES >> 16), lsl #16; movz x2, #rounds
    let mut code =
        vec![0xd2a0_0000 | ((DEVICES >> 16) as u32) << 5, 0xd280_0002 | u32::from(rounds) << 5];
    code.extend(devices.into_iter().flat_map(write));
    // subs x2, x2, #1; b.ne to the first write; then the last one, and b to itself.
    code.extend([0xf100_0442, 0x54ff_fee1]);
    code.extend(write(last));
    code.push(0x1400_0000);
    code.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[cfg(target_arch = "aarch64")]
fn begin(vm: &mut TinyVm) -> Result<(), sys::kvm::KvmError> {
    vm.set_program_counter(CODE.into())
}

/// The device that an exit writes to.
pub(super) fn device_of(exit: VmExit) -> Option<u8> {
    match exit {
        VmExit::Port(port) => u8::try_from(port).ok(),
        #[cfg(target_arch = "aarch64")]
        VmExit::Memory(address) => u8::try_from(address.checked_sub(DEVICES)? >> 12).ok(),
        _ => None,
    }
}
