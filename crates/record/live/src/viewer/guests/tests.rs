//! Views of guests as tables, and on the screen.

use crate::States;

use super::*;

const MS: u64 = 1_000_000;

pub(crate) fn seen() -> SeenGuest {
    let all_cpus = CpuUse {
        user_ns: 600 * MS,
        system_ns: 200 * MS,
        irq_ns: 20 * MS,
        steal_ns: 480 * MS,
        idle_ns: 600 * MS,
        guest_ns: 0,
    };
    let task = |pid, name: &str, threads, run_ms, waited_ms| TaskUse {
        pid,
        name: name.to_owned(),
        threads,
        run_ns: run_ms * MS,
        waited_ns: waited_ms * MS,
    };
    let view = GuestView {
        span_ns: 1000 * MS,
        all_cpus,
        cpu_count: 2,
        task_count: 71,
        tasks_run_ns: 850 * MS,
        tasks_waited_ns: 90 * MS,
        tasks: vec![task(412, "mysqld", 30, 610, 80), task(9, "kwo\u{1b}rker", 1, 200, 5)],
        ..GuestView::default()
    };
    SeenGuest {
        requested_name: "web".into(),
        name: "web".into(),
        channel: "vsock:3:8823".into(),
        process: Some(8),
        view: Ok(view),
    }
}

fn interval() -> Interval {
    let mut states = States::default();
    states.give(VcpuActivity::Guest, 750 * MS);
    states.give(VcpuActivity::Preempted, 150 * MS);
    states.give(VcpuActivity::Waiting, 100 * MS);
    let vcpu = Vcpu { vm: "web".into(), process: 8, states, ..Vcpu::default() };
    Interval { end_ns: 1000 * MS, vcpus: vec![vcpu], ..Interval::default() }
}

#[test]
fn steal_stands_next_to_the_run_queue_and_tasks_add_up() {
    let silent = SeenGuest { name: "db".into(), view: Err("no\u{7}body".into()), ..seen() };
    let text = text(&[seen(), silent], &interval(), Some(100));
    let line = |begin: &str| {
        let found = text.lines().find(|line| line.starts_with(begin));
        found.unwrap_or_else(|| panic!("{text}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let parts = "web 2 30.00% 10.00% 1.00% 24.00% 30.00% 5.00% 25.00% 1.00 s";
    assert_eq!(line("web  "), parts);
    assert!(text.contains("mysqld (30 threads)") && text.contains("all others"), "{text}");
    let others = text.lines().find(|line| line.contains("all others")).unwrap();
    assert!(others.ends_with(" 4.00%   0.50%"), "{others}");
    assert!(text.contains("no view of the guest db: no\\") && !text.contains(['\u{1b}', '\u{7}']));
}

#[test]
fn a_guest_without_time_divides_by_nothing() {
    let empty = SeenGuest { view: Ok(GuestView::default()), ..seen() };
    assert!(text(std::slice::from_ref(&empty), &Interval::default(), Some(80)).contains("web"));
    let lines = lines(&empty);
    assert!(lines[1].ends_with("none ran"), "{lines:?}");
}
