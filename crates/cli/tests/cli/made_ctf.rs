//! Synthetic CTF traces with features that no bundled trace has.

use std::fs;
use std::path::Path;

/// Byte order of a synthetic trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MadeOrder {
    Little,
    Big,
}

/// Bytes of a packet.
struct Bytes(Vec<u8>, MadeOrder);

impl Bytes {
    fn number(&mut self, value: u64, bytes: usize) -> &mut Self {
        match self.1 {
            MadeOrder::Little => self.0.extend_from_slice(&value.to_le_bytes()[..bytes]),
            MadeOrder::Big => self.0.extend_from_slice(&value.to_be_bytes()[8 - bytes..]),
        }
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(0);
        self
    }

    /// The head of an event.
    fn event(&mut self, id: u64, ns: u64) -> &mut Self {
        self.number(id, 4).number(ns, 8)
    }
}

const MAGIC: u64 = 0xc1fc_1fc1;

/// An integer of whole bytes in the metadata language.
fn integer(bits: u32, signed: bool, rest: &str) -> String {
    format!("integer {{ size = {bits}; align = 8; signed = {signed}; {rest} }}")
}

/// Metadata of a kernel's trace, with these fields in the packet context and the event context, and these events.
fn metadata(
    order: MadeOrder,
    clock: &str,
    (packet, context): (&str, &str),
    events: &[(&str, String)],
) -> String {
    let order = if order == MadeOrder::Little { "le" } else { "be" };
    let u32s = integer(32, false, "");
    let stamp = integer(64, false, "map = clock.c.value;");
    let events: String = (0..)
        .zip(events)
        .map(|(id, (name, fields))| {
            format!("event {{ id = {id}; name = \"{name}\"; stream_id = 0; fields := struct {{ {fields} }}; }};\n")
        })
        .collect();
    let context = if context.is_empty() {
        String::new()
    } else {
        format!("event.context := struct {{ {context} }};")
    };
    let packet = if packet.is_empty() {
        String::new()
    } else {
        format!("packet.context := struct {{ {packet} }};")
    };
    format!(
        "/* CTF 1.8 */\ntrace {{ major = 1; minor = 8; byte_order = {order};\n\
         packet.header := struct {{ {u32s} magic; {u32s} stream_id; }}; }};\n\
         env {{ domain = \"kernel\"; tracer_name = \"perf\"; }};\n\
         clock {{ name = c; freq = 1000000000; {clock} }};\n\
         stream {{ id = 0; event.header := struct {{ {u32s} id; {stamp} timestamp; }};\n{packet}\n{context} }};\n\
         {events}"
    )
}

/// Events with fields of all kinds: numbers of all sizes, arrays, sequences, texts, fractions, enumerations; fields
/// whose names have a meaning in C or for a kernel; events with one name in two systems, and one without fields.
pub(crate) fn of_every_kind(folder: &Path, order: MadeOrder) {
    let int = |bits, signed| integer(bits, signed, "");
    let numbers = format!(
        "{} u8; {} s8; {} u16; {} s16; {} u32; {} s32; {} u64; {} s64; {} hex;",
        int(8, false),
        int(8, true),
        int(16, false),
        int(16, true),
        int(32, false),
        int(32, true),
        int(64, false),
        int(64, true),
        integer(32, false, "base = 16;"),
    );
    let odd = "integer { size = 3; align = 1; signed = false; } three; integer { size = 5; align = 1; signed = true; } five;";
    let state = format!(
        "enum : {} {{ \"off\" = 0, \"it's \\\"on\\\"\" = 1, \"below\" = -2, \"several\" = 5 ... 9 }} state;",
        int(32, true)
    );
    let float = "floating_point { exp_dig = 11; mant_dig = 53; align = 8; } ratio; \
        floating_point { exp_dig = 8; mant_dig = 24; align = 8; } part;";
    let arrays = format!(
        "{} mac[6]; {} words[2]; {} longs[2]; {} len; {} sequence[len]; {} bytes[len]; \
         string text; integer {{ size = 8; align = 8; signed = false; encoding = UTF8; }} fixed[8];",
        int(8, false),
        int(16, false),
        int(64, false),
        int(32, false),
        int(32, false),
        int(8, false),
    );
    let names = format!(
        "{} _int; {} _if; {} _common_type; {} _common_x; {} _REC; {} _struct; string _name;",
        int(32, true),
        int(32, false),
        int(32, false),
        int(64, true),
        int(16, true),
        int(8, false),
    );
    let events = [
        ("made:numbers", numbers),
        ("made:odd", format!("{odd} {state} {float}")),
        ("made:arrays", arrays),
        ("made:names", names),
        ("other:names", format!("string name; {} value;", int(32, true))),
        ("made:empty", String::new()),
        ("sched:sched_switch", switch_fields()),
    ];
    let text = metadata(order, "offset_s = 1700000000;", ("", ""), &events);
    let mut bytes = Bytes(Vec::new(), order);
    bytes.number(MAGIC, 4).number(0, 4);
    let minus = |value: i64| value as u64;
    bytes.event(0, 1_000);
    bytes.number(200, 1).number(minus(-3), 1).number(60_000, 2).number(minus(-300), 2);
    bytes.number(4_000_000_000, 4).number(minus(-70_000), 4).number(u64::MAX, 8);
    bytes.number(minus(-5), 8).number(0xdead_beef, 4);
    for (at, state) in [0, 1, minus(-2), 7].into_iter().enumerate() {
        bytes.event(1, 2_000 + at as u64);
        // 3 bits, and 5 of -1.
        bytes.0.push(if order == MadeOrder::Little { 0b1111_1010 } else { 0b0101_1111 });
        bytes.number(state, 4).number(2.5_f64.to_bits(), 8);
        bytes.number(u64::from(0.25_f32.to_bits()), 4);
    }
    // Not 0: of an empty array, trace-cmd would show the bytes after it.
    for len in [2, 3] {
        bytes.event(2, 3_000 + len);
        [0x52, 0x54, 0, 0x12, 0x34, 0xff].iter().for_each(|byte| bytes.0.push(*byte));
        bytes.number(1, 2).number(65_000, 2).number(7, 8).number(1 << 40, 8).number(len, 4);
        (0..len).for_each(|at| _ = bytes.number(100_000 + at, 4));
        (0..len).for_each(|at| _ = bytes.number(at + 1, 1));
        bytes.text("with % and \"quotes\"").0.extend_from_slice(b"fixed\0\0\0");
    }
    bytes.event(3, 4_000);
    bytes.number(minus(-1), 4).number(2, 4).number(3, 4).number(minus(-4), 8);
    bytes.number(minus(-5), 2).number(6, 1).text("made");
    bytes.event(4, 5_000).text("other").number(minus(-9), 4);
    bytes.event(5, 6_000);
    switch(&mut bytes, 6, 7_000, (0, "swapper/0"), (42, "a thread"));
    write(folder, &text, &[bytes]);
}

/// Fields of a switch as perf converts them: names are texts.
fn switch_fields() -> String {
    let int = integer(32, true, "");
    let long = integer(64, true, "");
    format!(
        "string prev_comm; {int} prev_pid; {int} prev_prio; {long} prev_state; string next_comm; \
         {int} next_pid; {int} next_prio;"
    )
}

fn switch(bytes: &mut Bytes, id: u64, ns: u64, from: (u64, &str), to: (u64, &str)) {
    bytes.event(id, ns);
    bytes.text(from.1).number(from.0, 4).number(120, 4).number(1, 8);
    bytes.text(to.1).number(to.0, 4).number(120, 4);
}

fn write(folder: &Path, metadata: &str, streams: &[Bytes]) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("metadata"), metadata).unwrap();
    for (at, Bytes(bytes, _)) in streams.iter().enumerate() {
        fs::write(folder.join(format!("perf_stream_{at}")), bytes).unwrap();
    }
}

/// Where events store the CPU that recorded them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CpuIn {
    /// `cpu_id` of each packet.
    Packets,
    /// `perf_cpu` of each event, in one stream.
    Events,
    /// The context `cpu_id` of each event, in one stream.
    Context,
    /// The context `cpu_id`, in streams with events of both CPUs.
    MixedStreams,
    /// `perf_cpu`; all packets have CPU 0.
    EventsAgainstPackets,
}

/// Two CPUs that switch between two threads each, 10 times, at intervals of a microsecond.
pub(crate) fn of_two_cpus(folder: &Path, order: MadeOrder, cpu_in: CpuIn) {
    let cpu = format!("{} cpu_id;", integer(32, false, ""));
    let in_packets = matches!(cpu_in, CpuIn::Packets | CpuIn::EventsAgainstPackets);
    let in_context = matches!(cpu_in, CpuIn::Context | CpuIn::MixedStreams);
    let in_events = matches!(cpu_in, CpuIn::Events | CpuIn::EventsAgainstPackets);
    let cpu_field =
        if in_events { format!("{} perf_cpu; ", integer(32, false, "")) } else { String::new() };
    let heads = (if in_packets { &*cpu } else { "" }, if in_context { &*cpu } else { "" });
    let events = [("sched:sched_switch", cpu_field + &switch_fields())];
    let text = metadata(order, "", heads, &events);
    let streams = if matches!(cpu_in, CpuIn::Packets | CpuIn::MixedStreams) { 2 } else { 1 };
    let mut all: Vec<Bytes> = (0..streams).map(|_| Bytes(Vec::new(), order)).collect();
    for (at, bytes) in (0..).zip(&mut all) {
        bytes.number(MAGIC, 4).number(0, 4);
        if in_packets {
            bytes.number(at, 4);
        }
    }
    for step in 0..20_u64 {
        let cpu = step % 2;
        let stream = match cpu_in {
            CpuIn::Packets => cpu,
            // Neither stream belongs to a single CPU.
            CpuIn::MixedStreams => step / 3 % 2,
            _ => 0,
        };
        let bytes = &mut all[stream as usize];
        bytes.event(0, 1_000 + step * 1_000);
        if in_context || in_events {
            bytes.number(cpu, 4);
        }
        let (first, other) = ((100 + cpu, "one"), (200 + cpu, "other"));
        let (from, to) = if step / 2 % 2 == 0 { (first, other) } else { (other, first) };
        bytes.text(from.1).number(from.0, 4).number(120, 4).number(0, 8);
        bytes.text(to.1).number(to.0, 4).number(120, 4);
    }
    write(folder, &text, &all);
}
