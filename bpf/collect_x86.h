/* SPDX-License-Identifier: GPL-2.0 */
/* A vCPU of VMX or SVM: words in rbx rcx rdx rsi rdi r8..r15, the number in rax. */

#define HYPERCALL "raw_tp/kvm_hypercall"

/* struct kvm_vcpu_arch: the kernel's order of registers, rip behind the general ones. */
#define REGS 17
#define RIP 16

struct kvm_vcpu_arch {
	unsigned long regs[REGS];
	__u32 regs_avail;
} __attribute__((preserve_access_index));

struct kvm_vcpu {
	int vcpu_id;
	struct kvm_vcpu_arch arch;
} __attribute__((preserve_access_index));

static __always_inline __u64 vcpu_at_exit(struct bpf_raw_tracepoint_args *ctx)
{
	/* Before Linux 5.16 the reason comes first, and is no address of the kernel. */
	return ctx->args[0] >> 63 ? ctx->args[0] : ctx->args[1];
}

static __always_inline struct kvm_vcpu *vcpu_here(__u64 at_exit)
{
	return (struct kvm_vcpu *)at_exit;
}

static __always_inline __u64 number_of(struct bpf_raw_tracepoint_args *ctx)
{
	return ctx->args[0];
}

static __always_inline int has_rip(struct kvm_vcpu *vcpu)
{
	return bpf_core_field_exists(vcpu->arch.regs_avail) &&
	       BPF_CORE_READ(vcpu, arch.regs_avail) >> RIP & 1;
}

static __always_inline int read_words(struct bpf_raw_tracepoint_args *ctx, struct kvm_vcpu *vcpu,
				      struct record *record)
{
	unsigned long regs[REGS];

	if (bpf_core_read(regs, sizeof(regs), &vcpu->arch.regs))
		return -1;
	record->flags = 0;
	record->guest_rip = 0;
	if (has_rip(vcpu)) {
		record->guest_rip = regs[RIP];
		record->flags = RIP_KNOWN;
	}
	/* As KVM took them: only their lower halves where the guest is in a 32-bit mode. */
	record->word[0] = ctx->args[1];
	record->word[1] = ctx->args[2];
	record->word[2] = ctx->args[3];
	record->word[3] = ctx->args[4];
	record->word[4] = regs[7];
#pragma unroll
	for (int at = 5; at < MOST_WORDS; at++)
		record->word[at] = regs[at + 3];
	return 0;
}

/* VMX reads it when it is first needed: to go on behind the instruction. */
static __always_inline void read_rip_late(struct kvm_vcpu *vcpu, struct record *record)
{
	if (record->flags & RIP_KNOWN || !has_rip(vcpu))
		return;
	record->guest_rip = BPF_CORE_READ(vcpu, arch.regs[RIP]);
	record->flags = RIP_KNOWN | RIP_BEHIND;
}
