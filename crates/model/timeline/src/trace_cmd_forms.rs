//! The text in which `trace-cmd report` prints events of KVM and the scheduler, for which it has
//! plugins.
//!
//! The forms are print fmts, compiled and run like the kernel's. Where a plugin prints errors, such
//! as `<CANT FIND FIELD rip>` for newer kernels and arm64, there is no form, and the kernel's print
//! fmt applies.

use ftrace::eventfmt::{EventFormat, NumberAt, PrintProgram};
use raw_bytes::{Abi, ByteOrder};

/// Number and name of an exit reason.
type Reason = (u64, &'static str);

/// Value of the field `isa` for Intel.
const VMX: u64 = 1;
/// Value for AMD.
const SVM: u64 = 2;

/// An event as trace-cmd prints it.
#[derive(Clone, Debug)]
pub struct TraceCmdForm {
    program: PrintProgram,
    /// Positions of `isa` and exit reason, if the event has them.
    reason: Option<(NumberAt, NumberAt)>,
}

impl TraceCmdForm {
    /// The form of an event; `None` if trace-cmd prints it with the kernel's print fmt.
    #[must_use]
    pub fn for_event(format: &EventFormat, abi: Abi) -> Option<Self> {
        let has = |fields: &[&str]| fields.iter().all(|name| format.field(name).is_some());
        let (print_fmt, reason) = match &*format.full_name() {
            "kvm:kvm_exit" if has(&["isa", "exit_reason", "guest_rip"]) => {
                (exit(has(&["info1", "info2"])), Some("exit_reason"))
            }
            "kvm:kvm_nested_vmexit_inject" if has(&INJECTED) => (injected(), Some("exit_code")),
            "kvm:kvm_entry" if has(&["vcpu_id", "rip"]) => (ENTRY.to_owned(), None),
            "kvm:kvm_emulate_insn" if has(&["csbase", "rip", "len", "insn", "failed"]) => {
                (INSTRUCTION.to_owned(), None)
            }
            "sched:sched_switch" if has(&SWITCH_FIELDS) => (SWITCH.to_owned(), None),
            "sched:sched_wakeup" | "sched:sched_wakeup_new" if has(&["comm", "pid", "prio"]) => {
                (wakeup(has(&["success"]), has(&["target_cpu"])), None)
            }
            _ => return None,
        };
        let number = |name| format.field(name)?.number();
        let reason = match reason {
            Some(name) => Some((number("isa")?, number(name)?)),
            None => None,
        };
        let program = PrintProgram::compile(&format.printed_as(&print_fmt), abi).ok()?;
        Some(Self { program, reason })
    }

    /// The print program.
    #[must_use]
    pub fn program(&self) -> &PrintProgram {
        &self.program
    }

    /// Whether trace-cmd prints a record with this form: reasons without a name in trace-cmd use
    /// the kernel's.
    #[must_use]
    pub fn fits(&self, record: &[u8], order: ByteOrder) -> bool {
        let Some((isa, reason)) = self.reason else { return true };
        let names: &[Reason] = match isa.read(record, order) {
            Some(VMX) => &VMX_REASONS,
            Some(SVM) => &SVM_REASONS,
            _ => return false,
        };
        let reason = reason.read(record, order);
        reason.is_some_and(|reason| names.binary_search_by_key(&reason, |name| name.0).is_ok())
    }
}

const ENTRY: &str = "\" vcpu %u rip 0x%lx\", REC->vcpu_id, REC->rip";
const INSTRUCTION: &str = "\"%llx:%llx: %s%s\", REC->csbase, REC->rip, \
    __print_hex(REC->insn, REC->len), REC->failed ? \" FAIL\" : \"\"";
const INJECTED: [&str; 6] =
    ["isa", "exit_code", "exit_info1", "exit_info2", "exit_int_info", "exit_int_info_err"];
const SWITCH_FIELDS: [&str; 7] =
    ["prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"];
/// State letters as in trace-cmd's plugin, which has W where newer kernels have I for idle.
const SWITCH: &str = "\"%s:%d [%d] %s ==> %s:%d [%d]\", REC->prev_comm, REC->prev_pid, REC->prev_prio, \
    (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, \"|\", {0x01, \"S\"}, {0x02, \"D\"}, \
    {0x04, \"T\"}, {0x08, \"t\"}, {0x10, \"Z\"}, {0x20, \"X\"}, {0x40, \"x\"}, {0x80, \"W\"}) : \"R\", \
    REC->next_comm, REC->next_pid, REC->next_prio";

fn exit(has_info: bool) -> String {
    let (info, arguments) =
        if has_info { (" info %llx %llx", ", REC->info1, REC->info2") } else { ("", "") };
    let reason = reason_by_name("exit_reason");
    format!("\"reason %s rip 0x%lx{info}\", {reason}, REC->guest_rip{arguments}")
}

fn injected() -> String {
    format!(
        "\"reason %s info1 %llx info2 %llx int_info %llx int_info_err %llx\", {}, REC->exit_info1, \
         REC->exit_info2, REC->exit_int_info, REC->exit_int_info_err",
        reason_by_name("exit_code")
    )
}

fn wakeup(has_success: bool, has_cpu: bool) -> String {
    let (success, with_success) =
        if has_success { (" success=%d", ", REC->success") } else { ("", "") };
    let (cpu, with_cpu) = if has_cpu { (" CPU:%03d", ", REC->target_cpu") } else { ("", "") };
    format!("\"%s:%d [%d]{success}{cpu}\", REC->comm, REC->pid, REC->prio{with_success}{with_cpu}")
}

/// The reason's name by virtualization extension.
fn reason_by_name(field: &str) -> String {
    let table = |names: &[Reason]| -> String {
        names.iter().map(|(code, name)| format!(", {{{code:#x}, \"{name}\"}}")).collect()
    };
    let print_symbolic =
        |names: &[Reason]| format!("__print_symbolic(REC->{field}{})", table(names));
    format!(
        "(REC->isa == {VMX}) ? {} : {}",
        print_symbolic(&VMX_REASONS),
        print_symbolic(&SVM_REASONS)
    )
}

#[rustfmt::skip]
const VMX_REASONS: [Reason; 45] = [
    (0x0, "EXCEPTION_NMI"), (0x1, "EXTERNAL_INTERRUPT"), (0x2, "TRIPLE_FAULT"),
    (0x7, "PENDING_INTERRUPT"), (0x8, "NMI_WINDOW"), (0x9, "TASK_SWITCH"), (0xa, "CPUID"),
    (0xc, "HLT"), (0xd, "INVD"), (0xe, "INVLPG"), (0xf, "RDPMC"), (0x10, "RDTSC"), (0x12, "VMCALL"),
    (0x13, "VMCLEAR"), (0x14, "VMLAUNCH"), (0x15, "VMPTRLD"), (0x16, "VMPTRST"), (0x17, "VMREAD"),
    (0x18, "VMRESUME"), (0x19, "VMWRITE"), (0x1a, "VMOFF"), (0x1b, "VMON"), (0x1c, "CR_ACCESS"),
    (0x1d, "DR_ACCESS"), (0x1e, "IO_INSTRUCTION"), (0x1f, "MSR_READ"), (0x20, "MSR_WRITE"),
    (0x24, "MWAIT_INSTRUCTION"), (0x27, "MONITOR_INSTRUCTION"), (0x28, "PAUSE_INSTRUCTION"),
    (0x29, "MCE_DURING_VMENTRY"), (0x2b, "TPR_BELOW_THRESHOLD"), (0x2c, "APIC_ACCESS"),
    (0x2d, "EOI_INDUCED"), (0x30, "EPT_VIOLATION"), (0x31, "EPT_MISCONFIG"), (0x32, "INVEPT"),
    (0x34, "PREEMPTION_TIMER"), (0x36, "WBINVD"), (0x37, "XSETBV"), (0x38, "APIC_WRITE"),
    (0x3a, "INVPCID"), (0x3e, "PML_FULL"), (0x3f, "XSAVES"), (0x40, "XRSTORS"),
];

#[rustfmt::skip]
const SVM_REASONS: [Reason; 91] = [
    (0x0, "EXIT_READ_CR0"), (0x3, "EXIT_READ_CR3"), (0x4, "EXIT_READ_CR4"), (0x8, "EXIT_READ_CR8"),
    (0x10, "EXIT_WRITE_CR0"), (0x13, "EXIT_WRITE_CR3"), (0x14, "EXIT_WRITE_CR4"),
    (0x18, "EXIT_WRITE_CR8"), (0x20, "EXIT_READ_DR0"), (0x21, "EXIT_READ_DR1"),
    (0x22, "EXIT_READ_DR2"), (0x23, "EXIT_READ_DR3"), (0x24, "EXIT_READ_DR4"),
    (0x25, "EXIT_READ_DR5"), (0x26, "EXIT_READ_DR6"), (0x27, "EXIT_READ_DR7"),
    (0x30, "EXIT_WRITE_DR0"), (0x31, "EXIT_WRITE_DR1"), (0x32, "EXIT_WRITE_DR2"),
    (0x33, "EXIT_WRITE_DR3"), (0x34, "EXIT_WRITE_DR4"), (0x35, "EXIT_WRITE_DR5"),
    (0x36, "EXIT_WRITE_DR6"), (0x37, "EXIT_WRITE_DR7"), (0x40, "EXIT_EXCP_DE"),
    (0x41, "EXIT_EXCP_DB"), (0x43, "EXIT_EXCP_BP"), (0x44, "EXIT_EXCP_OF"), (0x45, "EXIT_EXCP_BR"),
    (0x46, "EXIT_EXCP_UD"), (0x47, "EXIT_EXCP_NM"), (0x48, "EXIT_EXCP_DF"), (0x4a, "EXIT_EXCP_TS"),
    (0x4b, "EXIT_EXCP_NP"), (0x4c, "EXIT_EXCP_SS"), (0x4d, "EXIT_EXCP_GP"), (0x4e, "EXIT_EXCP_PF"),
    (0x50, "EXIT_EXCP_MF"), (0x51, "EXIT_EXCP_AC"), (0x52, "EXIT_EXCP_MC"), (0x53, "EXIT_EXCP_XF"),
    (0x60, "EXIT_INTR"), (0x61, "EXIT_NMI"), (0x62, "EXIT_SMI"), (0x63, "EXIT_INIT"),
    (0x64, "EXIT_VINTR"), (0x65, "EXIT_CR0_SEL_WRITE"), (0x66, "EXIT_IDTR_READ"),
    (0x67, "EXIT_GDTR_READ"), (0x68, "EXIT_LDTR_READ"), (0x69, "EXIT_TR_READ"),
    (0x6a, "EXIT_IDTR_WRITE"), (0x6b, "EXIT_GDTR_WRITE"), (0x6c, "EXIT_LDTR_WRITE"),
    (0x6d, "EXIT_TR_WRITE"), (0x6e, "EXIT_RDTSC"), (0x6f, "EXIT_RDPMC"), (0x70, "EXIT_PUSHF"),
    (0x71, "EXIT_POPF"), (0x72, "EXIT_CPUID"), (0x73, "EXIT_RSM"), (0x74, "EXIT_IRET"),
    (0x75, "EXIT_SWINT"), (0x76, "EXIT_INVD"), (0x77, "EXIT_PAUSE"), (0x78, "EXIT_HLT"),
    (0x79, "EXIT_INVLPG"), (0x7a, "EXIT_INVLPGA"), (0x7b, "EXIT_IOIO"), (0x7c, "EXIT_MSR"),
    (0x7d, "EXIT_TASK_SWITCH"), (0x7e, "EXIT_FERR_FREEZE"), (0x7f, "EXIT_SHUTDOWN"),
    (0x80, "EXIT_VMRUN"), (0x81, "EXIT_VMMCALL"), (0x82, "EXIT_VMLOAD"), (0x83, "EXIT_VMSAVE"),
    (0x84, "EXIT_STGI"), (0x85, "EXIT_CLGI"), (0x86, "EXIT_SKINIT"), (0x87, "EXIT_RDTSCP"),
    (0x88, "EXIT_ICEBP"), (0x89, "EXIT_WBINVD"), (0x8a, "EXIT_MONITOR"), (0x8b, "EXIT_MWAIT"),
    (0x8c, "EXIT_MWAIT_COND"), (0x8d, "EXIT_XSETBV"), (0x400, "EXIT_NPF"),
    (0x401, "EXIT_AVIC_INCOMPLETE_IPI"), (0x402, "EXIT_AVIC_UNACCELERATED_ACCESS"),
    (0xffffffff, "EXIT_ERR"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_in_order_of_their_numbers() {
        assert!(VMX_REASONS.is_sorted_by(|a, b| a.0 < b.0));
        assert!(SVM_REASONS.is_sorted_by(|a, b| a.0 < b.0));
    }
}
