//! Names of model-specific registers that hypervisors access, from the processors' manuals.

/// Numbers and names, sorted by number.
const NAMES: &[(u64, &str)] = &[
    (0x10, "IA32_TSC"),
    (0x1b, "IA32_APIC_BASE"),
    (0x3a, "IA32_FEATURE_CONTROL"),
    (0x3b, "IA32_TSC_ADJUST"),
    (0x48, "IA32_SPEC_CTRL"),
    (0x49, "IA32_PRED_CMD"),
    (0x8b, "IA32_BIOS_SIGN_ID"),
    (0xfe, "IA32_MTRRCAP"),
    (0x10a, "IA32_ARCH_CAPABILITIES"),
    (0x10b, "IA32_FLUSH_CMD"),
    (0x174, "IA32_SYSENTER_CS"),
    (0x175, "IA32_SYSENTER_ESP"),
    (0x176, "IA32_SYSENTER_EIP"),
    (0x1a0, "IA32_MISC_ENABLE"),
    (0x1d9, "IA32_DEBUGCTL"),
    (0x277, "IA32_PAT"),
    (0x38f, "IA32_PERF_GLOBAL_CTRL"),
    (0x600, "IA32_DS_AREA"),
    (0x6e0, "IA32_TSC_DEADLINE"),
    (0x808, "IA32_X2APIC_TPR"),
    (0x80b, "IA32_X2APIC_EOI"),
    (0x830, "IA32_X2APIC_ICR"),
    (0x832, "IA32_X2APIC_LVT_TIMER"),
    (0x838, "IA32_X2APIC_INIT_COUNT"),
    (0x83f, "IA32_X2APIC_SELF_IPI"),
    (0xda0, "IA32_XSS"),
    (0x4b56_4d00, "MSR_KVM_WALL_CLOCK_NEW"),
    (0x4b56_4d01, "MSR_KVM_SYSTEM_TIME_NEW"),
    (0x4b56_4d02, "MSR_KVM_ASYNC_PF_EN"),
    (0x4b56_4d03, "MSR_KVM_STEAL_TIME"),
    (0x4b56_4d04, "MSR_KVM_PV_EOI_EN"),
    (0x4b56_4d05, "MSR_KVM_POLL_CONTROL"),
    (0xc000_0080, "IA32_EFER"),
    (0xc000_0081, "IA32_STAR"),
    (0xc000_0082, "IA32_LSTAR"),
    (0xc000_0083, "IA32_CSTAR"),
    (0xc000_0084, "IA32_FMASK"),
    (0xc000_0100, "IA32_FS_BASE"),
    (0xc000_0101, "IA32_GS_BASE"),
    (0xc000_0102, "IA32_KERNEL_GS_BASE"),
    (0xc000_0103, "IA32_TSC_AUX"),
    (0xc000_0104, "TSC_RATIO"),
    (0xc001_0010, "SYSCFG"),
    (0xc001_0015, "HWCR"),
    (0xc001_0114, "VM_CR"),
    (0xc001_0117, "VM_HSAVE_PA"),
    (0xc001_011f, "VIRT_SPEC_CTRL"),
];

/// The register's name, if known.
#[must_use]
pub fn msr_name(number: u64) -> Option<&'static str> {
    let at = NAMES.binary_search_by_key(&number, |(known, _)| *known).ok()?;
    NAMES.get(at).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_their_numbers() {
        assert!(NAMES.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(msr_name(0x1d9), Some("IA32_DEBUGCTL"));
        assert_eq!(msr_name(0x1da), None);
    }
}
