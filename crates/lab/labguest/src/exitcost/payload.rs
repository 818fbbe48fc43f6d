//! The tiny machine's program: one operation in a loop, between two TSC reads.
//!
//! All instructions but CR8's are encoded alike in 64-bit and in 32-bit mode: no REX prefix, the loop count in `ebp`,
//! the address of results in `edi`. So one program also runs on machines that can't enter long mode.

use crate::exitcost::kind::{
    IO_APIC, Kind, LEAF, MAGIC, MEMORY_BELL, MSR_APIC_BASE, PORT_BELL, PORT_PIC, UNBACKED,
};
use crate::exitcost::server::AVAILABLE_COUNT;

/// A write to this port reports the end of the loop.
pub(crate) const PORT_DONE: u16 = MAGIC + 2;

/// `lfence; rdtsc`: not before earlier instructions have finished.
const TSC: [u8; 5] = [0x0f, 0xae, 0xe8, 0x0f, 0x31];
const CPUID: [u8; 2] = [0x0f, 0xa2];
const VMMCALL: [u8; 3] = [0x0f, 0x01, 0xd9];
const VMCALL: [u8; 3] = [0x0f, 0x01, 0xc1];
const RDMSR: [u8; 2] = [0x0f, 0x32];
const WRMSR: [u8; 2] = [0x0f, 0x30];
/// `mov rax, cr8`.
const CR8_READ: [u8; 4] = [0x44, 0x0f, 0x20, 0xc0];
/// `mov cr8, rax`.
const CR8_WRITE: [u8; 4] = [0x44, 0x0f, 0x22, 0xc0];
const IN_AL_DX: u8 = 0xec;
const OUT_DX_AL: u8 = 0xee;
const XOR_EAX_EAX: [u8; 2] = [0x31, 0xc0];
/// `xor` of ebx, ecx, edx and esi with themselves: the arguments of a hypercall.
const NO_ARGUMENTS: [u8; 8] = [0x31, 0xdb, 0x31, 0xc9, 0x31, 0xd2, 0x31, 0xf6];
/// `mov eax, [esi]`.
const LOAD: [u8; 2] = [0x8b, 0x06];
/// `mov [esi], eax`.
const STORE: [u8; 2] = [0x89, 0x06];
/// `sti; hlt; cli`: an interrupt that arrives before the halt is handled after it.
const WAIT: [u8; 3] = [0xfb, 0xf4, 0xfa];
/// `mov [esi], eax; mov [esi+4], edx; add esi, 8`.
const KEEP_SAMPLE: [u8; 8] = [0x89, 0x06, 0x89, 0x56, 0x04, 0x83, 0xc6, 0x08];

/// Facts about the machine that operations need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Whether its processor has AMD's hypercall instruction.
    pub(crate) has_vmmcall: bool,
    /// The value of `IA32_APIC_BASE`.
    pub(crate) apic_base: u64,
}

/// The program of an operation; with `None`, only the loop.
pub(crate) fn program(kind: Option<Kind>, facts: Facts) -> Vec<u8> {
    let operation = kind.map_or_else(Vec::new, |kind| operation(kind, facts));
    let mut code = TSC.to_vec();
    // mov [edi], eax; mov [edi+4], edx
    code.extend([0x89, 0x07, 0x89, 0x57, 0x04]);
    let start = code.len();
    code.extend(operation);
    // sub ebp, 1; jnz start
    code.extend([0x83, 0xed, 0x01, 0x0f, 0x85]);
    let back = i32::try_from(code.len() + 4 - start).unwrap_or(i32::MAX);
    code.extend((-back).to_le_bytes());
    code.extend(TSC);
    // mov [edi+8], eax; mov [edi+12], edx
    code.extend([0x89, 0x47, 0x08, 0x89, 0x57, 0x0c]);
    code.extend(mov_dx(PORT_DONE));
    code.push(OUT_DX_AL);
    // Never continues: hlt; jmp back.
    code.extend([0xf4, 0xeb, 0xfd]);
    code
}

fn operation(kind: Kind, facts: Facts) -> Vec<u8> {
    let [low, high] = [facts.apic_base, facts.apic_base >> 32].map(|half| half as u32);
    match kind {
        Kind::Cpuid => [&mov_eax(LEAF)[..], &[0x31, 0xc9], &CPUID].concat(),
        Kind::Hypercall => {
            let call = if facts.has_vmmcall { VMMCALL } else { VMCALL };
            [&mov_eax(MAGIC.into())[..], &NO_ARGUMENTS, &call].concat()
        }
        Kind::Rdmsr => [&mov_ecx(MSR_APIC_BASE)[..], &RDMSR].concat(),
        Kind::Wrmsr => {
            [&mov_ecx(MSR_APIC_BASE)[..], &mov_eax(low), &mov_edx(high), &WRMSR].concat()
        }
        Kind::Cr8Read => CR8_READ.to_vec(),
        Kind::Cr8Write => [&XOR_EAX_EAX[..], &CR8_WRITE].concat(),
        Kind::PortKernel => [&mov_dx(PORT_PIC)[..], &[IN_AL_DX]].concat(),
        Kind::PortUser => [&mov_dx(MAGIC)[..], &[IN_AL_DX]].concat(),
        Kind::MmioKernel => [&mov_esi(IO_APIC)[..], &LOAD].concat(),
        Kind::MmioUser => [&mov_esi(UNBACKED)[..], &LOAD].concat(),
        Kind::KickPort => [&mov_dx(PORT_BELL)[..], &[OUT_DX_AL]].concat(),
        Kind::KickMmio => [&mov_esi(MEMORY_BELL)[..], &STORE].concat(),
        // Makes one more buffer available (`inc word [esi]`), rings the doorbell, and waits for the completion
        // interrupt.
        Kind::Send => {
            let add = [&mov_esi(AVAILABLE_COUNT)[..], &[0x66, 0xff, 0x06]].concat();
            [&add[..], &mov_dx(PORT_BELL), &[OUT_DX_AL], &WAIT].concat()
        }
        // The doorbell requests the signal; `esi` is the address of samples.
        Kind::HltWake => [&mov_dx(PORT_BELL)[..], &[OUT_DX_AL], &WAIT, &TSC, &KEEP_SAMPLE].concat(),
    }
}

/// The interrupt handler: returns at once.
pub(crate) fn handler(long_mode: bool) -> &'static [u8] {
    // iretq; iret
    if long_mode { &[0x48, 0xcf] } else { &[0xcf] }
}

fn mov_eax(value: u32) -> [u8; 5] {
    immediate(0xb8, value)
}

fn mov_ecx(value: u32) -> [u8; 5] {
    immediate(0xb9, value)
}

fn mov_edx(value: u32) -> [u8; 5] {
    immediate(0xba, value)
}

fn mov_esi(value: u32) -> [u8; 5] {
    immediate(0xbe, value)
}

fn immediate(opcode: u8, value: u32) -> [u8; 5] {
    let [a, b, c, d] = value.to_le_bytes();
    [opcode, a, b, c, d]
}

fn mov_dx(value: u16) -> [u8; 4] {
    let [low, high] = value.to_le_bytes();
    [0x66, 0xba, low, high]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: Facts = Facts { has_vmmcall: true, apic_base: 0xfee0_0900 };

    /// The expected bytes come from GNU as, with the same code in Intel's syntax.
    #[test]
    fn a_loop_around_cpuid_is_what_an_assembler_makes_of_it() {
        let known = [
            "0faee8",       // lfence
            "0f31",         // rdtsc
            "8907",         // mov [rdi], eax
            "895704",       // mov [rdi+4], edx
            "b859480040",   // mov eax, 0x40004859
            "31c9",         // xor ecx, ecx
            "0fa2",         // cpuid
            "83ed01",       // sub ebp, 1
            "0f85eeffffff", // jnz -18
            "0faee8",       // lfence
            "0f31",         // rdtsc
            "894708",       // mov [rdi+8], eax
            "89570c",       // mov [rdi+12], edx
            "66ba5b48",     // mov dx, 0x485b
            "ee",           // out dx, al
            "f4",           // hlt
            "ebfd",         // jmp -3
        ];
        let code: String =
            program(Some(Kind::Cpuid), FACTS).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(code, known.concat());
    }

    #[test]
    fn every_loop_jumps_to_its_start() {
        for kind in Kind::ALL.map(Some).into_iter().chain([None]) {
            let code = program(kind, FACTS);
            let jump = code.windows(5).position(|at| at == [0x83, 0xed, 0x01, 0x0f, 0x85]).unwrap();
            let back = i32::from_le_bytes(*code[jump + 5..].first_chunk().unwrap());
            // The first TSC read and its store, ten bytes, precede the loop.
            assert_eq!(jump as i32 + 9 + back, 10, "{kind:?}");
        }
    }

    #[test]
    fn intels_processors_get_their_hypercall() {
        let code = program(Some(Kind::Hypercall), Facts { has_vmmcall: false, ..FACTS });
        assert!(code.windows(3).any(|at| at == VMCALL) && !code.windows(3).any(|at| at == VMMCALL));
    }
}
