//! Differences between the lab's architectures.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// x86-64, with nested virtualization by SVM or VMX.
    #[serde(rename = "x86_64")]
    X86_64,
    /// arm64, with virtualization at EL2.
    Aarch64,
}

impl Arch {
    /// The architecture of this program.
    #[must_use]
    pub fn native() -> Self {
        if cfg!(target_arch = "aarch64") { Self::Aarch64 } else { Self::X86_64 }
    }

    /// Debian's name of it.
    pub(crate) fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// The subfolder of libraries in /lib and /usr/lib.
    pub(crate) fn triplet(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-linux-gnu",
            Self::Aarch64 => "aarch64-linux-gnu",
        }
    }

    /// The QEMU program that emulates it.
    pub(crate) fn qemu(self) -> &'static str {
        match self {
            Self::X86_64 => "qemu-system-x86_64",
            Self::Aarch64 => "qemu-system-aarch64",
        }
    }

    /// Debian's package of that program.
    pub(crate) fn qemu_package(self) -> &'static str {
        match self {
            Self::X86_64 => "qemu-system-x86",
            Self::Aarch64 => "qemu-system-arm",
        }
    }

    /// Debian's package of a kernel for virtual machines.
    pub(crate) fn kernel_package(self) -> &'static str {
        match self {
            Self::X86_64 => "linux-image-cloud-amd64",
            Self::Aarch64 => "linux-image-cloud-arm64",
        }
    }

    /// The kernel's name of its first serial port.
    pub(crate) fn console(self) -> &'static str {
        match self {
            Self::X86_64 => "ttyS0",
            Self::Aarch64 => "ttyAMA0",
        }
    }

    /// QEMU data files that a machine with KVM needs to start a guest; each entry lists alternatives, the first
    /// existing one is used. If QEMU has no firmware for the microvm board, SeaBIOS's package has.
    pub(crate) fn firmware(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::X86_64 => &[
                &["qemu/bios-microvm.bin", "seabios/bios-microvm.bin"],
                &["seabios/bios-256k.bin"],
                &["qemu/kvmvapic.bin"],
                &["qemu/linuxboot_dma.bin"],
                &["qemu/pvh.bin"],
            ],
            Self::Aarch64 => &[],
        }
    }

    /// KVM modules: those always needed, and those of which one fits the processor.
    pub(crate) fn kvm_modules(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::X86_64 => (&["kvm"], &["kvm_amd", "kvm_intel"]),
            Self::Aarch64 => (&["kvm"], &[]),
        }
    }
}

impl Arch {
    /// Guest modules for programs that cause exits.
    pub(crate) fn guest_modules(self) -> &'static [&'static str] {
        match self {
            Self::X86_64 => &["msr"],
            Self::Aarch64 => &[],
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        })
    }
}
