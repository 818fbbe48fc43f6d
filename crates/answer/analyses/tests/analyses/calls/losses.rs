//! Calls around losses: calls that a loss may affect are dropped, all others are kept.

use super::{INNER, Kernel, OUTER, named, numbers};

#[test]
fn a_loss_on_its_cpu_ends_all_calls_of_a_thread() {
    let mut kernel = Kernel::new();
    kernel.enter(0, 1_000, 7, OUTER, 0);
    kernel.0.lose(0);
    kernel.enter(0, 2_000, 7, INNER, 1);
    kernel.leave(0, 2_100, 7, INNER, 1, 2_000);
    kernel.leave(0, 2_200, 7, OUTER, 0, 1_000);
    let calls = kernel.calls();
    let outer = named(&calls, "outer");
    assert_eq!((outer.count, outer.without_return, outer.without_call), (0, 1, 1));
    assert_eq!(numbers(named(&calls, "inner")), [1, 100, 100, 0]);
    assert_eq!((calls.interrupted, calls.losses.uncounted_losses), (1, 1));
}

#[test]
fn a_loss_elsewhere_counts_unless_switches_show_where_a_thread_was() {
    for switches in [false, true] {
        let mut kernel = Kernel::new();
        if switches {
            kernel.switch(0, 900, 8, 7);
        }
        kernel.enter(0, 1_000, 7, OUTER, 0);
        kernel.enter(1, 1_010, 9, INNER, 0);
        kernel.0.lose(1);
        kernel.enter(1, 1_050, 9, INNER, 0);
        kernel.leave(0, 2_200, 7, OUTER, 0, 1_000);
        let calls = kernel.calls();
        let outer = named(&calls, "outer");
        let expected = if switches { (1, 0) } else { (0, 1) };
        assert_eq!((outer.count, outer.without_return), expected, "switches: {switches}");
    }
}

/// A short loss that starts later does not hide a long one.
#[test]
fn a_long_loss_is_remembered_behind_a_short_one() {
    let mut kernel = Kernel::new();
    kernel.enter(0, 1_000, 9, INNER, 0);
    kernel.enter(1, 1_010, 8, INNER, 0);
    kernel.0.lose(0);
    kernel.0.lose(1);
    kernel.enter(1, 1_020, 8, INNER, 0);
    kernel.enter(2, 1_500, 7, OUTER, 0);
    kernel.leave(2, 1_600, 7, OUTER, 0, 1_500);
    kernel.enter(0, 9_000, 9, INNER, 0);
    let calls = kernel.calls();
    // The place of thread 7 in between is not recorded: it may have been on CPU 0.
    let outer = named(&calls, "outer");
    assert_eq!((outer.count, outer.without_return, outer.without_call), (0, 1, 1));
}

#[test]
fn off_the_cpu_over_a_loss_is_unknown() {
    let mut kernel = Kernel::new();
    kernel.enter(0, 1_000, 7, OUTER, 0);
    kernel.switch(0, 1_100, 7, 8);
    kernel.0.lose(0);
    kernel.switch(0, 5_000, 8, 7);
    kernel.leave(0, 5_100, 7, OUTER, 0, 1_000);
    let calls = kernel.calls();
    let thread = calls.threads.iter().find(|thread| thread.thread == 7).unwrap();
    assert_eq!((thread.off_cpu_ns, thread.self_ns, thread.unaccounted_ns()), (0, 0, 4_100));
}
