/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is added up, and where: rows of exits in two banks, one for the interval that goes on and
 * one for that which has been closed; and what did not fit.
 */

/* Four buckets to each power of two, from 2^-24 s (60 ns) to 16 s. */
#define BUCKETS 112
/* The binary logarithm of the first one's lower end, in units of 2^-60 s. */
#define FIRST_OCTAVE 36
/* A nanosecond in those units, rounded down. */
#define UNITS_A_NS 1152921504ULL
#define MOST_NS 15999999999ULL

/* Parts of an exit's time. */
enum part { KERNEL_NS, USER_NS, RUNNABLE_NS, BLOCKED_NS, HALT_POLL_NS, PARTS };

/* Who dealt with an exit: each outranks the ones before. */
enum handler { BY_KERNEL, BY_USER, BY_L1, HANDLERS };

/* level is 0 where the row is of what a thread waited for a CPU. */
struct key {
	__u32 thread;
	__u8 level;
	__u8 isa;
	__u16 zero;
	__u64 code;
};

struct row {
	__u64 count;
	__u64 paired;
	__u64 time_ns;
	__u64 before_exit_ns;
	__u64 guest_ns;
	__u64 parts[PARTS];
	__u64 handled[HANDLERS];
	__u64 user_return_unseen;
	__u64 poll_unknown;
	/* By time; longer ones are in none. */
	__u32 buckets[BUCKETS];
};

/* crates/record/live/src/layout.rs has these. */
_Static_assert(sizeof(struct key) == 16, "as the reader has it");
_Static_assert(sizeof(struct row) == 568, "as the reader has it");
_Static_assert(__builtin_offsetof(struct row, buckets) == 120, "as the reader has it");

static const struct row no_row;

struct rows {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct key);
	__type(value, struct row);
};

struct rows rows_0 SEC(".maps");
struct rows rows_1 SEC(".maps");

/* Exits whose row had no room, each CPU for itself, by bank. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct row);
} other SEC(".maps");

/* When the interval that goes on began or will begin; the last bit is its bank. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} interval SEC(".maps");

/* What is counted, each CPU for itself. */
enum count {
	/* More vCPUs than there is room for. */
	EXITS_WITHOUT_STATE,
	/* In one exit the thread ran in more pieces than are kept. */
	PIECES_LEFT_OUT,
	/* Waits for a CPU whose row had no room. */
	WAITS_LEFT_OUT,
	/* Threads that ran while a vCPU waited, for which there was no room. */
	TAKERS_LEFT_OUT,
	/*
	 * Switches and wake-ups of vCPUs' threads that were not traced: what came next says that they
	 * must have been. Linux 6.18 does not trace one switch in some hundreds.
	 */
	SCHED_EVENTS_UNSEEN,
	COUNTS,
};

#include "counts.h"

static __always_inline __u64 interval_word(void)
{
	__u32 first = 0;
	__u64 *word = bpf_map_lookup_elem(&interval, &first);

	return word ? *word : 0;
}

/* The bank for what ended at this time. */
static __always_inline __u32 bank_at(__u64 now_ns)
{
	__u64 word = interval_word();

	return (word ^ (now_ns < (word & ~1ULL))) & 1;
}

/* What the compiler can't see through, so that what is checked is what is used. */
#define AS_IT_IS(value) __asm__ volatile("" : "+r"(value))

static __always_inline __u64 least(__u64 one, __u64 other)
{
	return one < other ? one : other;
}

static __always_inline __u64 most(__u64 one, __u64 other)
{
	return one > other ? one : other;
}

static __always_inline __u64 log2_of(__u64 value)
{
	__u64 log = 0, shift;

	shift = (__u64)(value > 0xffffffffULL) << 5;
	value >>= shift;
	log |= shift;
	shift = (__u64)(value > 0xffff) << 4;
	value >>= shift;
	log |= shift;
	shift = (__u64)(value > 0xff) << 3;
	value >>= shift;
	log |= shift;
	shift = (__u64)(value > 0xf) << 2;
	value >>= shift;
	log |= shift;
	shift = (__u64)(value > 0x3) << 1;
	value >>= shift;
	log |= shift;
	return log | value >> 1;
}

/* 2^(1/4), 2^(1/2) and 2^(3/4) with 63 bits of fraction. */
#define FOURTH_1 0x9837f0518db8a96fULL
#define FOURTH_2 0xb504f333f9de6484ULL
#define FOURTH_3 0xd744fccad69d6af4ULL

static __always_inline void add_to_buckets(struct row *row, __u64 took_ns)
{
	__u64 units = took_ns * UNITS_A_NS, mantissa, octave, bucket;

	if (took_ns > MOST_NS)
		return;
	octave = log2_of(units | 1);
	mantissa = units << (63 - octave);
	bucket = 0;
	if (octave >= FIRST_OCTAVE)
		bucket = 4 * (octave - FIRST_OCTAVE) + (mantissa > FOURTH_1) +
			 (mantissa > FOURTH_2) + (mantissa > FOURTH_3);
	AS_IT_IS(bucket);
	if (bucket < BUCKETS)
		row->buckets[bucket]++;
}

/*
 * The row of what ended at this time. Where there is no room, that of all other exits; waits for a
 * CPU are not put together with those.
 */
static __noinline struct row *row_of(struct key *key, __u64 now_ns)
{
	__u32 bank = bank_at(now_ns);
	struct row *row;

	if (bank) {
		row = bpf_map_lookup_elem(&rows_1, key);
		if (row)
			return row;
		if (!bpf_map_update_elem(&rows_1, key, &no_row, BPF_NOEXIST))
			return bpf_map_lookup_elem(&rows_1, key);
	} else {
		row = bpf_map_lookup_elem(&rows_0, key);
		if (row)
			return row;
		if (!bpf_map_update_elem(&rows_0, key, &no_row, BPF_NOEXIST))
			return bpf_map_lookup_elem(&rows_0, key);
	}
	if (!key->level)
		return count(WAITS_LEFT_OUT), (struct row *)0;
	return bpf_map_lookup_elem(&other, &bank);
}
