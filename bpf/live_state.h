/* SPDX-License-Identifier: GPL-2.0 */
/* A vCPU's thread: what it does, since when, and what is known of the exit that it handles. */

#define NO_VCPU_ID 0xffffffff
/* Bits of a task's state that say why it sleeps. */
#define SLEEP_STATES 0xff
/* Pieces of an exit in which the thread ran in the kernel: polling is cut out of them. */
#define PIECES 8

enum cpu { RUNNING, OFF_RUNNABLE, OFF_BLOCKED };

/* What comes after a stretch of time. */
enum then { GOES_ON, SLEEPS, ENTERS };

/* What the thread does: the names are those of `hyperscope cpu`. */
enum activity {
	IN_GUEST,
	BEFORE_EXIT,
	EXIT_KERNEL,
	EXIT_USER,
	HALT_POLLING,
	PREEMPTED,
	WAITING,
	BLOCKED,
	UNKNOWN,
	ACTIVITIES,
};

struct piece {
	__u64 from_ns;
	__u64 to_ns;
};

struct state {
	/* Equal to last_change but while a program changes what is between them. */
	__u64 changes;
	__u32 process;
	__u32 thread;
	__u32 vcpu_id;
	__u8 gone;
	__u8 cpu;
	__u8 open;
	__u8 handling;
	__u8 in_l2;
	/* Of the open exit. */
	__u8 entered_l2;
	__u8 level;
	__u8 isa;
	__u8 handler;
	__u8 user_return_unseen;
	__u8 poll_unknown;
	__u8 pieces_kept;
	__u8 pieces_slept;
	__u8 zero[7];
	/* First seen; up to when it is known what it did. */
	__u64 born_ns;
	__u64 latest_ns;
	/* When the thread last went off its CPU; when it was first woken since. Others write that. */
	__u64 off_ns;
	__u64 woken_ns;
	/* Time of kvm_entry while the guest runs, and the host's first sign since. */
	__u64 guest_since_ns;
	__u64 host_since_ns;
	/* What it did since it was first seen, and what it had done when the interval began. */
	__u64 did_ns[ACTIVITIES];
	__u64 saved_ns;
	__u64 saved_did_ns[ACTIVITIES];
	/* Of the open exit. */
	__u64 start_ns;
	__u64 code;
	__u64 before_exit_ns;
	__u64 guest_ns;
	__u64 parts[PARTS];
	struct piece pieces[PIECES];
	/* While it is preempted: up to when it is known who had its CPU. Other threads write that. */
	__u64 taken_ns;
	/* Of did_ns[IN_GUEST]: guests of the guest ran. The second is what it was when the interval began. */
	__u64 nested_ns;
	__u64 saved_nested_ns;
	__u64 last_change;
};

/* crates/record/live/src/layout.rs has these. */
_Static_assert(sizeof(struct state) == 472, "as the reader has it");
_Static_assert(__builtin_offsetof(struct state, born_ns) == 40, "as the reader has it");
_Static_assert(__builtin_offsetof(struct state, did_ns) == 88, "as the reader has it");
_Static_assert(__builtin_offsetof(struct state, saved_did_ns) == 168, "as the reader has it");
_Static_assert(__builtin_offsetof(struct state, in_l2) == 24, "as the reader has it");
_Static_assert(__builtin_offsetof(struct state, nested_ns) == 448, "as the reader has it");
_Static_assert(__builtin_offsetof(struct state, last_change) == 464, "as the reader has it");

static const struct state no_state;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct state);
} vcpus SEC(".maps");

static __always_inline void change(struct state *state)
{
	*(volatile __u64 *)&state->last_change = state->changes + 1;
	__asm__ volatile("" ::: "memory");
}

static __always_inline void changed(struct state *state)
{
	__asm__ volatile("" ::: "memory");
	*(volatile __u64 *)&state->changes = state->last_change;
}

static __always_inline int is_changing(struct state *state)
{
	return state->changes != state->last_change;
}

static __always_inline __u64 since(__u64 from_ns, __u64 to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

/* What the thread does while it has its CPU. */
static __always_inline __u32 activity_of(struct state *state)
{
	if (state->open)
		return state->handling == BY_USER ? EXIT_USER : EXIT_KERNEL;
	if (state->guest_since_ns)
		return state->host_since_ns ? BEFORE_EXIT : IN_GUEST;
	return UNKNOWN;
}

static __always_inline void keep_piece(struct state *state, __u64 to_ns, enum then then)
{
	__u64 at = state->pieces_kept, before = (at - 1) & (PIECES - 1), place;

	AS_IT_IS(before);
	before &= PIECES - 1;

	/* It goes on where the one before ended without sleep. */
	if (at && state->pieces[before].to_ns == state->latest_ns &&
	    !(state->pieces_slept >> before & 1)) {
		state->pieces[before].to_ns = to_ns;
		if (then == SLEEPS)
			state->pieces_slept |= 1 << before;
		return;
	}
	/* What came after it fell asleep can be left out: polling ends there. */
	if (at >= PIECES) {
		count(PIECES_LEFT_OUT);
		return;
	}
	place = at & (PIECES - 1);
	AS_IT_IS(place);
	place &= PIECES - 1;
	state->pieces[place].from_ns = state->latest_ns;
	state->pieces[place].to_ns = to_ns;
	if (then == SLEEPS)
		state->pieces_slept |= 1 << at;
	state->pieces_kept = at + 1;
}

/* Gives the time up to a moment to what the thread did, and to the part of the open exit. */
static __always_inline void give_time(struct state *state, __u64 to_ns, enum then then)
{
	__u64 from_ns = state->latest_ns, woken_ns = state->woken_ns, took_ns, slept_ns;

	if (to_ns <= from_ns)
		return;
	took_ns = to_ns - from_ns;
	if (state->cpu == OFF_BLOCKED) {
		slept_ns = took_ns;
		if (woken_ns)
			slept_ns = least(since(from_ns, woken_ns), took_ns);
		state->did_ns[BLOCKED] += slept_ns;
		state->did_ns[WAITING] += took_ns - slept_ns;
		if (state->open) {
			state->parts[BLOCKED_NS] += slept_ns;
			state->parts[RUNNABLE_NS] += took_ns - slept_ns;
		}
	} else if (state->cpu == OFF_RUNNABLE) {
		state->did_ns[PREEMPTED] += took_ns;
		if (state->open)
			state->parts[RUNNABLE_NS] += took_ns;
	} else if (state->open && state->handling == BY_USER) {
		state->did_ns[EXIT_USER] += took_ns;
		state->parts[USER_NS] += took_ns;
	} else if (state->open) {
		state->did_ns[EXIT_KERNEL] += took_ns;
		state->parts[KERNEL_NS] += took_ns;
		/* What came before the entry can't be found to have been polling any more. */
		if (then != ENTERS)
			keep_piece(state, to_ns, then);
	} else {
		__u32 activity = activity_of(state) % ACTIVITIES;

		state->did_ns[activity] += took_ns;
		if (activity == IN_GUEST && state->in_l2)
			state->nested_ns += took_ns;
	}
	state->latest_ns = to_ns;
}

/* The same, and keeps what it had done when the interval began. */
static __noinline int pass(struct state *state, __u64 now_ns, enum then then)
{
	__u64 begin_ns = interval_word() & ~1ULL;

	if (!state)
		return 0;
	if (now_ns >= begin_ns && state->saved_ns < begin_ns) {
		give_time(state, begin_ns, then == ENTERS ? ENTERS : GOES_ON);
		__builtin_memcpy(state->saved_did_ns, state->did_ns, sizeof(state->did_ns));
		state->saved_nested_ns = state->nested_ns;
		/* Later than that where the begin became known here only after it had come. */
		state->saved_ns = state->latest_ns;
	}
	give_time(state, now_ns, then);
	return 0;
}

/* The thread is there: if it was switched away from, nobody has seen that it came back. */
static __always_inline void has_cpu(struct state *state)
{
	if (state->cpu == RUNNING)
		return;
	count(SCHED_EVENTS_UNSEEN);
	state->cpu = RUNNING;
}

static __always_inline void begin_exit(struct state *state, __u64 now_ns,
				       struct exit_reason reason)
{
	__u64 host_ns = state->host_since_ns;

	state->start_ns = now_ns;
	state->code = reason.code;
	state->isa = reason.isa;
	/* Some exits of level 2 are dealt with before kvm_nested_vmexit is reached. */
	state->level = state->in_l2 ? 2 : 1;
	state->before_exit_ns = 0;
	state->guest_ns = 0;
	if (state->guest_since_ns) {
		if (!host_ns)
			host_ns = now_ns;
		state->before_exit_ns = since(host_ns, now_ns);
		state->guest_ns = since(state->guest_since_ns, host_ns);
	}
	state->guest_since_ns = 0;
	state->host_since_ns = 0;
	has_cpu(state);
	state->handling = BY_KERNEL;
	state->handler = BY_KERNEL;
	state->entered_l2 = 0;
	state->user_return_unseen = 0;
	state->poll_unknown = 0;
	state->pieces_kept = 0;
	state->pieces_slept = 0;
	__builtin_memset(state->parts, 0, sizeof(state->parts));
	state->open = 1;
}

/* Adds the open exit to its row. */
static __noinline int close_exit(struct state *state, __u64 now_ns, int is_paired)
{
	struct key key = { 0 };
	struct row *row;
	__u64 took_ns;

	if (!state)
		return 0;
	state->open = 0;
	key.thread = state->thread;
	key.level = state->level;
	key.isa = state->isa;
	key.code = state->code;
	row = row_of(&key, now_ns);
	if (!row)
		return 0;
	row->count++;
	row->before_exit_ns += state->before_exit_ns;
	row->guest_ns += state->guest_ns;
	if (!is_paired)
		return 0;
	took_ns = since(state->start_ns, now_ns);
	row->paired++;
	row->time_ns += took_ns;
#pragma unroll
	for (int part = 0; part < PARTS; part++)
		row->parts[part] += state->parts[part];
	if (state->handler < HANDLERS)
		row->handled[state->handler]++;
	row->user_return_unseen += state->user_return_unseen;
	row->poll_unknown += state->poll_unknown;
	add_to_buckets(row, took_ns);
	return 0;
}

/* A thread has its CPU again: how long it could have run without one. */
static __always_inline void run_queue_wait(struct state *state, __u64 now_ns)
{
	struct key key = { 0 };
	__u64 from_ns = state->off_ns;
	struct row *row;

	if (state->cpu == OFF_BLOCKED) {
		if (!state->woken_ns) {
			count(SCHED_EVENTS_UNSEEN);
			return;
		}
		from_ns = most(from_ns, state->woken_ns);
	}
	key.thread = state->thread;
	row = row_of(&key, now_ns);
	if (!row)
		return;
	row->count++;
	row->paired++;
	row->time_ns += since(from_ns, now_ns);
	row->parts[RUNNABLE_NS] += since(from_ns, now_ns);
	add_to_buckets(row, since(from_ns, now_ns));
	who_ran(state->thread, most(from_ns, state->taken_ns), now_ns);
}

/* When the thread first went to sleep after it began to poll; else when it did last before. */
static __always_inline __u64 fell_asleep(struct state *state, __u64 from_ns)
{
	__u64 first_after = 0, last_before = 0;

#pragma unroll
	for (int at = 0; at < PIECES; at++) {
		__u64 to_ns = state->pieces[at].to_ns;

		if (at >= state->pieces_kept || !(state->pieces_slept >> at & 1))
			continue;
		if (to_ns < from_ns)
			last_before = to_ns;
		else if (!first_after)
			first_after = to_ns;
	}
	return first_after ? first_after : last_before;
}

/* Of the time in the kernel, what was polling. */
static __always_inline void take_polling(struct state *state, __u64 now_ns, __u64 polled_ns,
					 int has_slept)
{
	__u64 from_ns = since(polled_ns, now_ns), until_ns = now_ns, took_ns = 0;

	if (has_slept)
		until_ns = fell_asleep(state, from_ns);
#pragma unroll
	for (int at = 0; at < PIECES; at++) {
		if (at < state->pieces_kept)
			took_ns += since(most(state->pieces[at].from_ns, from_ns),
					 least(state->pieces[at].to_ns, until_ns));
	}
	state->pieces_kept = 0;
	state->pieces_slept = 0;
	if (!until_ns) {
		state->poll_unknown = 1;
		return;
	}
	took_ns = least(took_ns, state->parts[KERNEL_NS]);
	state->parts[KERNEL_NS] -= took_ns;
	state->parts[HALT_POLL_NS] += took_ns;
	state->did_ns[EXIT_KERNEL] -= took_ns;
	state->did_ns[HALT_POLLING] += took_ns;
}
