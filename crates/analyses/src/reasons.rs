//! Names of exit reasons: the kernel's own, evaluated from the print fmt in the recording.

use std::collections::HashMap;

use abi::Abi;
use eventfmt::{EventFormat, PrintProgram};
use sources::{FormatTable, Recording};

/// The instruction set whose virtualisation an exit belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isa {
    /// Intel VMX (`KVM_ISA_VMX`).
    Vmx,
    /// AMD SVM (`KVM_ISA_SVM`).
    Svm,
    /// arm64.
    Arm64,
    /// IBM z; shapes from the kernel's headers, not tested on a real recording yet.
    S390,
    /// RISC-V; shapes from the kernel's headers, not tested on a real recording yet.
    Riscv,
    /// An exit event of a shape not known.
    Unknown,
}

impl Isa {
    /// The name scripts see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vmx => "vmx",
            Self::Svm => "svm",
            Self::Arm64 => "arm64",
            Self::S390 => "s390",
            Self::Riscv => "riscv",
            Self::Unknown => "unknown",
        }
    }
}

/// `EXIT_REASON_HLT` and `EXIT_REASON_MWAIT_INSTRUCTION` (`arch/x86/include/uapi/asm/vmx.h`).
const VMX_WAITS: [u64; 2] = [12, 36];
/// `SVM_EXIT_HLT`, `SVM_EXIT_MWAIT`, `SVM_EXIT_MWAIT_COND` (`…/svm.h`).
const SVM_WAITS: [u64; 3] = [0x078, 0x08b, 0x08c];
/// `ARM_EXCEPTION_TRAP` and `ESR_ELx_EC_WFx` (`arch/arm64/include/asm/{kvm_asm,esr}.h`).
const ARM64_WFX: u64 = (ARM64_TRAP << 32) | 1;
const ARM64_TRAP: u64 = 2;
/// `ICPT_WAIT` (`arch/s390/include/asm/kvm_host.h`).
const S390_WAIT: u64 = 0x1c;

/// Whether an exit of this code means that the guest has nothing to do.
#[must_use]
pub fn is_waiting(isa: Isa, code: u64) -> bool {
    match isa {
        Isa::Vmx => VMX_WAITS.contains(&(code & 0xffff)),
        Isa::Svm => SVM_WAITS.contains(&code),
        Isa::Arm64 => code == ARM64_WFX,
        Isa::S390 => code == S390_WAIT,
        Isa::Riscv | Isa::Unknown => false,
    }
}

/// A raw exit code as users and scripts see it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// `exit_reason`, `icptcode`, `scause`.
    Number(u64),
    /// arm64: `ret` and `esr_ec`, written `ret:esr_ec`.
    Pair(u32, u32),
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(code) => write!(f, "{code}"),
            Self::Pair(ret, esr_ec) => write!(f, "{ret}:{esr_ec}"),
        }
    }
}

impl Code {
    /// The code of an exit of `isa` as the timeline carries it.
    #[must_use]
    pub fn new(isa: Isa, code: u64) -> Self {
        match isa {
            Isa::Arm64 => Self::Pair((code >> 32) as u32, code as u32),
            _ => Self::Number(code),
        }
    }
}

/// Names codes by the recording's own tables.
#[derive(Debug)]
pub struct ReasonNames {
    isa_without_field: Isa,
    exit_event: Option<(EventFormat, PrintProgram)>,
    abi: Abi,
    known: HashMap<(u8, u64), String>,
}

impl ReasonNames {
    /// Prepares the tables of `recording`.
    #[must_use]
    pub fn new(recording: &Recording) -> Self {
        Self::of_formats(recording.formats(), recording.abi())
    }

    /// Prepares the tables of a machine with these formats.
    #[must_use]
    pub fn of_formats(formats: &FormatTable, abi: Abi) -> Self {
        let events = ["kvm:kvm_exit", "kvm-s390:kvm_s390_sie_exit", "kvm:kvm_s390_sie_exit"];
        let format = events.iter().find_map(|name| formats.by_name(name));
        let exit_event = format
            .and_then(|format| Some((format.clone(), PrintProgram::compile(format, abi).ok()?)));
        Self {
            isa_without_field: format.map_or(Isa::Unknown, isa_of_shape),
            exit_event,
            abi,
            known: HashMap::new(),
        }
    }

    /// The instruction set of an exit whose `isa` field is `isa` (0: it has none).
    #[must_use]
    pub fn isa(&self, isa: u8) -> Isa {
        match (isa, self.isa_without_field) {
            (1, Isa::Unknown) => Isa::Vmx,
            (2, Isa::Unknown) => Isa::Svm,
            (_, shape) => shape,
        }
    }

    /// The kernel's symbol for a code; the raw code where it has none.
    pub fn name(&mut self, isa: u8, code: u64) -> String {
        if let Some(name) = self.known.get(&(isa, code)) {
            return name.clone();
        }
        let name = self.symbol(isa, code).unwrap_or_else(|| match Code::new(self.isa(isa), code) {
            Code::Number(code) => format!("{code:#x}"),
            pair @ Code::Pair(..) => pair.to_string(),
        });
        self.known.insert((isa, code), name.clone());
        name
    }

    fn symbol(&self, isa: u8, code: u64) -> Option<String> {
        let (format, program) = self.exit_event.as_ref()?;
        let mut record = format.blank_record();
        let mut poke = |name: &str, value: u64| {
            if let Some(field) = format.field(name) {
                field.poke(&mut record, self.abi.order, value);
            }
        };
        poke("isa", u64::from(isa));
        if self.isa(isa) == Isa::Arm64 {
            poke("ret", code >> 32);
            poke("esr_ec", code & u64::from(u32::MAX));
            let field = if code >> 32 == ARM64_TRAP { "esr_ec" } else { "ret" };
            return symbol(program, format, field, &record);
        }
        let field = ["exit_reason", "exit_code", "icptcode", "scause"]
            .into_iter()
            .find(|name| format.field(name).is_some())?;
        poke(field, code);
        symbol(program, format, field, &record)
    }
}

fn symbol(
    program: &PrintProgram,
    format: &EventFormat,
    field: &str,
    record: &[u8],
) -> Option<String> {
    let symbol = program.symbol_of(format, field, record)?;
    Some(String::from_utf8_lossy(symbol).into_owned())
}

/// Tells the instruction set by the fields of the exit event; x86 says it in the event.
fn isa_of_shape(format: &EventFormat) -> Isa {
    let has = |name: &str| format.field(name).is_some();
    match () {
        () if has("ret") && has("esr_ec") => Isa::Arm64,
        () if has("icptcode") => Isa::S390,
        () if has("scause") => Isa::Riscv,
        () => Isa::Unknown,
    }
}
