//! The processor architecture of a recorded machine.

use sources::Recording;
use timeline::arch::Isa;

use timeline::reasons::ReasonNames;

/// An architecture. 32 and 64 bits are one architecture, because a host can run guests of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// Intel and AMD.
    X86,
    /// arm and arm64.
    Arm,
    /// RISC-V.
    Riscv,
    /// IBM Z.
    S390,
    /// POWER.
    Powerpc,
    /// LoongArch.
    Loongarch,
}

/// Prefixes of the machine name in `uname -m`.
const MACHINES: [(&str, Processor); 12] = [
    ("x86_64", Processor::X86),
    ("i386", Processor::X86),
    ("i486", Processor::X86),
    ("i586", Processor::X86),
    ("i686", Processor::X86),
    ("aarch64", Processor::Arm),
    ("arm64", Processor::Arm),
    ("armv", Processor::Arm),
    ("riscv", Processor::Riscv),
    ("s390", Processor::S390),
    ("ppc", Processor::Powerpc),
    ("loongarch", Processor::Loongarch),
];

impl Processor {
    /// The architecture of the machine where a recording was made; `None` if it is unknown.
    #[must_use]
    pub fn of_recording(recording: &Recording) -> Option<Self> {
        Self::of_exits(ReasonNames::new(recording).isa(0))
            .or_else(|| Self::of_uname(recording.info().uname.as_deref()?))
            .or_else(|| Self::of_events(recording))
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86",
            Self::Arm => "arm64",
            Self::Riscv => "riscv",
            Self::S390 => "s390",
            Self::Powerpc => "powerpc",
            Self::Loongarch => "loongarch",
        }
    }

    /// Architecture by exits; exits of x86 have the instruction set in each event.
    const fn of_exits(isa: Isa) -> Option<Self> {
        match isa {
            Isa::Vmx | Isa::Svm => Some(Self::X86),
            Isa::Arm64 => Some(Self::Arm),
            Isa::Riscv => Some(Self::Riscv),
            Isa::S390 => Some(Self::S390),
            Isa::Powerpc => Some(Self::Powerpc),
            Isa::Loongarch => Some(Self::Loongarch),
            Isa::Text | Isa::Unknown => None,
        }
    }

    /// Architecture by `uname -a`: only the last word counts, because a host name can contain anything.
    fn of_uname(uname: &str) -> Option<Self> {
        let machine = uname.split_whitespace().last()?;
        MACHINES.iter().find(|(begin, _)| machine.starts_with(begin)).map(|(_, found)| *found)
    }

    /// Architecture by events that only x86 has.
    fn of_events(recording: &Recording) -> Option<Self> {
        let has =
            |system: &str| recording.formats().iter().any(|(_, format)| format.system() == system);
        (has("irq_vectors") || has("msr") || has("exceptions")).then_some(Self::X86)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_of_uname_is_the_machine() {
        let processor = |uname| Processor::of_uname(uname);
        assert_eq!(processor("Linux x86_64 6.1.0 aarch64"), Some(Processor::Arm));
        assert_eq!(processor("Linux host 5.10.0-amd64 x86_64\n"), Some(Processor::X86));
        assert_eq!(processor("Linux host 6.6 sparc64"), None);
        assert_eq!(processor(""), None);
    }
}
