//! Writes events bit by bit, with any field sizes and alignments in both byte orders, and reads
//! them back.

use std::fmt::Write;

use ctf::{ByteOrder, Events, Float, Integer, Label, Layout, Packets, Visit};
use testkit::{CtfBits, Random, ctf_metadata, ctf_packet};

/// A number of at most `count` bits.
fn of_bits(numbers: &mut Random, count: u32) -> u64 {
    let mut some = || numbers.below(1 << 31);
    let wide = some() << 33 ^ some() << 16 ^ some();
    if count >= 64 { wide } else { wide & ((1 << count) - 1) }
}

#[derive(Clone, Copy)]
enum Kind {
    Integer {
        bits: u32,
        align: u32,
        signed: bool,
    },
    Text,
    /// 16-bit numbers; the 8-bit number before them is their count.
    Sequence,
}

fn kinds(numbers: &mut Random) -> Vec<Kind> {
    let kind = |numbers: &mut Random| match numbers.below(6) {
        0 => Kind::Text,
        1 => Kind::Sequence,
        _ => {
            let bits = 1 + numbers.below(64) as u32;
            let align = 1 << numbers.below(7);
            Kind::Integer { bits, align, signed: numbers.below(2) == 1 }
        }
    };
    (0..1 + numbers.below(9)).map(|_| kind(numbers)).collect()
}

fn described(kinds: &[Kind]) -> String {
    let mut text = String::new();
    for (at, kind) in kinds.iter().enumerate() {
        let _ = match kind {
            Kind::Integer { bits, align, signed } => write!(
                text,
                "integer {{ size = {bits}; align = {align}; signed = {signed}; }} _f{at}; "
            ),
            Kind::Text => write!(text, "string _f{at}; "),
            Kind::Sequence => write!(
                text,
                "integer {{ size = 8; align = 8; }} _n{at}; \
                 integer {{ size = 16; align = 16; }} _f{at}[_n{at}]; "
            ),
        };
    }
    text
}

/// Alignment of an event in bits: that of its most strictly aligned field.
fn align(kinds: &[Kind]) -> usize {
    let align_of = |kind: &Kind| match kind {
        Kind::Integer { align, .. } => *align as usize,
        Kind::Text => 8,
        Kind::Sequence => 16,
    };
    kinds.iter().map(align_of).max().unwrap_or(1)
}

/// Writes an event; returns what a reader should find.
fn write(kinds: &[Kind], numbers: &mut Random, bits: &mut CtfBits) -> Vec<String> {
    let mut seen = Vec::new();
    bits.align(align(kinds));
    for (at, kind) in kinds.iter().enumerate() {
        match *kind {
            Kind::Integer { bits: count, align, signed } => {
                let value = of_bits(numbers, count);
                bits.align(align as usize).integer(value, count);
                let above = 64 - count;
                let number = (value << above).cast_signed() >> above;
                let number = if signed { i128::from(number) } else { value.into() };
                seen.push(format!("f{at}={number}"));
            }
            Kind::Text => {
                let text = "abcdefghij".get(..numbers.below(10) as usize).unwrap_or("");
                bits.bytes(text.as_bytes()).bytes(&[0]);
                seen.push(format!("f{at}={text}"));
            }
            Kind::Sequence => {
                let count = numbers.below(5);
                bits.align(8).integer(count, 8).align(16);
                seen.push(format!("n{at}={count}"));
                for _ in 0..count {
                    let value = of_bits(numbers, 16);
                    bits.integer(value, 16);
                    seen.push(format!("={value}"));
                }
            }
        }
    }
    seen
}

#[derive(Default)]
struct Seen(Vec<String>);

impl Visit for Seen {
    fn integer(&mut self, name: &str, value: i128, _: Option<&Integer>, _: Option<&[Label]>) {
        self.0.push(format!("{name}={value}"));
    }
    fn float(&mut self, name: &str, value: f64, _: &Float) {
        self.0.push(format!("{name}={value}"));
    }
    fn text(&mut self, name: &str, bytes: &[u8]) {
        self.0.push(format!("{name}={}", String::from_utf8_lossy(bytes)));
    }
    fn begin(&mut self, _: &str, _: bool) {}
    fn end(&mut self, _: bool) {}
}

fn round_trip(order: ByteOrder, seed: u64) {
    let mut numbers = Random(seed + 1);
    let kinds = kinds(&mut numbers);
    let layout = Layout::parse(ctf_metadata(order, &described(&kinds)).as_bytes()).unwrap();
    let mut expected = Vec::new();
    // Shortly before the 27-bit clock wraps.
    let mut now = (5 << 27) - 20_000;
    let file = ctf_packet(order, now, |bits| {
        for _ in 0..8 {
            now += numbers.below(10_000);
            bits.align(8);
            if numbers.below(3) == 0 {
                bits.integer(31, 5).align(8).integer(0, 32).integer(now, 64);
            } else {
                bits.integer(0, 5).integer(now & ((1 << 27) - 1), 27);
            }
            expected.push((now, write(&kinds, &mut numbers, bits)));
        }
    });
    let packet = Packets::new(&layout, &file).next().unwrap().unwrap();
    assert_eq!((packet.cpu, packet.len), (Some(1), file.len() as u64));
    let mut events = Events::new(&layout, &packet, &file).unwrap();
    let mut passed = Events::new(&layout, &packet, &file).unwrap();
    for (cycles, fields) in &expected {
        let mut seen = Seen::default();
        assert_eq!(events.next_event().unwrap().unwrap().cycles, *cycles, "{seed}");
        events.visit(&mut seen).unwrap();
        assert_eq!(seen.0, *fields, "{seed}");
        passed.next_event().unwrap().unwrap();
        assert_eq!(passed.event_at(), events.event_at(), "{seed}");
        passed.take(|_, _, _| ()).unwrap();
    }
    assert!(events.next_event().is_none() && passed.next_event().is_none(), "{seed}");
}

#[test]
fn what_was_written_is_read() {
    for seed in 0..500 {
        round_trip(ByteOrder::Little, seed);
        round_trip(ByteOrder::Big, seed);
    }
}
