/* SPDX-License-Identifier: GPL-2.0 */
/* Exits of an Arm host's vCPUs. */

/* Once on each way back: the vCPU's timer is loaded again. */
#define USER_RETURN "kvm_timer_restore_state"

/* ARM_EXCEPTION_TRAP; above it the kernel marks an SError that came with the exit. */
#define TRAP 2
#define CODE_MASK 0x7fffffff

#include "arm64_vcpu.h"

struct kvm_vcpu {
	int vcpu_id;
} __attribute__((preserve_access_index));

static __always_inline struct exit_reason reason_of(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 ret = ctx->args[0] & CODE_MASK;
	struct exit_reason reason = { .code = ret << 32, .isa = 0 };

	if (ret == TRAP)
		reason.code |= (__u32)ctx->args[1];
	return reason;
}

/* No event of KVM's has it here. */
static __always_inline struct kvm_vcpu *vcpu_here(struct bpf_raw_tracepoint_args *ctx)
{
	return loaded_vcpu();
}

static __always_inline int has_returned(struct bpf_raw_tracepoint_args *ctx)
{
	return 1;
}
