/* SPDX-License-Identifier: GPL-2.0 */
/* The virtual counter, and hypercalls by the SMC calling convention (Arm DEN 0028). */
#ifndef HYPERSCOPE_MACHINE_ARM64_H
#define HYPERSCOPE_MACHINE_ARM64_H

#include <asm/hypervisor.h>
#include <asm/sysreg.h>
#include <linux/arm-smccc.h>
#include <linux/math.h>

/* kvm:kvm_hvc_arm64 shows only x0: a host must read registers to see words, so use all. */
#define HSG_USUAL_WORDS	13
#define HSG_LEAST_SHIFT	0
/* The host adds an offset to the guest's counter, and does not expose it. */
#define HSG_HAS_MEMORY	false

static __always_inline u64 hsg_counter(void)
{
	return read_sysreg(cntvct_el0);
}

static inline u32 hsg_counter_khz(void)
{
	return DIV_ROUND_CLOSEST(read_sysreg(cntfrq_el0), 1000);
}

static inline int hsg_find_host(void)
{
	/* From version 1.1 of the convention on, calls preserve x4 and higher registers. */
	if (arm_smccc_1_1_get_conduit() != SMCCC_CONDUIT_HVC)
		return -ENODEV;
	return kvm_arm_hyp_service_available(ARM_SMCCC_KVM_FUNC_FEATURES) ? 0 : -ENODEV;
}

/*
 * Each word is in its own register, x1 ... x13, even words that a frame does not use. The number is
 * an unassigned function identifier of a yielding call; KVM refuses it in x0, and returns zeros in
 * x1 to x3.
 */
static __always_inline void hsg_hypercall(u64 number, const u64 *word, unsigned int words)
{
	register u64 x0 asm("x0") = number;
	register u64 x1 asm("x1") = word[0];
	register u64 x2 asm("x2") = word[1];
	register u64 x3 asm("x3") = word[2];
	register u64 x4 asm("x4") = word[3];
	register u64 x5 asm("x5") = word[4];
	register u64 x6 asm("x6") = word[5];
	register u64 x7 asm("x7") = word[6];
	register u64 x8 asm("x8") = word[7];
	register u64 x9 asm("x9") = word[8];
	register u64 x10 asm("x10") = word[9];
	register u64 x11 asm("x11") = word[10];
	register u64 x12 asm("x12") = word[11];
	register u64 x13 asm("x13") = word[12];

	asm volatile("hvc #0"
		     : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)
		     : "r"(x4), "r"(x5), "r"(x6), "r"(x7), "r"(x8), "r"(x9), "r"(x10), "r"(x11),
		       "r"(x12), "r"(x13)
		     : "memory");
}

#endif
