/* SPDX-License-Identifier: GPL-2.0 */
/* The time-stamp counter, and KVM's hypercalls. */
#ifndef HYPERSCOPE_MACHINE_X86_H
#define HYPERSCOPE_MACHINE_X86_H

#include <asm/msr.h>
#include <asm/tsc.h>
#include <linux/cc_platform.h>
#include <linux/kvm_para.h>

/* The host's kvm:kvm_hypercall shows only these. */
#define HSG_USUAL_WORDS	4
#define HSG_LEAST_SHIFT	4
#define HSG_HAS_MEMORY	true

static __always_inline u64 hsg_counter(void)
{
	return rdtsc();
}

static inline u32 hsg_counter_khz(void)
{
	return tsc_khz;
}

static inline int hsg_find_host(void)
{
	/* With encrypted state, the hypervisor sees only registers that the guest exposes. */
	if (cc_platform_has(CC_ATTR_GUEST_STATE_ENCRYPT))
		return -EOPNOTSUPP;
	return kvm_para_available() ? 0 : -ENODEV;
}

/*
 * Each word is in its own register, in the order rbx, rcx, rdx, rsi, rdi, r8 ... r15, even words
 * that a frame does not use: loading them costs nothing compared with an exit.
 */
static __always_inline void hsg_hypercall_wide(u64 number, const u64 *word)
{
	register u64 r8 asm("r8") = word[5];
	register u64 r9 asm("r9") = word[6];
	register u64 r10 asm("r10") = word[7];
	register u64 r11 asm("r11") = word[8];
	register u64 r12 asm("r12") = word[9];
	register u64 r13 asm("r13") = word[10];
	register u64 r14 asm("r14") = word[11];
	register u64 r15 asm("r15") = word[12];
	long ret;

	asm volatile(KVM_HYPERCALL
		     : "=a"(ret)
		     : "a"(number), "b"(word[0]), "c"(word[1]), "d"(word[2]), "S"(word[3]),
		       "D"(word[4]), "r"(r8), "r"(r9), "r"(r10), "r"(r11), "r"(r12), "r"(r13),
		       "r"(r14), "r"(r15)
		     : "memory");
}

static __always_inline void hsg_hypercall(u64 number, const u64 *word, unsigned int words)
{
	if (words == HSG_USUAL_WORDS)
		kvm_hypercall4(number, word[0], word[1], word[2], word[3]);
	else
		hsg_hypercall_wide(number, word);
}

#endif
