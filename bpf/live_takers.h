/* SPDX-License-Identifier: GPL-2.0 */
/* Who had a CPU of late, and so who ran while a vCPU's thread waited for it. */

/* Threads that had a CPU one after the other, as far as that is kept: a power of two. */
#define STINTS 32

struct stint {
	__u64 until_ns;
	/* Looked at for its name alone: it may be gone by then. */
	struct task_struct *task;
	__u32 thread;
	__u32 process;
};

/* Preempted threads of vCPUs that are charged at each switch of a CPU. */
#define WAITERS 8

struct waiter {
	__u32 thread;
	__u32 zero;
	/* When it was preempted: that of its state, as long as it waits. */
	__u64 off_ns;
};

struct stints {
	__u64 kept;
	struct stint stints[STINTS];
	struct waiter waiters[WAITERS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stints);
} stints SEC(".maps");

/* Thread 0 is a CPU's idle task. */
struct pair {
	__u32 waiter;
	__u32 taker;
};

struct taker {
	__u64 time_ns;
	__u32 process;
	__u32 zero;
	/* Empty where the thread was gone. */
	char name[NAME_BYTES];
};

/* crates/record/live/src/layout.rs has these. */
_Static_assert(sizeof(struct pair) == 8, "as the reader has it");
_Static_assert(sizeof(struct taker) == 32, "as the reader has it");

struct takers {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct pair);
	__type(value, struct taker);
};

struct takers takers_0 SEC(".maps");
struct takers takers_1 SEC(".maps");

static __always_inline struct stint *stint_at(struct stints *here, __u64 at)
{
	at &= STINTS - 1;
	AS_IT_IS(at);
	at &= STINTS - 1;
	return &here->stints[at];
}

static __always_inline struct stints *stints_here(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&stints, &first);
}

/* The thread that runs leaves this CPU. */
static __always_inline void end_stint(struct stints *here, __u64 now_ns)
{
	__u64 threads = bpf_get_current_pid_tgid();
	struct stint *stint;

	stint = stint_at(here, here->kept);
	stint->until_ns = now_ns;
	stint->task = (struct task_struct *)bpf_get_current_task();
	stint->thread = threads;
	stint->process = threads >> 32;
	here->kept++;
}

static __always_inline struct taker *find_taker(struct pair *pair, __u32 bank)
{
	return bank ? bpf_map_lookup_elem(&takers_1, pair) :
		      bpf_map_lookup_elem(&takers_0, pair);
}

static __noinline int add_taker(struct stint *stint, __u32 waiter, __u64 took_ns, __u64 now_ns)
{
	__u32 bank = bank_at(now_ns);
	struct taker new = { 0 }, *taker;
	struct pair pair = { 0 };
	/* Else the place in a stint would be looked up among the kernel's types. */
	struct task_struct *task;
	long failed;

	if (!stint)
		return 0;
	task = stint->task;
	pair.waiter = waiter;
	pair.taker = stint->thread;
	taker = find_taker(&pair, bank);
	if (taker) {
		taker->time_ns += took_ns;
		return 0;
	}
	new.time_ns = took_ns;
	new.process = stint->process;
	if (BPF_CORE_READ(task, pid) == stint->thread)
		BPF_CORE_READ_STR_INTO(&new.name, task, comm);
	failed = bank ? bpf_map_update_elem(&takers_1, &pair, &new, BPF_NOEXIST) :
			bpf_map_update_elem(&takers_0, &pair, &new, BPF_NOEXIST);
	if (failed)
		count(TAKERS_LEFT_OUT);
	return 0;
}

/* The stint that has just ended here. */
static __always_inline struct stint *latest_stint(struct stints *here)
{
	return stint_at(here, here->kept - 1);
}

/* A vCPU's thread was preempted here: without room it is charged when its wait ends. */
static __always_inline void begin_wait(struct stints *here, __u32 thread, __u64 now_ns)
{
	for (int at = 0; at < WAITERS; at++) {
		if (here->waiters[at].thread)
			continue;
		here->waiters[at].thread = thread;
		here->waiters[at].off_ns = now_ns;
		return;
	}
}

/*
 * Gives a wait that ends on this CPU to those that had it meanwhile, the latest first. What lies
 * longer ago than stints are kept is nobody's.
 */
static __noinline int who_ran(__u32 waiter, __u64 from_ns, __u64 now_ns)
{
	struct stints *here = stints_here();
	__u64 end_ns = now_ns;

	if (!here)
		return 0;
	for (int back = 1; back < STINTS; back++) {
		struct stint *stint = stint_at(here, here->kept - back);
		__u64 begin_ns = stint_at(here, here->kept - back - 1)->until_ns;

		begin_ns = most(begin_ns, from_ns);
		if (begin_ns < end_ns)
			add_taker(stint, waiter, end_ns - begin_ns, now_ns);
		if (begin_ns <= from_ns)
			return 0;
		end_ns = begin_ns;
	}
	return 0;
}
