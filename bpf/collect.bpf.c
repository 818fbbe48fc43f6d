// SPDX-License-Identifier: GPL-2.0
/*
 * One record for each hypercall of a guest that reports by them: exit, hypercall and entry
 * in one, with all registers that carry something.
 *
 * Raw tracepoints are attached by name, wherever KVM is (built in or a module), and run where the
 * trace events would be written, whether or not those are on. Their arguments differ between
 * kernels; what is used of them doesn't. What is read of a vCPU is found by CO-RE.
 *
 * Where a vCPU is, and what it carries in which registers, is in the header of its architecture;
 * an object is built for each. crates/record/collector loads them, docs/formats/collected.md has the
 * record.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* As many as a frame can have. */
#define MOST_WORDS 13
#define HEAD_BYTES 48

/* record.flags */
#define RIP_KNOWN 1
/* Not where the instruction is, but where the guest goes on: behind it. */
#define RIP_BEHIND 2

/* record.entry_after_ns where no entry was seen, or later than it can hold. */
#define NO_ENTRY 0xffffffff

/* What the loader sets. */
const volatile __u64 first_number = 0x48530000;
const volatile __u64 numbers = 2;
const volatile __u32 words = MOST_WORDS;
/* So much waits in the ring before its reader is woken up; it looks now and then by itself. */
const volatile __u64 wake_bytes = 1 << 20;

struct record {
	__u64 exit_ns;
	__u32 hypercall_after_ns;
	__u32 entry_after_ns;
	__u64 number;
	__u64 guest_rip;
	__u32 process;
	__u32 thread;
	__u16 vcpu;
	__u16 cpu;
	/* Records of this thread before it that the ring had no room for, modulo 65536. */
	__u16 lost;
	__u8 words;
	__u8 flags;
	__u64 word[MOST_WORDS];
};

_Static_assert(__builtin_offsetof(struct record, word) == HEAD_BYTES, "as the reader has it");

/*
 * Each has:
 *	HYPERCALL	the tracepoint's section
 *	struct kvm_vcpu	what is used of it, under the kernel's names
 *	vcpu_at_exit()	the vCPU's address, where the exit has it, or 0
 *	vcpu_here()	the same, of a thread that handles a hypercall
 *	number_of()	the hypercall's number
 *	read_words()	fills in words and the guest's address; 0 or an error
 *	read_rip_late()	fills in the guest's address where that was not known before
 */
#if defined(__TARGET_ARCH_x86)
#include "collect_x86.h"
#elif defined(__TARGET_ARCH_arm64)
#include "collect_arm64.h"
#endif

/* A vCPU's thread, from an exit to the next entry. */
struct state {
	__u64 vcpu;
	/* 0: in the guest. */
	__u64 exit_ns;
	/* A record waits for its entry. */
	__u64 waits;
	__u64 lost;
	struct record record;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct state);
} states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} records SEC(".maps");

/* What is counted, each CPU for itself. */
enum count {
	HYPERCALLS,
	/* The ring was full. */
	RING_FULL,
	/* No exit was seen before: the program came in between. */
	NO_EXIT,
	/* More vCPUs than there is room for. */
	NO_ROOM,
	/* The vCPU's registers can't be read. */
	UNREADABLE,
	COUNTS,
};

#include "counts.h"

static __always_inline __u32 since(__u64 begin_ns, __u64 now_ns)
{
	__u64 passed_ns = now_ns - begin_ns;

	return passed_ns < NO_ENTRY ? passed_ns : NO_ENTRY;
}

static __always_inline void send(struct state *state)
{
	__u64 flags = BPF_RB_NO_WAKEUP;

	state->waits = 0;
	if (bpf_ringbuf_query(&records, BPF_RB_AVAIL_DATA) >= wake_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	if (bpf_ringbuf_output(&records, &state->record, HEAD_BYTES + words * 8, flags)) {
		state->lost++;
		count(RING_FULL);
	}
}

SEC("raw_tp/kvm_exit")
int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 thread = bpf_get_current_pid_tgid();
	__u64 now_ns = bpf_ktime_get_ns();
	__u64 vcpu = vcpu_at_exit(ctx);
	struct state *state = bpf_map_lookup_elem(&states, &thread);

	if (!state) {
		struct state fresh = { .vcpu = vcpu, .exit_ns = now_ns };

		if (bpf_map_update_elem(&states, &thread, &fresh, BPF_ANY))
			count(NO_ROOM);
		return 0;
	}
	if (state->waits)
		send(state);
	state->vcpu = vcpu;
	state->exit_ns = now_ns;
	return 0;
}

SEC(HYPERCALL)
int on_hypercall(struct bpf_raw_tracepoint_args *ctx)
{
	/* First of all: this is what stands for the hypercall's time, as the trace event's does. */
	__u64 now_ns = bpf_ktime_get_ns();
	__u64 number = number_of(ctx);
	__u64 threads = bpf_get_current_pid_tgid();
	__u32 thread = threads;
	struct kvm_vcpu *vcpu;
	struct record *record;
	struct state *state;

	if (number - first_number >= numbers)
		return 0;
	count(HYPERCALLS);
	state = bpf_map_lookup_elem(&states, &thread);
	if (!state || !state->exit_ns)
		return count(NO_EXIT), 0;
	vcpu = vcpu_here(state->vcpu);
	record = &state->record;
	if (read_words(ctx, vcpu, record))
		return count(UNREADABLE), 0;
	record->exit_ns = state->exit_ns;
	record->hypercall_after_ns = since(state->exit_ns, now_ns);
	record->entry_after_ns = NO_ENTRY;
	record->number = number;
	record->process = threads >> 32;
	record->thread = thread;
	record->vcpu = BPF_CORE_READ(vcpu, vcpu_id);
	record->cpu = bpf_get_smp_processor_id();
	record->lost = state->lost;
	record->words = words;
	state->waits = 1;
	return 0;
}

SEC("raw_tp/kvm_entry")
int on_entry(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 thread = bpf_get_current_pid_tgid();
	struct state *state = bpf_map_lookup_elem(&states, &thread);

	if (!state)
		return 0;
	if (state->waits) {
		state->record.entry_after_ns = since(state->exit_ns, bpf_ktime_get_ns());
		read_rip_late((struct kvm_vcpu *)state->vcpu, &state->record);
		send(state);
	}
	state->exit_ns = 0;
	return 0;
}

/* What was kept for a thread goes with it: others are to have room, and ids are used again. */
SEC("raw_tp/sched_process_exit")
int on_thread_end(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 thread = bpf_get_current_pid_tgid();
	struct state *state = bpf_map_lookup_elem(&states, &thread);

	if (!state)
		return 0;
	if (state->waits)
		send(state);
	bpf_map_delete_elem(&states, &thread);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
/* sha256 of these files, for who asks whether the object was made of them. */
char hyperscope_source[] SEC("hyperscope.source") = SOURCE;
