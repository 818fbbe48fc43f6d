// SPDX-License-Identifier: GPL-2.0
/*
 * Frames as arguments of a hypercall that no hypervisor knows: it is refused with -KVM_ENOSYS, and
 * seen by whoever records the host's kvm:kvm_hypercall.
 */
#include <linux/cc_platform.h>
#include <linux/kvm_para.h>
#include <linux/moduleparam.h>

#include "stream.h"

static u32 number = 0x48530000;
module_param(number, uint, 0644);
MODULE_PARM_DESC(number, "number of the hypercall (0x48530000)");

static bool force;
module_param(force, bool, 0444);
MODULE_PARM_DESC(force, "make hypercalls also where KVM isn't found");

static uint words = HT_LEAST_WORDS;
module_param(words, uint, 0444);
MODULE_PARM_DESC(words, "words a hypercall carries: 4, or up to 13 if its host reads registers");

int hsg_hypercall_words(unsigned int *to)
{
	if (words < HT_LEAST_WORDS || words > HT_MOST_WORDS)
		return -EINVAL;
	*to = words;
	return 0;
}

static int hypercall_start(void)
{
	/* There the hypervisor sees the registers that it is shown, and no others. */
	if (cc_platform_has(CC_ATTR_GUEST_STATE_ENCRYPT))
		return -EOPNOTSUPP;
	if (!kvm_para_available() && !force)
		return -ENODEV;
	return hsg_hypercall_words(&hsg_hypercalls.words);
}

/*
 * All words are in registers of their own, in the order rbx, rcx, rdx, rsi, rdi, r8 ... r15, also
 * those that a frame leaves empty: loading them costs nothing beside an exit.
 */
static __always_inline void hypercall_wide(const u64 *word)
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
		     : "a"((u64)READ_ONCE(number)), "b"(word[0]), "c"(word[1]), "d"(word[2]),
		       "S"(word[3]), "D"(word[4]), "r"(r8), "r"(r9), "r"(r10), "r"(r11), "r"(r12),
		       "r"(r13), "r"(r14), "r"(r15)
		     : "memory");
}

static void notrace hypercall_send(const struct ht_pack *p)
{
	const u64 *word = p->word;

	if (hsg_hypercalls.words == HT_LEAST_WORDS)
		kvm_hypercall4(READ_ONCE(number), word[0], word[1], word[2], word[3]);
	else
		hypercall_wide(word);
}

static void hypercall_stop(void)
{
}

struct hsg_channel hsg_hypercalls = {
	.words = HT_LEAST_WORDS,
	.start = hypercall_start,
	.send = hypercall_send,
	.stop = hypercall_stop,
};
