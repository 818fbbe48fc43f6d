/* SPDX-License-Identifier: GPL-2.0 */
/* A vCPU of an Arm host: words in x1..x13, the number in w0. */

#define HYPERCALL "raw_tp/kvm_hvc_arm64"

#define REGS (1 + MOST_WORDS)
#define HVC_BYTES 4

#include "arm64_vcpu.h"

struct user_pt_regs {
	__u64 regs[31];
} __attribute__((preserve_access_index));

struct kvm_cpu_context {
	struct user_pt_regs regs;
} __attribute__((preserve_access_index));

struct kvm_vcpu_arch {
	struct kvm_cpu_context ctxt;
} __attribute__((preserve_access_index));

struct kvm_vcpu {
	int vcpu_id;
	struct kvm_vcpu_arch arch;
} __attribute__((preserve_access_index));

/* No event of KVM's has it here. */
static __always_inline __u64 vcpu_at_exit(struct bpf_raw_tracepoint_args *ctx)
{
	return 0;
}

static __always_inline struct kvm_vcpu *vcpu_here(__u64 at_exit)
{
	return loaded_vcpu();
}

static __always_inline __u64 number_of(struct bpf_raw_tracepoint_args *ctx)
{
	return (__u32)ctx->args[1];
}

static __always_inline int read_words(struct bpf_raw_tracepoint_args *ctx, struct kvm_vcpu *vcpu,
				      struct record *record)
{
	__u64 regs[REGS];

	if (!vcpu || bpf_core_read(regs, sizeof(regs), &vcpu->arch.ctxt.regs.regs))
		return -1;
	/* Where the guest goes on: behind the instruction. */
	record->guest_rip = ctx->args[0] - HVC_BYTES;
	record->flags = RIP_KNOWN;
#pragma unroll
	for (int at = 0; at < MOST_WORDS; at++)
		record->word[at] = regs[1 + at];
	return 0;
}

static __always_inline void read_rip_late(struct kvm_vcpu *vcpu, struct record *record)
{
}
