//! Layout of the values in the programs' maps, as in `bpf/live_sums.h`, `bpf/live_takers.h` and `bpf/live_state.h`.

use timeline::Parts;

use crate::histogram::{BUCKETS, Histogram};
use crate::snapshot::{RowKey, Taker, VcpuState};
use timeline::VcpuActivity;

use crate::states::{ACTIVITIES, States};
use crate::sums::Sums;

/// Bytes of `struct key`.
pub(crate) const KEY_BYTES: usize = 16;
/// Bytes of `struct row`.
pub(crate) const ROW_BYTES: usize = 568;
/// Bytes of `struct state`.
pub(crate) const STATE_BYTES: usize = 472;
/// Bytes of `struct pair`.
pub(crate) const PAIR_BYTES: usize = 8;
/// Bytes of `struct taker`.
pub(crate) const TAKER_BYTES: usize = 32;
/// Offset of a row's histogram.
const BUCKETS_AT: usize = 120;
const NO_VCPU_ID: u32 = u32::MAX;

const _: () = assert!(BUCKETS_AT + 4 * BUCKETS == ROW_BYTES);

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_ne_bytes(*word))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |half| u32::from_ne_bytes(*half))
}

fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or_default()
}

pub(crate) fn key(bytes: &[u8; KEY_BYTES]) -> RowKey {
    RowKey {
        thread: half(bytes, 0),
        level: byte(bytes, 4),
        isa: byte(bytes, 5),
        code: word(bytes, 8),
    }
}

pub(crate) fn sums(bytes: &[u8; ROW_BYTES]) -> Sums {
    let words: [u64; BUCKETS_AT / 8] = std::array::from_fn(|at| word(bytes, 8 * at));
    let [count, paired, time_ns, before_exit_ns, guest_ns, rest @ ..] = words;
    let [kernel_ns, user_ns, runnable_ns, blocked_ns, halt_poll_ns, rest @ ..] = rest;
    let [by_kernel, by_user, by_l1, user_return_unseen, poll_unknown] = rest;
    let counts = (0..BUCKETS).map(|at| u64::from(half(bytes, BUCKETS_AT + 4 * at)));
    Sums {
        count,
        paired,
        time_ns,
        before_exit_ns,
        guest_ns,
        parts: Parts { kernel_ns, user_ns, runnable_ns, blocked_ns, halt_poll_ns },
        handled: [by_kernel, by_user, by_l1],
        user_return_unseen,
        poll_unknown,
        times: Histogram::new(counts, paired),
    }
}

/// A thread that ran while another waited.
pub(crate) fn taker(pair: &[u8; PAIR_BYTES], bytes: &[u8; TAKER_BYTES]) -> Taker {
    let name = bytes.get(16..).unwrap_or_default();
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Taker {
        waiter: half(pair, 0),
        thread: half(pair, 4),
        time_ns: word(bytes, 0),
        process: half(bytes, 8),
        name: String::from_utf8_lossy(name).into_owned(),
    }
}

/// A vCPU's thread; `None` if a program was just changing it.
pub(crate) fn state(bytes: &[u8; STATE_BYTES]) -> Option<VcpuState> {
    let is_set = |at| byte(bytes, at) != 0;
    let states = |at: usize| States::new(std::array::from_fn(|state| word(bytes, at + 8 * state)));
    let now = activity(byte(bytes, 21), is_set(22), is_set(23), word(bytes, 72), word(bytes, 80));
    let state = VcpuState {
        process: half(bytes, 8),
        thread: half(bytes, 12),
        vcpu: Some(half(bytes, 16)).filter(|&id| id != NO_VCPU_ID),
        gone: is_set(20),
        born_ns: word(bytes, 40),
        latest_ns: word(bytes, 48),
        now,
        in_nested: is_set(24),
        woken_ns: Some(word(bytes, 64)).filter(|&woken_ns| woken_ns > 0),
        did: states(88).with_nested(word(bytes, 448)),
        saved_ns: word(bytes, 160),
        saved: states(168).with_nested(word(bytes, 456)),
    };
    (word(bytes, 0) == word(bytes, STATE_BYTES - 8) && state.is_whole()).then_some(state)
}

/// A thread's activity, from the programs' flags and times.
fn activity(cpu: u8, is_open: bool, in_user: bool, guest_ns: u64, host_ns: u64) -> VcpuActivity {
    match (cpu, is_open, in_user) {
        (1, ..) => VcpuActivity::Preempted,
        (2, ..) => VcpuActivity::Blocked,
        (_, true, true) => VcpuActivity::User,
        (_, true, false) => VcpuActivity::Kernel,
        _ if guest_ns == 0 => VcpuActivity::Unknown,
        _ if host_ns == 0 => VcpuActivity::Guest,
        _ => VcpuActivity::BeforeExit,
    }
}

const _: () = assert!(88 + 8 * ACTIVITIES.len() == 160);

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: &mut [u8], at: usize, word: u64) {
        bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
    }

    #[test]
    fn a_row_is_read_word_by_word() {
        let mut bytes = [0; ROW_BYTES];
        for at in 0..BUCKETS_AT / 8 {
            put(&mut bytes, 8 * at, at as u64 + 1);
        }
        bytes[BUCKETS_AT + 4] = 1;
        let sums = sums(&bytes);
        assert_eq!((sums.count, sums.paired, sums.guest_ns), (1, 2, 5));
        assert_eq!((sums.parts.kernel_ns, sums.parts.halt_poll_ns), (6, 10));
        assert_eq!((sums.handled, sums.poll_unknown), ([11, 12, 13], 15));
        // One of two is in a bucket, so the other is beyond the last one.
        assert_eq!((sums.times.counts()[1], sums.times.count()), (1, 2));
    }

    #[test]
    fn a_taker_has_a_name_as_far_as_there_is_one() {
        let pair = [7, 0, 0, 0, 9, 0, 0, 0];
        let mut bytes = [0; TAKER_BYTES];
        put(&mut bytes, 0, 500);
        put(&mut bytes, 8, 3);
        bytes[16..19].copy_from_slice(b"cc1");
        let expected = Taker { waiter: 7, thread: 9, process: 3, name: "cc1".into(), time_ns: 500 };
        assert_eq!(taker(&pair, &bytes), expected);
        bytes[16..].fill(b'x');
        assert_eq!(taker(&pair, &bytes).name, "x".repeat(16));
    }

    #[test]
    fn a_state_that_a_program_changes_is_none() {
        let mut bytes = [0; STATE_BYTES];
        let words =
            [(0, 7), (STATE_BYTES - 8, 7), (40, 100), (48, 150), (88, 50), (160, 100), (448, 20)];
        for (at, word) in words {
            put(&mut bytes, at, word);
        }
        let vcpu_state = state(&bytes).unwrap();
        assert_eq!((vcpu_state.did.nested_ns(), vcpu_state.saved.nested_ns()), (20, 0));
        assert_eq!(
            (vcpu_state.did.time_ns(VcpuActivity::Guest), vcpu_state.now),
            (50, VcpuActivity::Unknown)
        );
        put(&mut bytes, STATE_BYTES - 8, 8);
        assert_eq!(state(&bytes), None);
    }

    #[test]
    fn what_a_thread_does_follows_from_its_flags() {
        assert_eq!(activity(0, false, false, 5, 0), VcpuActivity::Guest);
        assert_eq!(activity(0, false, false, 5, 6), VcpuActivity::BeforeExit);
        assert_eq!(activity(0, true, true, 0, 0), VcpuActivity::User);
        assert_eq!(activity(2, true, false, 0, 0), VcpuActivity::Blocked);
        assert_eq!(activity(1, false, false, 5, 6), VcpuActivity::Preempted);
    }
}
