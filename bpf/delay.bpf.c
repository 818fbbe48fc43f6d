// SPDX-License-Identifier: GPL-2.0
/*
 * Makes chosen exits of chosen vCPU threads longer by a known time, and counts: the delay is waited for in
 * kvm_exit, in the vCPU's thread, so that the guest's next entry is later by it.
 *
 * Which exits, and by how much, is one word that the loader changes from slice to slice. No other thread
 * than those that the loader names is ever delayed, and none for longer than MOST_DELAY_NS at a time. The
 * programs are gone with whoever loaded them. crates/record/delayer loads them, docs/sensitivity.md has what it
 * is good for.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "live_task.h"

#if defined(__TARGET_ARCH_x86)
#include "live_x86.h"
#elif defined(__TARGET_ARCH_arm64)
#include "live_arm64.h"
#endif

/* Whatever is asked for: on VMX this is waited for with interrupts off. */
#define MOST_DELAY_NS 100000
/* Looks at the clock, at most; far more than MOST_DELAY_NS has room for. */
#define MOST_LOOKS (1 << 20)
/* Codes of exits that can be asked for. */
#define MOST_CODES 8

/* What the loader sets: codes of exits, how many there are, and a bit for each that shows progress. */
const volatile __u64 codes[MOST_CODES] = {};
const volatile __u32 codes_used = 0;
const volatile __u32 progress_places = 0;

/* Slices of time whose counts are kept apart: the one that goes on, and those before it. A power of two. */
#define SLOTS 4

struct thread {
	/* Its exits are delayed; else they show progress only. */
	__u64 is_delayed;
	/* Since when an exit with one of the codes is handled; 0: none is. */
	__u64 exit_ns;
	/* Its code's place, and above it the slice in which it came. */
	__u64 place;
};

/* Threads by their ids; the loader puts them here, and nobody else. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

/*
 * One word, so that it changes at once: the delay in nanoseconds, above it a bit for each place that it is for, and
 * from SLICE_SHIFT on the number of the slice.
 */
#define SLICE_SHIFT 40
#define SLICE_MASK 0xffffff
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} setting SEC(".maps");

/* What is counted in a slice; the last four for each code. */
enum count {
	/* Exits that show progress. */
	PROGRESS,
	/* Exits of other threads: none of them is delayed. */
	FOREIGN,
	/* Exits with a code, from here on: how many were delayed, and how long all took until they could go on. */
	EXITS_DELAYED,
	DELAY_NS,
	/* Those that were seen to end, and how long they took without the delay. */
	EXITS_HANDLED,
	HANDLED_NS,
	OF_CODE_END,
};

#define OF_CODE (OF_CODE_END - EXITS_DELAYED)
#define OF_SLOT (EXITS_DELAYED + OF_CODE * MOST_CODES)
#define COUNTS (OF_SLOT * SLOTS)

#include "counts.h"

/* The word that the loader has set. */
static __always_inline __u64 setting_word(void)
{
	__u32 zero = 0;
	__u64 *word = bpf_map_lookup_elem(&setting, &zero);

	return word ? *word : 0;
}

static __always_inline __u32 slice_of(__u64 word)
{
	return word >> SLICE_SHIFT & SLICE_MASK;
}

/* Counts belong to the slice in which their exit came. */
static __always_inline void add_in(__u32 slice, __u32 what, __u64 more)
{
	add((slice & (SLOTS - 1)) * OF_SLOT + what, more);
}

/* The same of an exit with a code; one that lasts longer than the slice after its own is left out, as nobody reads it any more. */
static __always_inline void add_of(__u32 slice, __u32 what, __u32 place, __u64 more)
{
	if (((slice_of(setting_word()) - slice) & SLICE_MASK) <= 1)
		add_in(slice, what + place * OF_CODE, more);
}

struct wait {
	__u64 until_ns;
};

static long look(__u32 at, struct wait *wait)
{
	return bpf_ktime_get_ns() >= wait->until_ns;
}

/* Waits in the processor; returns for how long. */
static __always_inline __u64 wait_from(__u64 begin_ns, __u64 delay_ns)
{
	struct wait wait = { .until_ns = begin_ns + delay_ns };

	bpf_loop(MOST_LOOKS, look, &wait, 0);
	return bpf_ktime_get_ns() - begin_ns;
}

/* What looking at the clock takes longer than asked for, at most. */
#define MOST_LATE_NS 5000

/*
 * The delay that a wait was: one that took much longer lost its CPU meanwhile, as it would have done without the delay. Then
 * the delay is what was asked for.
 */
static __always_inline __u64 delay_of(__u64 waited_ns, __u64 delay_ns)
{
	return waited_ns > delay_ns + delay_ns / 2 + MOST_LATE_NS ? delay_ns : waited_ns;
}

static __always_inline __u32 place_of(__u64 code)
{
	__u32 at;

#pragma unroll
	for (at = 0; at < MOST_CODES; at++) {
		if (at < codes_used && codes[at] == code)
			return at;
	}
	return MOST_CODES;
}

SEC("raw_tp/kvm_exit")
int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns(), word = setting_word(), delay_ns, waited_ns;
	__u32 id = bpf_get_current_pid_tgid(), slice = slice_of(word), at;
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);
	struct exit_reason reason;

	if (!thread)
		return add_in(slice, FOREIGN, 1), 0;
	reason = reason_of(ctx);
	thread->exit_ns = 0;
	at = place_of(reason.code);
	if (at >= MOST_CODES)
		return 0;
	if (progress_places >> at & 1)
		add_in(slice, PROGRESS, 1);
	if (!thread->is_delayed)
		return 0;
	delay_ns = word >> 32 >> at & 1 ? (__u32)word : 0;
	if (delay_ns > MOST_DELAY_NS)
		delay_ns = MOST_DELAY_NS;
	/* Slices without a delay do the same: what these programs take is in all of them. */
	waited_ns = wait_from(now_ns, delay_ns);
	add_of(slice, EXITS_DELAYED, at, delay_ns ? 1 : 0);
	add_of(slice, DELAY_NS, at, delay_of(waited_ns, delay_ns));
	/* As if it had come when the delay was over. */
	thread->exit_ns = now_ns + waited_ns;
	thread->place = (__u64)slice << 32 | at;
	return 0;
}

SEC("raw_tp/kvm_entry")
int on_entry(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 id = bpf_get_current_pid_tgid(), at, slice;
	struct thread *thread = bpf_map_lookup_elem(&threads, &id);

	if (!thread || !thread->exit_ns)
		return 0;
	at = thread->place;
	slice = thread->place >> 32;
	if (at < MOST_CODES) {
		add_of(slice, EXITS_HANDLED, at, 1);
		add_of(slice, HANDLED_NS, at, bpf_ktime_get_ns() - thread->exit_ns);
	}
	thread->exit_ns = 0;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
/* sha256 of these files, for who asks whether the object was made of them. */
char hyperscope_source[] SEC("hyperscope.source") = SOURCE;
