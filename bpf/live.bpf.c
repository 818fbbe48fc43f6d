// SPDX-License-Identifier: GPL-2.0
/*
 * What `hyperscope exits` adds up of a recording, added up where it happens: for each vCPU's
 * thread, level and reason the number of exits, their times, parts and a histogram.
 *
 * This is the state machine of crates/model/timeline/src/vcpu.rs, on raw tracepoints: one state
 * for each vCPU's thread, that none but the thread's own events change. So nothing is locked and
 * nothing is atomic. Nothing leaves the kernel for an event either: whoever wants the sums closes
 * an interval and takes them out. crates/record/live loads it, docs/top.md has what each number is.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "live_sums.h"
#include "live_task.h"

/*
 * Each has:
 *	struct exit_reason reason_of()	an exit's reason and instruction set
 *	struct kvm_vcpu *vcpu_here()	the vCPU of a thread in kvm_exit, or 0
 *	USER_RETURN			what is traced first on the way back from the VMM
 *	has_returned()			whether that event says so
 */
#if defined(__TARGET_ARCH_x86)
#include "live_x86.h"
#elif defined(__TARGET_ARCH_arm64)
#include "live_arm64.h"
#endif

#include "live_takers.h"
#include "live_state.h"

/* A thread's state; none where it is no vCPU's, or has ended. */
static __always_inline struct state *state_of(__u32 thread)
{
	struct state *state = bpf_map_lookup_elem(&vcpus, &thread);

	return state && !state->gone ? state : 0;
}

/* That of the thread that runs. */
static __always_inline struct state *current_state(void)
{
	__u32 thread = bpf_get_current_pid_tgid();

	/* CPUs that idle. */
	if (!thread)
		return 0;
	return state_of(thread);
}

/* The same of a thread that enters or leaves its guest: it is a vCPU's from now on. */
static __always_inline struct state *vcpu_state(struct kvm_vcpu *vcpu, __u64 now_ns)
{
	__u64 threads = bpf_get_current_pid_tgid();
	__u32 thread = threads;
	struct state *state = bpf_map_lookup_elem(&vcpus, &thread);

	if (state && !state->gone)
		return state;
	if (bpf_map_update_elem(&vcpus, &thread, &no_state, BPF_ANY))
		return 0;
	state = bpf_map_lookup_elem(&vcpus, &thread);
	if (!state)
		return 0;
	state->thread = thread;
	state->process = threads >> 32;
	state->vcpu_id = vcpu ? BPF_CORE_READ(vcpu, vcpu_id) : NO_VCPU_ID;
	state->born_ns = now_ns;
	state->latest_ns = now_ns;
	state->saved_ns = now_ns;
	return state;
}

SEC("raw_tp/kvm_exit")
int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();
	struct exit_reason reason = reason_of(ctx);
	struct state *state = vcpu_state(vcpu_here(ctx), now_ns);

	if (!state)
		return count(EXITS_WITHOUT_STATE), 0;
	change(state);
	pass(state, now_ns, GOES_ON);
	/* Two exits in a row: KVM has entered the guest again on a fast path, without kvm_entry. */
	if (state->open)
		close_exit(state, now_ns, 0);
	begin_exit(state, now_ns, reason);
	changed(state);
	return 0;
}

SEC("raw_tp/kvm_entry")
int on_entry(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();
	struct state *state = vcpu_state(vcpu_here(ctx), now_ns);

	if (!state)
		return 0;
	change(state);
	has_cpu(state);
	pass(state, now_ns, ENTERS);
	if (state->open) {
		if (state->handling == BY_USER)
			state->user_return_unseen = 1;
		close_exit(state, now_ns, 1);
	}
	state->host_since_ns = 0;
	state->guest_since_ns = now_ns;
	changed(state);
	return 0;
}

/* Whatever the host does while a guest is said to run: it has left it, and kvm_exit is to come. */
SEC("raw_tp/irq_handler_entry")
int on_host_work(struct bpf_raw_tracepoint_args *ctx)
{
	struct state *state = current_state();
	__u64 now_ns;

	/* An interrupt can come while a program changes the state: it comes after that change. */
	if (!state || is_changing(state) || !state->guest_since_ns || state->host_since_ns)
		return 0;
	now_ns = bpf_ktime_get_ns();
	change(state);
	pass(state, now_ns, GOES_ON);
	state->host_since_ns = now_ns;
	changed(state);
	return 0;
}

/*
 * Gives the stint that ends to the waits of those that were preempted here. One that another CPU has
 * taken over meanwhile is seen not to wait any more; if that happens right now, a piece counts twice.
 */
static __noinline int charge_waiters(struct stints *here, __u64 now_ns)
{
	if (!here)
		return 0;
	for (int at = 0; at < WAITERS; at++) {
		struct waiter *waiter = &here->waiters[at];
		struct state *state;

		if (!waiter->thread)
			continue;
		state = state_of(waiter->thread);
		if (!state || state->cpu != OFF_RUNNABLE || state->off_ns != waiter->off_ns) {
			waiter->thread = 0;
			continue;
		}
		if (state->taken_ns < now_ns)
			add_taker(latest_stint(here), waiter->thread, now_ns - state->taken_ns, now_ns);
		state->taken_ns = now_ns;
	}
	return 0;
}

static __always_inline void switch_away(struct stints *here, int is_runnable, __u64 now_ns)
{
	struct state *state = current_state();

	if (!state)
		return;
	change(state);
	if (state->cpu != RUNNING)
		count(SCHED_EVENTS_UNSEEN);
	pass(state, now_ns, is_runnable ? GOES_ON : SLEEPS);
	if (state->guest_since_ns && !state->host_since_ns)
		state->host_since_ns = now_ns;
	state->cpu = is_runnable ? OFF_RUNNABLE : OFF_BLOCKED;
	state->off_ns = now_ns;
	state->taken_ns = now_ns;
	if (is_runnable)
		begin_wait(here, state->thread, now_ns);
	/* Whoever wakes it writes here from now on. */
	state->woken_ns = 0;
	changed(state);
}

static __always_inline void switch_to(struct task_struct *next, __u64 now_ns)
{
	__u32 thread = BPF_CORE_READ(next, pid);
	struct state *state;

	if (!thread)
		return;
	state = state_of(thread);
	if (!state)
		return;
	if (state->cpu == RUNNING) {
		count(SCHED_EVENTS_UNSEEN);
		return;
	}
	change(state);
	pass(state, now_ns, GOES_ON);
	run_queue_wait(state, now_ns);
	state->cpu = RUNNING;
	changed(state);
}

/* Linux 5.18 or later: whether it was preempted, from, to, and why it sleeps if it does. */
SEC("raw_tp/sched_switch")
int on_switch(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 second = ctx->args[1], third = ctx->args[2], fourth = ctx->args[3];
	__u64 why = fourth, next = third, now_ns = bpf_ktime_get_ns();
	struct stints *here = stints_here();

	/* The verifier wants each argument read at its own place. */
	__asm__ volatile("" : "+r"(second), "+r"(why), "+r"(next));
	/* In 5.18 itself the state stands before the tasks, and is no address of the kernel. */
	if (!(second >> 63)) {
		why = second;
		next = fourth;
	}
	if (!here)
		return 0;
	end_stint(here, now_ns);
	charge_waiters(here, now_ns);
	switch_away(here, ctx->args[0] & 1 || !(why & SLEEP_STATES), now_ns);
	switch_to((struct task_struct *)next, now_ns);
	return 0;
}

/* Before that: the state is to be looked up, and may have changed. */
SEC("raw_tp/sched_switch")
int on_switch_before_5_18(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *from = (struct task_struct *)ctx->args[1];
	__u64 now_ns = bpf_ktime_get_ns();
	struct stints *here = stints_here();

	if (!here)
		return 0;
	end_stint(here, now_ns);
	charge_waiters(here, now_ns);
	switch_away(here, ctx->args[0] & 1 || !(state_of_task(from) & SLEEP_STATES), now_ns);
	switch_to((struct task_struct *)ctx->args[2], now_ns);
	return 0;
}

/* Runs on the CPU of whoever wakes the thread: nothing else is written from there. */
SEC("raw_tp/sched_waking")
int on_waking(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	__u32 thread = BPF_CORE_READ(task, pid);
	struct state *state = state_of(thread);

	if (state && !state->woken_ns)
		state->woken_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp/kvm_userspace_exit")
int on_user(struct bpf_raw_tracepoint_args *ctx)
{
	struct state *state = current_state();

	if (!state || !state->open)
		return 0;
	change(state);
	pass(state, bpf_ktime_get_ns(), GOES_ON);
	state->handling = BY_USER;
	if (state->handler < BY_USER)
		state->handler = BY_USER;
	changed(state);
	return 0;
}

SEC("raw_tp/" USER_RETURN)
int on_user_return(struct bpf_raw_tracepoint_args *ctx)
{
	struct state *state;

	if (!has_returned(ctx))
		return 0;
	state = current_state();
	if (!state || !state->open || state->handling != BY_USER)
		return 0;
	change(state);
	pass(state, bpf_ktime_get_ns(), GOES_ON);
	state->handling = BY_KERNEL;
	changed(state);
	return 0;
}

/* Looks back: what it polled was time in the kernel so far. */
SEC("raw_tp/kvm_vcpu_wakeup")
int on_wakeup(struct bpf_raw_tracepoint_args *ctx)
{
	struct state *state = current_state();
	__u64 now_ns;

	if (!state || !state->open)
		return 0;
	now_ns = bpf_ktime_get_ns();
	change(state);
	pass(state, now_ns, GOES_ON);
	take_polling(state, now_ns, ctx->args[0], ctx->args[1] & 1);
	changed(state);
	return 0;
}

SEC("raw_tp/kvm_nested_vmenter")
int on_nested_enter(struct bpf_raw_tracepoint_args *ctx)
{
	struct state *state = current_state();

	if (!state)
		return 0;
	state->entered_l2 = state->open;
	state->in_l2 = 1;
	return 0;
}

SEC("raw_tp/kvm_nested_vmenter_failed")
int on_nested_enter_failed(struct bpf_raw_tracepoint_args *ctx)
{
	struct state *state = current_state();

	if (!state)
		return 0;
	state->entered_l2 = 0;
	state->in_l2 = 0;
	return 0;
}

/* The open exit is one of level 2. */
SEC("raw_tp/kvm_nested_vmexit")
int on_nested_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct state *state = current_state();

	if (!state)
		return 0;
	state->level = 2;
	state->in_l2 = 1;
	return 0;
}

/*
 * Level 1 runs next. After kvm_nested_vmenter this takes an enter back that the hardware has not
 * seen.
 */
SEC("raw_tp/kvm_nested_vmexit_inject")
int on_nested_inject(struct bpf_raw_tracepoint_args *ctx)
{
	struct state *state = current_state();

	if (!state)
		return 0;
	state->in_l2 = 0;
	if (state->open && !state->entered_l2) {
		state->level = 2;
		state->handler = BY_L1;
	}
	return 0;
}

/* Its sums stay until they are taken out; then there is room for others. */
SEC("raw_tp/sched_process_exit")
int on_thread_end(struct bpf_raw_tracepoint_args *ctx)
{
	struct state *state = current_state();
	__u64 now_ns;

	if (!state)
		return 0;
	now_ns = bpf_ktime_get_ns();
	change(state);
	pass(state, now_ns, GOES_ON);
	if (state->open)
		close_exit(state, now_ns, 0);
	state->guest_since_ns = 0;
	state->gone = 1;
	changed(state);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
/* sha256 of these files, for who asks whether the object was made of them. */
char hyperscope_source[] SEC("hyperscope.source") = SOURCE;
