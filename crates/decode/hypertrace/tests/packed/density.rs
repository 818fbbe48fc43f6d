//! Number of events per hypercall.

use crate::packer::{decode, pack};

/// Switches among a number of tasks in turn, some microseconds apart.
fn switches(words: usize, tasks: u64, count: u64) -> (usize, usize) {
    let task = |at: u64| match at % tasks {
        0 => "0 121 swapper/0".to_owned(),
        at => format!("{} 121 worker-{at}", 1000 + 7 * at),
    };
    let line =
        |at: u64| format!("switch {} {} {} {}", at * 300 + at % 97, task(at), at % 2, task(at + 1));
    let mut lines: Vec<String> = (0..count).map(line).collect();
    lines.push(format!("finish {}", count * 301));
    let sent = pack(words, 0, &lines);
    assert_eq!(decode(&sent).0.len() as u64, count);
    (lines.len() - 1, sent.len())
}

/// The bar is 4 with the registers that every host records, and 8 with the others.
#[test]
fn a_hypercall_carries_many_switches() {
    for (words, tasks, min) in [(4, 2, 8), (4, 20, 8), (9, 2, 20), (13, 20, 28)] {
        let (events, frames) = switches(words, tasks, 20_000);
        let each = events / frames;
        println!("{words} words, {tasks} tasks: {each} switches a hypercall");
        assert!(each >= min, "{words} words, {tasks} tasks: {each}");
    }
}
