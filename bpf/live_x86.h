/* SPDX-License-Identifier: GPL-2.0 */
/* Exits of VMX and SVM. */

/* Once on each way back: the guest's registers are loaded again. */
#define USER_RETURN "kvm_fpu"

#define ISA_VMX 1
#define ISA_SVM 2

/* What the loader sets: the processor's, for kernels whose event doesn't say it first. */
const volatile __u32 host_isa = ISA_VMX;

struct kvm_vcpu {
	int vcpu_id;
} __attribute__((preserve_access_index));

struct vmcb_control_area {
	__u32 exit_code;
} __attribute__((preserve_access_index));

struct vmcb {
	struct vmcb_control_area control;
} __attribute__((preserve_access_index));

struct vcpu_svm {
	struct kvm_vcpu vcpu;
	struct vmcb *vmcb;
} __attribute__((preserve_access_index));

union vmx_exit_reason {
	__u32 full;
} __attribute__((preserve_access_index));

struct vcpu_vmx {
	struct kvm_vcpu vcpu;
	union vmx_exit_reason exit_reason;
} __attribute__((preserve_access_index));

/* Since Linux 6.15 what VMX and TDX have in common is a struct of its own. */
struct vcpu_vt {
	union vmx_exit_reason exit_reason;
} __attribute__((preserve_access_index));

struct vcpu_vmx___with_vt {
	struct kvm_vcpu vcpu;
	struct vcpu_vt vt;
} __attribute__((preserve_access_index));

/* Before Linux 5.16 the reason comes first, and is no address of the kernel. */
static __always_inline int has_reason(struct bpf_raw_tracepoint_args *ctx)
{
	return !(ctx->args[0] >> 63);
}

static __always_inline __u32 svm_reason(__u64 vcpu)
{
	struct vcpu_svm *svm = (struct vcpu_svm *)vcpu;

	if (!bpf_core_field_exists(svm->vmcb))
		return -1;
	return BPF_CORE_READ(svm, vmcb, control.exit_code);
}

static __always_inline __u32 vmx_reason(__u64 vcpu)
{
	struct vcpu_vmx___with_vt *with_vt = (struct vcpu_vmx___with_vt *)vcpu;
	struct vcpu_vmx *vmx = (struct vcpu_vmx *)vcpu;

	if (bpf_core_field_exists(with_vt->vt))
		return BPF_CORE_READ(with_vt, vt.exit_reason.full);
	if (!bpf_core_field_exists(vmx->exit_reason.full))
		return -1;
	return BPF_CORE_READ(vmx, exit_reason.full);
}

static __always_inline struct exit_reason reason_of(struct bpf_raw_tracepoint_args *ctx)
{
	struct exit_reason reason = { .code = ctx->args[0], .isa = host_isa };

	if (has_reason(ctx))
		return reason;
	reason.isa = ctx->args[1];
	/* The same vCPU pointer is that of KVM's larger struct: it begins with this one. */
	if (reason.isa == ISA_SVM)
		reason.code = svm_reason(ctx->args[0]);
	else
		reason.code = vmx_reason(ctx->args[0]);
	return reason;
}

static __always_inline struct kvm_vcpu *vcpu_here(struct bpf_raw_tracepoint_args *ctx)
{
	/* kvm_entry had the vCPU's number before Linux 5.9. */
	return ctx->args[0] >> 63 ? (struct kvm_vcpu *)ctx->args[0] : 0;
}

static __always_inline int has_returned(struct bpf_raw_tracepoint_args *ctx)
{
	return ctx->args[0] & 1;
}
