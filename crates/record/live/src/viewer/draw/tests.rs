//! Frames of the screen, drawn into memory.

use crate::{Cost, Histogram, Interval, RanInstead, Row as ExitRow, States, Sums, Vcpu};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use timeline::Parts;
use timeline::VcpuActivity;
use timeline::arch::Isa;
use timeline::reasons::Code;

use super::*;
use crate::viewer::screen::{ChosenVm, Key};

const MS: u64 = 1_000_000;

fn sums(exits: u64, kernel_ns: u64, runnable_ns: u64) -> Sums {
    let mut counts = [0; crate::BUCKETS];
    counts[60] = exits;
    let parts = Parts { kernel_ns, runnable_ns, ..Parts::default() };
    Sums {
        count: exits,
        paired: exits,
        time_ns: kernel_ns + runnable_ns,
        parts,
        times: Histogram::new(counts, exits),
        ..Sums::default()
    }
}

fn exits(vm: &str, vcpu: u32, reason: &str, waiting: bool, sums: Sums) -> ExitRow {
    ExitRow {
        vm: Some(vm.to_owned()),
        vcpu: Some(vcpu),
        level: 1,
        isa: Isa::Svm,
        code: Some(Code::Number(1)),
        reason: reason.to_owned(),
        waiting,
        sums,
    }
}

fn vcpu(vm: &str, process: u32, vcpu: u32, guest_ms: u64, preempted_ms: u64) -> Vcpu {
    let mut states = States::default();
    states.give(VcpuActivity::Guest, guest_ms * MS);
    states.give(VcpuActivity::Preempted, preempted_ms * MS);
    Vcpu {
        vm: vm.to_owned(),
        process,
        vcpu: Some(vcpu),
        thread: 100 + vcpu,
        gone: false,
        states,
        waits: sums(10, 0, preempted_ms * MS),
        ran_instead: if preempted_ms > 0 { instead(preempted_ms) } else { Vec::new() },
    }
}

fn instead(waited_ms: u64) -> Vec<RanInstead> {
    let ran_instead = |thread, name: &str, vm: Option<&str>, ms| RanInstead {
        thread,
        process: thread,
        name: Some(name.to_owned()),
        vm: vm.map(str::to_owned),
        time_ns: ms * MS,
    };
    vec![
        ran_instead(90, "cc1", None, waited_ms / 2),
        ran_instead(91, "CPU 0/KVM", Some("db"), waited_ms / 5),
    ]
}

fn interval() -> Interval {
    Interval {
        begin_ns: 0,
        end_ns: 1000 * MS,
        rows: vec![
            exits("web", 0, "npf", false, sums(2000, 120 * MS, 30 * MS)),
            exits("web", 1, "io", false, sums(500, 80 * MS, 0)),
            exits("web", 1, "hlt", true, sums(900, 500 * MS, 0)),
            exits("db", 0, "msr", false, sums(9000, 40 * MS, 0)),
        ],
        vcpus: vec![
            vcpu("db", 7, 0, 900, 0),
            vcpu("web", 8, 0, 500, 250),
            vcpu("web", 8, 1, 400, 0),
        ],
        cost: Cost { process_ns: 2 * MS, programs_ns: Some(12 * MS), exits: 12_400 },
        ..Interval::default()
    }
}

fn frame(screen: &Screen, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(screen, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let symbol = |x, y| buffer.cell((x, y)).map_or(" ", |cell| cell.symbol());
    let line = |y| (0..width).map(|x| symbol(x, y)).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

fn shown() -> Screen {
    let mut screen = Screen::default();
    screen.take(interval(), Vec::new());
    screen
}

#[test]
fn vms_stand_by_cost_in_80_columns() {
    let lines = frame(&shown(), 80, 8);
    let wanted = [
        "hyperscope top: 2 VMs, 3 vCPUs, 12,400 exits/s in the last 1.00 s",
        "own cost: 0.20% of a CPU for this program, in the kernel 1.20%, 967 ns an exit",
        "VM, vCPU, reason   exits/s    cost   guest run queue      p50      p99 wait p99",
        "+ web                3,400  20.00%  90.00%    25.00%  2.25 ms  2.67 ms  2.67 ms",
        "+ db                 9,000   4.00%  90.00%     0.00%  2.25 ms  2.67 ms  2.67 ms",
        "",
        "web waited 25.00%; ran instead: cc1 12.50%, VM db 5.00%, not known 7.50%",
        "sorted by cost (c e w p n)  / filter  r record  space pause  ? help  q end",
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(lines[..2], wanted[..2]);
    assert_eq!(lines[6], wanted[6]);
    assert_eq!(lines.len(), wanted.len());
    for (line, wanted) in lines.iter().zip(wanted) {
        assert_eq!(line.split_whitespace().next(), wanted.split_whitespace().next(), "{line}");
    }
    assert!(lines[3].contains("3,400") && lines[3].contains("20.00%"), "{}", lines[3]);
    assert!(lines.iter().all(|line| line.chars().count() <= 80));
}

#[test]
fn a_vm_opens_to_vcpus_and_those_to_reasons() {
    let mut screen = shown();
    for key in [Key::Enter, Key::Down, Key::Down, Key::Right] {
        screen.key(key);
    }
    let lines = frame(&screen, 100, 12);
    let names: Vec<&str> = lines[3..9].iter().map(|line| line[..18].trim_end()).collect();
    // hlt has no cost, and comes last.
    let wanted = ["- web", "  + vCPU 0", "  - vCPU 1", "      io", "      hlt", "+ db"];
    assert_eq!(names, wanted);
    screen.key(Key::Left);
    screen.key(Key::Left);
    screen.key(Key::Left);
    assert_eq!(frame(&screen, 100, 12)[4].trim_start().get(..4), Some("+ db"));
}

/// A guest with nested guests: the levels add up to their VM, and to their vCPU.
#[test]
fn levels_of_a_nested_guest_stand_apart_below_their_vm() {
    let mut nested = interval();
    nested.rows.push(ExitRow { level: 2, ..exits("web", 1, "npf", false, sums(700, 60 * MS, 0)) });
    let states = &mut nested.vcpus[2].states;
    *states = states.with_nested(150 * MS);
    let mut screen = Screen::default();
    screen.take(nested, Vec::new());
    let numbers = |line: &str| -> Vec<String> {
        let [.., exits, cost, guest, run_queue, _, _, _] = &line
            .replace(" ms", "ms")
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()[..]
        else {
            panic!("{line}")
        };
        [exits, cost, guest, run_queue].map(Clone::clone).to_vec()
    };
    let lines = frame(&screen, 80, 10);
    let names: Vec<&str> = lines[3..7].iter().map(|line| line[..14].trim_end()).collect();
    assert_eq!(names, ["+ web", "    level 1", "    level 2", "+ db"]);
    assert_eq!(numbers(&lines[3]), ["4,100", "26.00%", "90.00%", "25.00%"]);
    assert_eq!(numbers(&lines[4]), ["3,400", "20.00%", "75.00%", "-"]);
    assert_eq!(numbers(&lines[5]), ["700", "6.00%", "15.00%", "-"]);
    // A level is a part of its line, and has no lines below it.
    screen.key(Key::Down);
    screen.key(Key::Right);
    assert_eq!(frame(&screen, 80, 10)[3..7], lines[3..7]);
    for key in [Key::Up, Key::Right, Key::Down, Key::Down, Key::Down, Key::Right] {
        screen.key(key);
    }
    let lines = frame(&screen, 80, 16);
    let names: Vec<&str> = lines[3..13].iter().map(|line| line[..17].trim_end()).collect();
    let wanted = [
        "- web",
        "    level 1",
        "    level 2",
        "  - vCPU 1",
        "      level 1",
        "      level 2",
        "      io",
        "      npf (L2)",
        "      hlt",
        "  + vCPU 0",
    ];
    assert_eq!(names, wanted);
    assert_eq!(numbers(&lines[7])[..3], ["1,400", "8.00%", "25.00%"]);
    assert_eq!(numbers(&lines[8])[..3], ["700", "6.00%", "15.00%"]);
}

#[test]
fn keys_sort_filter_pause_and_end() {
    let mut screen = shown();
    screen.key(Key::Char('e'));
    assert!(frame(&screen, 80, 8)[3].starts_with("+ db"));
    screen.key(Key::Char('w'));
    assert!(frame(&screen, 80, 8)[3].starts_with("+ web"));
    for key in ['/', 'i', 'o'].map(Key::Char) {
        screen.key(key);
    }
    assert!(frame(&screen, 80, 9)[8].starts_with("filter: io_"));
    screen.key(Key::Enter);
    let lines = frame(&screen, 80, 9);
    assert!(lines[3].starts_with("- web") && lines[5].trim_start().starts_with("io"), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("npf") || line.contains("+ db")));
    screen.key(Key::Escape);
    screen.key(Key::Char(' '));
    screen.take(Interval { end_ns: 2000 * MS, ..Interval::default() }, Vec::new());
    let lines = frame(&screen, 80, 8);
    assert!(lines[0].ends_with("paused") && lines[3].starts_with("+ web"), "{lines:?}");
    screen.key(Key::Char('?'));
    assert!(
        frame(&screen, 80, 20)
            .iter()
            .any(|line| line.contains("wait p99   99th percentile of waits"))
    );
    assert!(!screen.has_ended());
    screen.key(Key::Char('q'));
    assert!(screen.has_ended());
}

#[test]
fn the_key_for_a_recording_is_of_the_vm_under_the_cursor() {
    let mut screen = shown();
    assert!(!screen.take_record_key());
    screen.key(Key::Char('r'));
    assert!(screen.take_record_key() && !screen.take_record_key());
    let web = ChosenVm { name: "web".to_owned(), process: 8 };
    assert_eq!(screen.vm_under_cursor(), Some(web.clone()));
    // A reason of its vCPU.
    for key in [Key::Enter, Key::Down, Key::Right, Key::Down] {
        screen.key(key);
    }
    assert_eq!(screen.vm_under_cursor(), Some(web));
    for key in [Key::Left, Key::Left, Key::Left, Key::Left, Key::Down] {
        screen.key(key);
    }
    assert_eq!(screen.vm_under_cursor().map(|vm| vm.process), Some(7));
    // In a filter it is a letter.
    for key in ['/', 'r'].map(Key::Char) {
        screen.key(key);
    }
    assert!(!screen.take_record_key());
    assert!(frame(&screen, 80, 9)[8].starts_with("filter: r_"));
    assert_eq!(Screen::default().vm_under_cursor(), None);
}

#[test]
fn what_had_no_room_is_no_vm_to_be_recorded() {
    let mut screen = Screen::default();
    let mut other = interval();
    other.rows.truncate(1);
    other.rows[0].vm = None;
    other.vcpus.clear();
    screen.take(other, Vec::new());
    assert!(frame(&screen, 80, 8)[3].starts_with("+ other"));
    assert_eq!(screen.vm_under_cursor(), None);
}

#[test]
fn a_notice_stands_above_the_keys_whole_and_escaped() {
    let mut screen = shown();
    let path = format!("/{}/report.html", "long".repeat(20));
    assert!(screen.set_notice(Some(format!("recorded we\u{1b}b: {path}"))));
    assert!(!screen.set_notice(Some(format!("recorded we\u{1b}b: {path}"))));
    let lines = frame(&screen, 80, 10);
    assert!(lines[9].starts_with("sorted by cost") && lines[3].starts_with("+ web"), "{lines:?}");
    let notice_text = lines[7..9].concat();
    assert!(
        notice_text.starts_with("recorded we\\") && notice_text.ends_with(&path),
        "{notice_text}"
    );
    assert!(screen.set_notice(None));
    assert!(!frame(&screen, 80, 10).concat().contains("recorded"));
}

#[test]
fn the_keys_fit_in_80_columns_whatever_is_sorted_by() {
    for key in ['c', 'e', 'w', 'p', 'n'] {
        let mut screen = shown();
        screen.key(Key::Char(key));
        assert!(
            frame(&screen, 80, 8)[7].ends_with("r record  space pause  ? help  q end"),
            "{key}"
        );
    }
}

#[test]
fn a_sparkline_grows_to_the_left_where_there_is_room() {
    let mut screen = shown();
    let half = |mut interval: Interval| {
        interval.rows.iter_mut().for_each(|row| row.sums.parts.kernel_ns /= 2);
        interval
    };
    screen.take(half(interval()), Vec::new());
    assert!(frame(&screen, 140, 8)[3].ends_with("█▅"), "{:?}", frame(&screen, 140, 8));
    assert_eq!(sparkline([0, 1, 7].into_iter(), 2), "▂█");
    assert_eq!(sparkline([0, 0].into_iter(), 9), "▁▁");
}

#[test]
fn nothing_that_a_guest_is_called_reaches_the_terminal_as_it_is() {
    let mut named = interval();
    for row in &mut named.rows {
        row.vm = Some("\u{1b}[2J\u{202e}web".to_owned());
    }
    named.vcpus.clear();
    let mut screen = Screen::default();
    screen.take(named, Vec::new());
    let lines = frame(&screen, 100, 8).join("\n");
    assert!(!lines.contains('\u{1b}') && !lines.contains('\u{202e}'), "{lines:?}");
}

#[test]
fn the_guest_of_the_chosen_vm_shows_how_it_sees_itself() {
    let mut screen = Screen::default();
    screen.take(interval(), vec![crate::viewer::guests::tests::seen()]);
    let lines = frame(&screen, 90, 10);
    let inside =
        "inside web: user 30.00%, system 10.00%, irq 1.00%, steal 24.00%, idle 30.00% of 2 CPUs";
    assert_eq!(lines[7], inside);
    assert_eq!(lines[8], "its tasks: mysqld 61.00%, kwo\\x1brker 20.00%, others 4.00%");
    assert!(lines[9].contains("g tasks"), "{}", lines[9]);
    // No view of another VM's guest was requested.
    screen.key(Key::Down);
    assert!(!frame(&screen, 90, 10).iter().any(|line| line.starts_with("inside")));
    screen.key(Key::Char('g'));
    assert!(frame(&screen, 90, 10)[2].contains("no view of this VM's guest"));
    screen.key(Key::Up);
    let lines = frame(&screen, 80, 12);
    assert_eq!(lines[2], "web: 71 tasks, which ran 850 ms and waited 90.0 ms in 1.00 s");
    assert!(lines[4].starts_with("mysqld (30 threads)") && lines[4].ends_with("61.00%     8.00%"));
    assert!(lines[6].starts_with("all others"), "{lines:?}");
    screen.key(Key::Char('g'));
    assert!(frame(&screen, 80, 12)[3].starts_with("+ web"));
}
