//! Tests whether this machine's KVM can run the lab, by booting a kernel in it.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::arch::Arch;
use crate::cache::{self, ACCELERATOR, Cache};
use crate::error::{LabError, Result};
use crate::machine::Accelerator;

/// Max time for a kernel to boot on hardware. If KVM itself is emulated, the boot takes longer.
pub(crate) const TRIAL: Duration = Duration::from_secs(15);

/// Results of earlier trials of this kernel's KVM with this QEMU.
pub(crate) struct Trials {
    file: PathBuf,
    key: String,
}

impl Trials {
    /// Trials on this system since boot.
    pub(crate) fn on(cache: &Cache, arch: Arch, qemu: &Path) -> Result<Self> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let boot = read("/proc/sys/kernel/random/boot_id") + &read("/proc/version");
        let size = fs::metadata(qemu).map_or(0, |file| file.len());
        let key = cache::key([boot.as_bytes(), arch.debian().as_bytes(), &size.to_le_bytes()]);
        Ok(Self { file: cache.folder("")?.join(format!("{ACCELERATOR}{arch}")), key })
    }

    /// The result of an earlier trial.
    pub(crate) fn found(&self) -> Option<Accelerator> {
        let text = fs::read_to_string(&self.file).ok()?;
        match text.trim().strip_prefix(&self.key)?.trim() {
            "kvm" => Some(Accelerator::Kvm),
            "tcg" => Some(Accelerator::Tcg),
            _ => None,
        }
    }

    /// Saves the result of a trial.
    pub(crate) fn keep(&self, found: Accelerator) -> Result<()> {
        let word = if found == Accelerator::Kvm { "kvm" } else { "tcg" };
        let text = format!("{} {word}\n", self.key);
        fs::write(&self.file, text).map_err(LabError::io("cannot write", &self.file))
    }
}

/// Whether a trial makes sense.
pub(crate) fn may_have_kvm(arch: Arch, levels: u8) -> bool {
    arch == Arch::native()
        && OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok()
        && (levels == 1 || may_nest(arch))
}

/// Whether KVM supports nested virtualization.
fn may_nest(arch: Arch) -> bool {
    let says_yes = |module: &str| {
        let value = fs::read_to_string(format!("/sys/module/{module}/parameters/nested"));
        value.is_ok_and(|text| ["1", "Y"].contains(&text.trim()))
    };
    arch == Arch::X86_64 && (says_yes("kvm_intel") || says_yes("kvm_amd"))
}
