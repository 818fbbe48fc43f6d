//! Each field of a sample, alone and together with all others.

use perfdata::{Body, PerfData, Sample};
use raw_bytes::ByteOrder;
use testkit::{PerfBytes, PerfDataBuilder, PerfEvent};

use crate::support::ORDERS;

/// The field's bit, a function that writes it, and a check of the parsed sample.
type Field = (u64, fn(PerfBytes) -> PerfBytes, fn(&Sample<'_>) -> bool);

/// All fields, in the kernel's order.
const FIELDS: [Field; 24] = [
    (1 << 16, |b| b.u64s(&[50]), |s| s.id == Some(50)),
    (1, |b| b.u64s(&[51]), |s| s.ip == Some(51)),
    (1 << 1, |b| b.u32s(&[52, 53]), |s| (s.pid, s.tid) == (Some(52), Some(53))),
    (1 << 2, |b| b.u64s(&[54]), |s| s.time == Some(54)),
    (1 << 3, |b| b.u64s(&[55]), |s| s.addr == Some(55)),
    (1 << 6, |b| b.u64s(&[50]), |s| s.id == Some(50)),
    (1 << 9, |b| b.u64s(&[56]), |s| s.stream_id == Some(56)),
    (1 << 7, |b| b.u32s(&[57, 0]), |s| s.cpu == Some(57)),
    (1 << 8, |b| b.u64s(&[58]), |s| s.period == Some(58)),
    // A group of two: times, then count, id and losses of each.
    (
        1 << 4,
        |b| b.u64s(&[2, 1, 2, 10, 50, 0, 11, 51, 7]),
        |s| {
            let read = s.read.unwrap();
            let second = read.counts().nth(1).unwrap();
            (read.time_enabled, read.time_running) == (Some(1), Some(2))
                && (read.counts().count(), second.value) == (2, 11)
                && (second.id, second.lost) == (Some(51), Some(7))
        },
    ),
    (1 << 5, |b| b.u64s(&[2, 61, 62]), |s| s.callchain.unwrap().iter().eq([61, 62])),
    (1 << 10, |b| b.u32s(&[4]).raw(b"raw!"), |s| s.raw == Some(b"raw!")),
    // Count, index, two branches, and a number for each.
    (
        1 << 11,
        |b| b.u64s(&[2, 9, 1, 2, 3, 4, 5, 6, 70, 71]),
        |s| {
            let branches = s.branches.unwrap();
            branches.hw_index == Some(9)
                && branches.iter().map(|branch| branch.to).eq([2, 5])
                && branches.counters.unwrap().iter().eq([70, 71])
        },
    ),
    (1 << 12, |b| b.u64s(&[2, 81, 82, 83]), |s| s.regs_user.unwrap().values.get(2) == Some(83)),
    (1 << 13, |b| b.u64s(&[8]).raw(b"thestack").u64s(&[3]), |s| s.stack_user == Some(b"the")),
    (1 << 14, |b| b.u64s(&[84]), |s| s.weight == Some(84)),
    (1 << 15, |b| b.u64s(&[85]), |s| s.data_src == Some(85)),
    (1 << 17, |b| b.u64s(&[86]), |s| s.transaction == Some(86)),
    (1 << 18, |b| b.u64s(&[0]), |s| s.regs_intr.unwrap().values.is_empty()),
    (1 << 19, |b| b.u64s(&[87]), |s| s.phys_addr == Some(87)),
    (1 << 21, |b| b.u64s(&[88]), |s| s.cgroup == Some(88)),
    (1 << 22, |b| b.u64s(&[89]), |s| s.data_page_size == Some(89)),
    (1 << 23, |b| b.u64s(&[90]), |s| s.code_page_size == Some(90)),
    (1 << 20, |b| b.u64s(&[3]).raw(b"aux"), |s| s.aux == Some(b"aux")),
];

fn holds(order: ByteOrder, fields: &[Field]) {
    let sample_type = fields.iter().fold(0, |all, (bit, ..)| all | bit);
    let mut file = PerfDataBuilder::new(order);
    file.event(PerfEvent {
        sample_type,
        read_format: 0b11111,
        branch_sample_type: 1 << 17 | 1 << 19,
        regs: [0b1011, 0b1],
        ids: vec![50],
        ..PerfEvent::default()
    });
    let body = fields.iter().fold(PerfBytes::new(order), |bytes, (_, write, _)| write(bytes));
    file.record(9, 1, &body.bytes);
    let file = file.file();
    let perf = PerfData::parse(&file).unwrap();
    let record = perf.records(&file).next().unwrap().unwrap();
    let Ok(Body::Sample(sample)) = perf.events.body(&record) else { panic!("a sample") };
    for (bit, _, says) in fields {
        assert!(says(&sample), "{bit:#x} in {order:?}: {sample:?}");
    }
}

#[test]
fn a_sample_says_each_field_that_was_written() {
    for order in ORDERS {
        FIELDS.iter().for_each(|field| holds(order, std::slice::from_ref(field)));
        holds(order, &FIELDS);
        let odd: Vec<Field> = FIELDS.iter().skip(1).step_by(2).copied().collect();
        holds(order, &odd);
    }
}

#[test]
fn counts_of_a_single_event_are_in_another_order() {
    for order in ORDERS {
        let mut file = PerfDataBuilder::new(order);
        let (sample_type, read_format) = (1 << 4, 0b10111);
        file.event(PerfEvent { sample_type, read_format, ..PerfEvent::default() });
        file.record(9, 1, &PerfBytes::new(order).u64s(&[10, 20, 30, 40, 50]).bytes);
        let file = file.file();
        let perf = PerfData::parse(&file).unwrap();
        let record = perf.records(&file).next().unwrap().unwrap();
        let Ok(Body::Sample(sample)) = perf.events.body(&record) else { panic!("a sample") };
        let read = sample.read.unwrap();
        let counts: Vec<_> =
            read.counts().map(|count| (count.value, count.id, count.lost)).collect();
        assert_eq!((read.time_enabled, read.time_running), (Some(20), Some(30)));
        assert_eq!(counts, [(10, Some(40), Some(50))]);
    }
}
