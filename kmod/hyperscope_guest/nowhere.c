// SPDX-License-Identifier: GPL-2.0
/* Frames that leave for nowhere: what a guest spends on packing events alone. */
#include "stream.h"

static int nowhere_start(void)
{
	/* Events are packed as for a hypercall, or they would cost something else. */
	return hsg_hypercall_words(&hsg_nowhere.words);
}

static void notrace nowhere_send(const struct ht_pack *p)
{
}

static void nowhere_stop(void)
{
}

struct hsg_channel hsg_nowhere = {
	.words = HT_LEAST_WORDS,
	.start = nowhere_start,
	.send = nowhere_send,
	.stop = nowhere_stop,
};
