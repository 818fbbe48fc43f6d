//! The example of `docs/formats/hypertrace.md`, recorded in the lab, means what is said there.

use hypertrace::{Decoder, Kind, Task};

#[test]
fn the_example_is_as_described() {
    let text = include_str!("../../../../../docs/formats/hypertrace.md");
    let (mut decoder, mut events) = (Decoder::default(), Vec::new());
    for (line, stamp_ns) in text
        .lines()
        .filter(|line| line.starts_with("nr 0x48530000"))
        .zip([404_030_063_456, 404_032_870_430])
    {
        let words: Vec<u64> = line
            .split(" 0x")
            .skip(2)
            .map(|word| u64::from_str_radix(word.split(' ').next().unwrap(), 16).unwrap())
            .collect();
        decoder.frame(&words, stamp_ns, &mut events);
    }
    let insmod = Task::new(3200, 120, b"insmod");
    let worker = Task::new(17, 120, b"kworker/0:1");
    let decoded = |at: usize| {
        let Kind::Switch { state, next } = events[at].kind.clone() else {
            panic!("{:?}", events[at])
        };
        (events[at].running, state.letter(), next)
    };
    assert_eq!(events.len(), 2);
    assert_eq!(decoded(0), (Some(insmod), "R", Some(worker)));
    assert_eq!(decoded(1), (Some(worker), "D", Some(insmod)));
    // 56,188 and 204,307 units of 32 cycles at 2,596,106 kHz.
    assert_eq!(404_032_870_430 - events[1].stamp_ns, 2_518_319);
    assert_eq!(events[1].stamp_ns - events[0].stamp_ns, 692_582);
}
