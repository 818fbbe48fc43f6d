/* SPDX-License-Identifier: GPL-2.0 */
/* How frames leave the guest. */
#ifndef HYPERSCOPE_SEND_H
#define HYPERSCOPE_SEND_H

#include <linux/types.h>

struct ht_pack;

/**
 * struct hsg_channel - takes frames to the host
 * @words: of a frame, from HT_LEAST_WORDS to HT_MOST_WORDS
 * @init: at load; may sleep; 0 or an error; NULL: nothing to do
 * @exit: at unload, after the last @stop; with @init
 * @start: makes the channel ready; may sleep; 0 or an error
 * @update: sees what the frame has so far, after each event; NULL: events wait for their frame to
 *	be full, or old. Called as @send
 * @send: takes one frame; called with interrupts off, from any context but NMIs, on its CPU
 * @stop: no frame comes after this
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
 * What a channel needs has gone, or come back: what is traced stops, so that nothing is sent when
 * the first returns, and goes on as it was asked for. Under the lock of the module's parameters.
 */
void hsg_channel_is_gone(void);
void hsg_channel_is_back(void);

/* How many words a hypercall was asked to carry; 0 or an error. */
int hsg_hypercall_words(unsigned int *to);

#endif
