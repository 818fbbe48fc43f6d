/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packs events of one CPU into frames; docs/formats/hypertrace.md specifies the format.
 *
 * This file does not depend on the kernel, so that tests can compile it as a program. A file that
 * includes it defines three functions:
 *
 *	ht_now()     the time, in units of the stream
 *	ht_send()    sends the frame in p->word
 *	ht_symbol()  gets the name of a function; returns its length, or 0 if it has none
 *
 * and never calls the other functions concurrently or nested for the same CPU.
 */
#ifndef HYPERSCOPE_PACK_H
#define HYPERSCOPE_PACK_H

#include <linux/types.h>

#define HT_VERSION	3

/* Words of a frame: a hypercall's arguments, and further registers. */
#define HT_LEAST_WORDS	4
#define HT_MOST_WORDS	13

/* A stream sends its parameters and resets its tables after this many frames ... */
#define HT_KEY_FRAMES	1024
/* ... or this many milliseconds. */
#define HT_KEY_MS	1000
/* Names of functions are long: they are repeated only after this many times HT_KEY_MS. */
#define HT_NAMES_KEYS	10

#define HT_COMM_WORDS	2
#define HT_COMM_LEN	(8 * HT_COMM_WORDS)

enum ht_kind {
	HT_END		= 0,
	HT_SWITCH	= 1,
	HT_WAKE		= 2,
	HT_IRQ		= 3,
	HT_SYSCALL	= 4,
	HT_CALL		= 5,
	HT_TASK		= 6,
	HT_MORE		= 7,
};

enum ht_more {
	HT_HELLO	= 0,
	HT_CURRENT	= 1,
	HT_LOST		= 2,
	HT_FUNCTION	= 3,
	HT_IRQ_NAME	= 4,
	HT_BYE		= 5,
	HT_NAME		= 6,
};

enum ht_wake {
	HT_WAKING	= 0,
	HT_WAKEUP	= 1,
	HT_WAKEUP_NEW	= 2,
};

enum ht_lost {
	HT_LOST_NMI	= 0,
	HT_LOST_NESTED	= 1,
	HT_LOST_REASONS,
};

#define HT_KIND_BITS	3
#define HT_MORE_BITS	3
#define HT_SEQ_BITS	8
#define HT_SLOT_BITS	6
#define HT_CALL_BITS	7
#define HT_PID_BITS	22

#define HT_AGE_SHORT	12
#define HT_AGE_LONG	28
#define HT_END_SHORT	(HT_KIND_BITS + 1 + HT_AGE_SHORT)
#define HT_END_LONG	(HT_KIND_BITS + 1 + HT_AGE_LONG)

/* A task's state as in sched_switch: the number of its bit, from 1; 0: it stays runnable. */
#define HT_STATE_PREEMPTED	15

#define HT_SLOTS	64
#define HT_CALLS	128
#define HT_NO_SLOT	0xff

/* A function's name is split into pieces that fit in a frame. */
#define HT_PIECE_LEN	15
#define HT_NAME_LEN	(8 * HT_PIECE_LEN)
/* Hash bits of functions whose names were sent. */
#define HT_NAMED_BITS	4096

/* A task's fields in sched_switch. */
struct ht_task {
	__u64 comm[HT_COMM_WORDS];
	__u32 pid;
	/* the kernel's prio + 1, because that may be -1 */
	__u32 prio;
};

struct ht_pack {
	__u64 word[HT_MOST_WORDS];
	__u32 used_bits;
	/* number of events in this frame */
	__u32 events;
	/* time of the last event, in this frame or an earlier one */
	__u64 last;

	__u32 words;
	__u32 shift;
	__u32 counter_khz;
	__u32 cpu;
	__u32 probes;
	__u32 preempted_bit;
	/* Max events per frame; 0: as many as fit */
	__u32 most_events;

	__u64 keyed_at;
	__u64 key_units;
	__u32 key_frames;
	__u32 seq;
	/* since the stream's begin */
	__u32 sent_events;
	__u8 began;
	__u8 current_slot;

	/* Tables that the reader mirrors: two-way set-associative, by hash. */
	__u8 task_newer[HT_SLOTS / 2];
	__u8 call_newer[HT_CALLS / 2];
	struct ht_task task[HT_SLOTS];
	__u64 call[HT_CALLS];
	__u64 named_at;
	__u64 named[HT_NAMED_BITS / 64];
	__u64 irq_named[4];
};

static __u64 ht_now(const struct ht_pack *p);
static void ht_send(struct ht_pack *p);
static __u32 ht_symbol(struct ht_pack *p, __u64 address, const char **name);

static inline void ht_put(struct ht_pack *p, __u64 value, __u32 bits)
{
	__u32 at = p->used_bits % 64;
	__u32 word = p->used_bits / 64;

	p->word[word] |= value << at;
	if (at + bits > 64)
		p->word[word + 1] = value >> (64 - at);
	p->used_bits += bits;
}

static inline void ht_new_frame(struct ht_pack *p)
{
	__u32 at;

	for (at = 0; at < HT_MOST_WORDS; at++)
		p->word[at] = 0;
	p->word[0] = p->seq & ((1 << HT_SEQ_BITS) - 1);
	p->used_bits = HT_SEQ_BITS;
	p->events = 0;
}

/* Ends the frame, which always has room for the end record, and sends it. */
static inline void ht_flush(struct ht_pack *p)
{
	__u32 room = 64 * p->words - p->used_bits;
	__u32 bits = room >= HT_END_LONG ? HT_AGE_LONG : HT_AGE_SHORT;
	__u64 most = (1ULL << bits) - 1;
	__u64 age = p->events ? ht_now(p) - p->last : 0;

	/* The max value means that the age is unknown. */
	if (age > most)
		age = most;
	ht_put(p, HT_END | (__u64)(bits == HT_AGE_LONG) << HT_KIND_BITS, HT_KIND_BITS + 1);
	ht_put(p, age, bits);
	ht_send(p);
	p->seq++;
	p->key_frames++;
	ht_new_frame(p);
}

static inline int ht_is_empty(const struct ht_pack *p)
{
	return p->used_bits == HT_SEQ_BITS;
}

/* Makes room for a record without a time. */
static inline void ht_reserve(struct ht_pack *p, __u32 bits)
{
	if (p->used_bits + bits + HT_END_LONG > 64 * p->words)
		ht_flush(p);
}

static inline void ht_put_more(struct ht_pack *p, enum ht_more more)
{
	ht_put(p, HT_MORE | more << HT_KIND_BITS, HT_KIND_BITS + HT_MORE_BITS);
}

/* Resets the tables and sends the stream's parameters. */
static inline void ht_key(struct ht_pack *p, __u64 now)
{
	__u32 at;

	if (!ht_is_empty(p))
		ht_flush(p);
	for (at = 0; at < HT_SLOTS; at++)
		p->task[at].pid = 0;
	for (at = 0; at < HT_CALLS; at++)
		p->call[at] = 0;
	for (at = 0; at < 4; at++)
		p->irq_named[at] = 0;
	if (!p->began || now - p->named_at >= HT_NAMES_KEYS * p->key_units) {
		for (at = 0; at < HT_NAMED_BITS / 64; at++)
			p->named[at] = 0;
		p->named_at = now;
	}
	if (!p->began) {
		p->sent_events = 0;
		p->last = now;
	}
	p->current_slot = HT_NO_SLOT;
	p->keyed_at = now;
	p->key_frames = 0;
	ht_put_more(p, HT_HELLO);
	ht_put(p, HT_VERSION, 4);
	ht_put(p, p->began, 1);
	ht_put(p, p->cpu, 16);
	ht_put(p, p->counter_khz, 32);
	ht_put(p, p->shift, 5);
	ht_put(p, p->words, 4);
	ht_put(p, p->preempted_bit, 4);
	ht_put(p, p->probes, 8);
	p->began = 1;
}

/* Called before all records of an event. */
static inline void ht_begin(struct ht_pack *p, __u64 now)
{
	if (!p->began || p->key_frames >= HT_KEY_FRAMES || now - p->keyed_at >= p->key_units)
		ht_key(p, now);
}

/*
 * Starts a stream. The caller has set words, shift, counter_khz, cpu, probes, preempted_bit and
 * most_events.
 */
static inline void ht_restart(struct ht_pack *p)
{
	p->began = 0;
	p->seq = 0;
	p->key_units = ((__u64)p->counter_khz * HT_KEY_MS) >> p->shift;
	ht_new_frame(p);
}

static inline __u32 ht_delta_class(__u64 delta)
{
	return delta < 1ULL << 6 ? 0 : delta < 1ULL << 11 ? 1 : delta < 1ULL << 17 ? 2 : 3;
}

static inline __u32 ht_delta_bits(__u32 class)
{
	return class == 0 ? 6 : class == 1 ? 11 : class == 2 ? 17 : 30;
}

/* Larger than any encoded delta; as an encoded value it means that the delta is unknown. */
#define HT_DELTA_UNKNOWN	((1ULL << 30) - 1)

/*
 * Adds an event with its time. The head has kind and content in less than 64 bits; a tail is
 * optional. The frame is sent at once if the event only just fits, so that a short age suffices,
 * or if it has the max number of events.
 */
static inline void ht_event(struct ht_pack *p, __u64 now, __u64 head, __u32 head_bits,
			    __u64 tail, __u32 tail_bits)
{
	__u32 size = 64 * p->words;
	__u64 delta = now - p->last;
	__u32 class, bits;

	if (delta >= HT_DELTA_UNKNOWN) {
		/* Deltas add up in a frame, so an unknown one must begin a frame. */
		if (p->events)
			ht_flush(p);
		delta = HT_DELTA_UNKNOWN;
	}
	class = ht_delta_class(delta);
	bits = ht_delta_bits(class);
	if (p->used_bits + head_bits + tail_bits + 2 + bits + HT_END_SHORT > size)
		ht_flush(p);
	ht_put(p, head, head_bits);
	if (tail_bits)
		ht_put(p, tail, tail_bits);
	ht_put(p, class, 2);
	ht_put(p, delta, bits);
	p->last = now;
	p->events++;
	p->sent_events++;
	if (p->used_bits + HT_END_LONG > size || p->events == p->most_events)
		ht_flush(p);
}

static inline __u32 ht_text_length(const __u64 *text)
{
	__u32 length = 0;

	while (length < HT_COMM_LEN - 1 && (__u8)(text[length / 8] >> (8 * (length % 8))))
		length++;
	return length;
}

static inline void ht_put_text(struct ht_pack *p, const __u64 *text)
{
	__u32 length = ht_text_length(text);
	__u32 at;

	ht_put(p, length, 4);
	for (at = 0; at < length; at++)
		ht_put(p, (__u8)(text[at / 8] >> (8 * (at % 8))), 8);
}

static inline int ht_is_task(const struct ht_task *a, const struct ht_task *b)
{
	return a->pid == b->pid && a->prio == b->prio && a->comm[0] == b->comm[0] &&
	       a->comm[1] == b->comm[1];
}

/* The table slot of a task; slot 0 is always the CPU's own idle task. */
static inline __u32 ht_task_slot(struct ht_pack *p, const struct ht_task *task)
{
	__u32 set = task->pid % (HT_SLOTS / 2);
	__u32 slot;

	if (!task->pid)
		return 0;
	for (slot = 2 * set; slot < 2 * set + 2; slot++) {
		if (ht_is_task(&p->task[slot], task)) {
			p->task_newer[set] = slot & 1;
			return slot;
		}
	}
	/* The least recently used slot, or the slot of an earlier state of this task. */
	slot = 2 * set + !p->task_newer[set];
	if (p->task[slot ^ 1].pid == task->pid)
		slot ^= 1;
	if (!slot)
		slot = 1;
	p->task_newer[set] = slot & 1;
	p->task[slot] = *task;
	/* The reader knows the current task as the slot's earlier content. */
	if (slot == p->current_slot)
		p->current_slot = HT_NO_SLOT;
	ht_reserve(p, HT_KIND_BITS + HT_SLOT_BITS + HT_PID_BITS + 8 + 4 +
		   8 * ht_text_length(task->comm));
	ht_put(p, HT_TASK, HT_KIND_BITS);
	ht_put(p, slot, HT_SLOT_BITS);
	ht_put(p, task->pid, HT_PID_BITS);
	ht_put(p, task->prio, 8);
	ht_put_text(p, task->comm);
	return slot;
}

/* Sends the current task, unless the last switch determines it. */
static inline void ht_running(struct ht_pack *p, const struct ht_task *task)
{
	__u32 slot = ht_task_slot(p, task);

	if (slot == p->current_slot)
		return;
	ht_reserve(p, HT_KIND_BITS + HT_MORE_BITS + HT_SLOT_BITS);
	ht_put_more(p, HT_CURRENT);
	ht_put(p, slot, HT_SLOT_BITS);
	p->current_slot = slot;
}

/* One function per event type follows; each gets the current task. */

static inline void ht_pack_switch(struct ht_pack *p, __u64 now, const struct ht_task *prev,
				  __u32 state, const struct ht_task *next)
{
	__u32 class = state == 1 ? 0 : state == HT_STATE_PREEMPTED ? 1 : state == 0 ? 2 : 3;
	__u32 bits = HT_KIND_BITS;
	__u64 head = HT_SWITCH;
	__u32 slot;

	ht_begin(p, now);
	ht_running(p, prev);
	slot = ht_task_slot(p, next);
	head |= (__u64)class << bits;
	bits += 2;
	if (class == 3) {
		head |= (__u64)state << bits;
		bits += 4;
	}
	head |= (__u64)slot << bits;
	bits += HT_SLOT_BITS;
	ht_event(p, now, head, bits, 0, 0);
	p->current_slot = slot;
}

static inline void ht_pack_wake(struct ht_pack *p, __u64 now, const struct ht_task *running,
				enum ht_wake what, const struct ht_task *woken, __u32 cpu)
{
	__u32 here = cpu == p->cpu;
	__u32 bits = HT_KIND_BITS + 2 + HT_SLOT_BITS + 1;
	__u64 head;

	ht_begin(p, now);
	ht_running(p, running);
	head = ht_task_slot(p, woken);
	head = HT_WAKE | what << HT_KIND_BITS | head << (HT_KIND_BITS + 2) |
	       (__u64)here << (bits - 1);
	if (!here) {
		head |= (__u64)(cpu & 0xffff) << bits;
		bits += 16;
	}
	ht_event(p, now, head, bits, 0, 0);
}

static inline void ht_name_irq(struct ht_pack *p, __u32 irq, const __u64 *name)
{
	__u64 bit = 1ULL << (irq % 64);

	if (irq >= 256 || p->irq_named[irq / 64] & bit)
		return;
	p->irq_named[irq / 64] |= bit;
	ht_reserve(p, HT_KIND_BITS + HT_MORE_BITS + 8 + 4 + 8 * ht_text_length(name));
	ht_put_more(p, HT_IRQ_NAME);
	ht_put(p, irq, 8);
	ht_put_text(p, name);
}

/* Head of an interrupt or system call: entry or exit, and its number in few or in 32 bits. */
static inline __u64 ht_numbered(enum ht_kind kind, __u32 exit, __u32 number, __u32 few, __u32 *bits)
{
	__u32 wide = number >> few != 0;
	__u64 head = kind | exit << HT_KIND_BITS | wide << (HT_KIND_BITS + 1);

	*bits = HT_KIND_BITS + 2 + (wide ? 32 : few);
	return head | (__u64)number << (HT_KIND_BITS + 2);
}

static inline void ht_pack_irq_entry(struct ht_pack *p, __u64 now, const struct ht_task *running,
				     __u32 irq, const __u64 *name)
{
	__u32 bits;
	__u64 head = ht_numbered(HT_IRQ, 0, irq, 8, &bits);

	ht_begin(p, now);
	ht_running(p, running);
	ht_name_irq(p, irq, name);
	ht_event(p, now, head, bits, 0, 0);
}

static inline void ht_pack_irq_exit(struct ht_pack *p, __u64 now, const struct ht_task *running,
				    __u32 irq, __u32 handled)
{
	__u32 bits;
	__u64 head = ht_numbered(HT_IRQ, 1, irq, 8, &bits);

	ht_begin(p, now);
	ht_running(p, running);
	ht_event(p, now, head | (__u64)handled << bits, bits + 1, 0, 0);
}

static inline void ht_pack_sys_enter(struct ht_pack *p, __u64 now, const struct ht_task *running,
				     __u32 number)
{
	__u32 bits;
	__u64 head = ht_numbered(HT_SYSCALL, 0, number, 9, &bits);

	ht_begin(p, now);
	ht_running(p, running);
	ht_event(p, now, head, bits, 0, 0);
}

static inline void ht_pack_sys_exit(struct ht_pack *p, __u64 now, const struct ht_task *running,
				    __u32 number, __s64 ret)
{
	__u32 class = ret == 0 ? 0 : ret > 0 && ret < 1 << 16 ? 1 : ret < 0 && ret > -4096 ? 2 : 3;
	__u32 tail_bits = class == 0 ? 0 : class == 1 ? 16 : class == 2 ? 12 : 64;
	__u64 tail = class == 2 ? (__u64)-ret : (__u64)ret;
	__u32 bits;
	__u64 head = ht_numbered(HT_SYSCALL, 1, number, 9, &bits);

	ht_begin(p, now);
	ht_running(p, running);
	ht_event(p, now, head | (__u64)class << bits, bits + 2, tail, tail_bits);
}

/*
 * Sends a function's name unless it was sent before. Functions may collide in a hash bit; the hash
 * changes whenever the names are reset, so that each name is sent eventually.
 */
static inline void ht_name_call(struct ht_pack *p, __u32 slot, __u64 address)
{
	__u32 hash = ((address ^ p->named_at) * 0x9e3779b97f4a7c15ULL) >> 52;
	__u64 bit = 1ULL << (hash % 64);
	__u32 length, at = 0, piece, byte;
	const char *name;

	if (p->named[hash / 64] & bit)
		return;
	p->named[hash / 64] |= bit;
	length = ht_symbol(p, address, &name);
	if (length > HT_NAME_LEN)
		length = HT_NAME_LEN;
	while (at < length) {
		piece = length - at < HT_PIECE_LEN ? length - at : HT_PIECE_LEN;
		ht_reserve(p, HT_KIND_BITS + HT_MORE_BITS + HT_CALL_BITS + 1 + 4 + 8 * piece);
		ht_put_more(p, HT_NAME);
		ht_put(p, slot, HT_CALL_BITS);
		ht_put(p, at + piece < length, 1);
		ht_put(p, piece, 4);
		for (byte = 0; byte < piece; byte++)
			ht_put(p, (__u8)name[at + byte], 8);
		at += piece;
	}
}

static inline __u32 ht_call_slot(struct ht_pack *p, __u64 address)
{
	__u32 set = (address >> 4 ^ address >> 10) % (HT_CALLS / 2);
	__u32 slot;

	for (slot = 2 * set; slot < 2 * set + 2; slot++) {
		if (p->call[slot] == address) {
			p->call_newer[set] = slot & 1;
			return slot;
		}
	}
	slot = 2 * set + !p->call_newer[set];
	p->call_newer[set] = slot & 1;
	p->call[slot] = address;
	ht_reserve(p, HT_KIND_BITS + HT_MORE_BITS + HT_CALL_BITS + 48);
	ht_put_more(p, HT_FUNCTION);
	ht_put(p, slot, HT_CALL_BITS);
	ht_put(p, address & ((1ULL << 48) - 1), 48);
	ht_name_call(p, slot, address);
	return slot;
}

static inline void ht_pack_call(struct ht_pack *p, __u64 now, const struct ht_task *running,
				__u32 exit, __u64 address)
{
	__u64 head;

	ht_begin(p, now);
	ht_running(p, running);
	head = ht_call_slot(p, address);
	head = HT_CALL | exit << HT_KIND_BITS | head << (HT_KIND_BITS + 1);
	ht_event(p, now, head, HT_KIND_BITS + 1 + HT_CALL_BITS, 0, 0);
}

static inline void ht_pack_lost(struct ht_pack *p, __u64 now, enum ht_lost reason, __u32 count)
{
	ht_begin(p, now);
	ht_reserve(p, HT_KIND_BITS + HT_MORE_BITS + 2 + 32);
	ht_put_more(p, HT_LOST);
	ht_put(p, reason, 2);
	ht_put(p, count, 32);
}

/* Ends the stream in order, and sends the rest of the frame. */
static inline void ht_finish(struct ht_pack *p)
{
	if (!p->began)
		return;
	ht_reserve(p, HT_KIND_BITS + HT_MORE_BITS + 32);
	ht_put_more(p, HT_BYE);
	ht_put(p, p->sent_events, 32);
	ht_flush(p);
	p->began = 0;
}

#endif
