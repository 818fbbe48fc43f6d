/* SPDX-License-Identifier: GPL-2.0 */
/* How frames leave the guest. */
#ifndef HYPERSCOPE_SEND_H
#define HYPERSCOPE_SEND_H

#include <linux/types.h>

struct ht_pack;

/**
 * struct hsg_channel - sends frames to the host
 * @words: words per frame, from HT_LEAST_WORDS to HT_MOST_WORDS
 * @init: called at load; may sleep; returns 0 or an error; may be NULL
 * @exit: called at unload, after the last @stop; set together with @init
 * @start: prepares the channel; may sleep; returns 0 or an error
 * @update: publishes the incomplete frame after each event, in the context of @send; NULL: events
 *	wait until their frame is full or too old
 * @send: sends one frame; called with interrupts off, from any context but NMIs, on its CPU
 * @stop: called after the last frame
 */
struct hsg_channel {
	unsigned int words;
	int (*init)(void);
	void (*exit)(void);
	int (*start)(void);
	void (*update)(const struct ht_pack *p);
	void (*send)(const struct ht_pack *p);
	void (*stop)(void);
};

extern struct hsg_channel hsg_hypercalls;
extern struct hsg_channel hsg_memory;
extern struct hsg_channel hsg_nowhere;

/*
 * The channel's device has gone, or come back. The first function stops all probes: nothing is sent
 * after it returns. The second one enables the requested probes again. Call both with the module's
 * parameter lock held.
 */
void hsg_channel_is_gone(void);
void hsg_channel_is_back(void);

/* Gets the requested words per hypercall; returns 0 or an error. */
int hsg_hypercall_words(unsigned int *to);

#endif
