//! The flame graph of calls: the width of a frame is the time in it and its callees. Frames of a host
//! have warm colours, those of guests cool ones.

use super::CallsSource;
use super::folded::OFF_CPU;
use super::stacks::{Stack, Stacks};
use crate::flame::{Begins, Drawing, Frame, class};
use crate::units::{plural, share, time};

/// The graph of all sources, side by side.
pub(super) fn flame(sources: &[CallsSource], title: &str) -> String {
    let mut drawing = Drawing::default();
    let stacks: Vec<Stacks> = sources.iter().map(Stacks::from_source).collect();
    let total: u64 = stacks.iter().map(|tree| tree.total).fold(0, u64::saturating_add);
    let mut offset = 0;
    let mut guests = 0;
    for (source, stacks) in sources.iter().zip(&stacks) {
        let kind = if source.is_guest { 1 + guests % 2 } else { 0 };
        guests += usize::from(source.is_guest);
        draw(&mut drawing, source, stacks, kind, offset, total);
        offset = offset.saturating_add(stacks.total);
    }
    drawing.document(title, &legend(sources))
}

/// The meaning of colours and widths.
fn legend(sources: &[CallsSource]) -> String {
    let timed = sources.iter().any(CallsSource::has_times);
    let width = if timed { "width: time including callees" } else { "width: calls" };
    let guests = if sources.iter().any(|source| source.is_guest) { ", cool: guest" } else { "" };
    let hosts = if sources.iter().any(|source| !source.is_guest) { "warm: host" } else { "" };
    let colours = format!("{hosts}{guests}");
    format!("{width} · {}", colours.trim_start_matches(", "))
}

/// Adds the frames of a source, from `offset` on.
fn draw(
    drawing: &mut Drawing,
    source: &CallsSource,
    stacks: &Stacks,
    kind: usize,
    offset: u64,
    total: u64,
) {
    let part = |value: u64| value as f64 / total.max(1) as f64;
    let ns = source.calls.nanoseconds;
    let amount = |value: u64| {
        if source.has_times() { time(value, ns) } else { plural(value, "call") }
    };
    drawing.push(Frame {
        depth: 0,
        offset: part(offset),
        width: part(stacks.total),
        name: source.machine.clone(),
        title: format!("{}\n{}", source.path, amount(stacks.total)),
        class: "n".to_owned(),
    });
    let mut begins = Begins::at(offset);
    stacks.walk(|depth, stack| {
        let frame_offset = begins.place(depth, stack.total);
        let frame = Frame {
            depth: depth + 1,
            offset: part(frame_offset),
            width: part(stack.total),
            name: stack.name.clone(),
            title: title(source, stack, &amount, stacks.total),
            class: if stack.is_function { class(kind, &stack.name) } else { "n".to_owned() },
        };
        if !drawing.push(frame) {
            return false;
        }
        let width = part(stack.off_cpu);
        if Drawing::is_seen(width) {
            drawing.push(Frame {
                depth: depth + 2,
                offset: part(frame_offset.saturating_add(stack.total - stack.off_cpu)),
                width,
                name: OFF_CPU.to_owned(),
                title: amount(stack.off_cpu),
                class: "o".to_owned(),
            });
        }
        true
    });
}

fn title(
    source: &CallsSource,
    stack: &Stack,
    amount: &dyn Fn(u64) -> String,
    total: u64,
) -> String {
    let mut title = format!("{} ({})", amount(stack.total), share(stack.total, total));
    if source.has_times() && stack.is_function {
        title += &format!("\nitself {}", amount(stack.self_amount));
        if stack.off_cpu > 0 {
            title += &format!(", off CPU {}", amount(stack.off_cpu));
        }
        title += &format!("\n{}", plural(stack.count, "call"));
    }
    title
}
