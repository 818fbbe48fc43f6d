// SPDX-License-Identifier: GPL-2.0
/*
 * Sends frames as arguments of an unassigned hypercall. KVM refuses it, but traces it before: the
 * host records kvm:kvm_hypercall, or collects hypercalls with their registers by BPF.
 */
#include <linux/moduleparam.h>

#include "stream.h"

static u32 number = 0x48530000;
module_param(number, uint, 0644);
MODULE_PARM_DESC(number, "number of the hypercall (0x48530000)");

static bool force;
module_param(force, bool, 0444);
MODULE_PARM_DESC(force, "make hypercalls also where KVM isn't found");

static uint words = HSG_USUAL_WORDS;
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
	int error = hsg_find_host();

	if (error && !(error == -ENODEV && force))
		return error;
	return hsg_hypercall_words(&hsg_hypercalls.words);
}

static void notrace hypercall_send(const struct ht_pack *p)
{
	hsg_hypercall(READ_ONCE(number), p->word, p->words);
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
