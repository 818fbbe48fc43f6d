//! Stored requests, from which a path's examples are chosen: a typical, a slow, and the slowest one.

use super::labels::{Label, Labels};
use super::requests::Step;
use super::variants::{Family, Way};
use super::{Actor, Example, ExampleOf, ExampleStep, Place};

/// Max first requests per variant: one of them is near the median.
const MAX_FIRST: usize = 64;

/// Max stored requests of distinct length per variant: the longest ones.
const MAX_LENGTHS: usize = 96;

/// Max stored requests of all variants, besides the first and the slowest of each.
pub(super) const MAX_KEPT: usize = 1 << 16;

/// Times and places of a request's steps.
type Steps = Box<[(u64, Place)]>;

/// A stored request.
#[derive(Debug)]
struct ExampleRequest {
    length_ns: u64,
    steps: Steps,
}

impl ExampleRequest {
    fn new(length_ns: u64, steps: &[Step]) -> Self {
        Self { length_ns, steps: steps.iter().map(|step| (step.stamp_ns, step.place)).collect() }
    }
}

/// Stored requests of one variant: the first ones, one per length class, and the slowest.
#[derive(Debug, Default)]
pub(super) struct Examples {
    first: Vec<ExampleRequest>,
    /// By length class, ascending.
    by_length: Vec<(u32, ExampleRequest)>,
    worst: Option<ExampleRequest>,
}

impl Examples {
    /// Stores a request if it is useful as an example; `room` is the number of requests that all variants together
    /// may still store.
    pub(super) fn add(&mut self, length_ns: u64, steps: &[Step], room: &mut usize) {
        if self.worst.as_ref().is_none_or(|worst| worst.length_ns < length_ns) {
            self.worst = Some(ExampleRequest::new(length_ns, steps));
        }
        if self.first.is_empty() {
            self.first.push(ExampleRequest::new(length_ns, steps));
        } else if *room == 0 {
            // The stored requests must suffice.
        } else if self.first.len() < MAX_FIRST {
            *room -= 1;
            self.first.push(ExampleRequest::new(length_ns, steps));
        } else {
            self.add_length(length_ns, steps, room);
        }
    }

    fn add_length(&mut self, length_ns: u64, steps: &[Step], room: &mut usize) {
        let class = class(length_ns);
        let Err(at) = self.by_length.binary_search_by_key(&class, |(class, _)| *class) else {
            return;
        };
        if self.by_length.len() >= MAX_LENGTHS {
            // Slow requests matter most.
            if at == 0 {
                return;
            }
            self.by_length.remove(0);
            self.by_length.insert(at - 1, (class, ExampleRequest::new(length_ns, steps)));
            return;
        }
        *room -= 1;
        self.by_length.insert(at, (class, ExampleRequest::new(length_ns, steps)));
    }

    fn all(&self) -> impl Iterator<Item = &ExampleRequest> {
        let by_length = self.by_length.iter().map(|(_, request)| request);
        self.first.iter().chain(by_length).chain(&self.worst)
    }
}

/// Length class: lengths in the same class differ by at most an eighth of a power of two.
const fn class(length_ns: u64) -> u32 {
    const PARTS_BITS: u32 = 3;
    let bits = u64::BITS - length_ns.leading_zeros();
    let shift = bits.saturating_sub(PARTS_BITS + 1);
    (shift << PARTS_BITS) + (length_ns >> shift) as u32
}

/// Chooses the examples of a path.
pub(super) fn choose(family: &Family<'_>, labels: &Labels) -> Vec<Example> {
    let median = family.ways.first().and_then(|way| {
        let [median] = way.stats.total.percentiles([500]);
        let request = nearest(way.stats.examples.first.iter(), median.unwrap_or(0))?;
        Some((ExampleOf::Median, way, request))
    });
    let [p99] = family.total.percentiles([990]);
    let p99 = p99.unwrap_or(0);
    let all = || family.ways.iter();
    let slow = all().filter_map(|way| Some((way, nearest(way.stats.examples.all(), p99)?)));
    let slow = slow.min_by_key(|(_, request)| request.length_ns.abs_diff(p99));
    let worst = all().filter_map(|way| Some((way, way.stats.examples.worst.as_ref()?)));
    // Of equally slow requests, prefers the most frequent variant.
    let worst = worst.rev().max_by_key(|(_, request)| request.length_ns);
    let slow = slow.map(|(way, request)| (ExampleOf::P99, way, request));
    let worst = worst.map(|(way, request)| (ExampleOf::Worst, way, request));
    [median, slow, worst].into_iter().flatten().map(|choice| example(choice, labels)).collect()
}

fn nearest<'k>(
    some: impl Iterator<Item = &'k ExampleRequest>,
    length_ns: u64,
) -> Option<&'k ExampleRequest> {
    some.min_by_key(|request| request.length_ns.abs_diff(length_ns))
}

fn example(
    (kind, way, request): (ExampleOf, &Way<'_>, &ExampleRequest),
    labels: &Labels,
) -> Example {
    let step = |(at, what): (&(u64, Place), &(Label, Actor))| ExampleStep {
        ts_ns: at.0,
        what: labels.text(what.0).to_owned(),
        on: what.1,
        place: at.1,
    };
    let steps = request.steps.iter().zip(&way.key.steps).map(step).collect();
    // The first step has no hop.
    let hops = way.at.iter().skip(1).filter_map(|at| at.checked_sub(1)).collect();
    Example { kind, steps, hops }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_in_order_and_narrow() {
        let mut before = (0, 0);
        for length_ns in (0..100_000).chain((100_000..1 << 40).step_by(999_983)) {
            let now = class(length_ns);
            assert!(now >= before.0, "{length_ns}");
            if now != before.0 {
                before = (now, length_ns);
            }
            assert!((length_ns - before.1) * 8 <= length_ns, "{length_ns}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded_and_has_the_slowest() {
        let label = Labels::default().intern("step");
        let place = Place { recording: 0, cpu: 0, thread: 1 };
        let step = |stamp_ns| Step { label, on: Actor::Vcpu, stamp_ns, place };
        let (mut examples, mut room) = (Examples::default(), MAX_KEPT);
        for at in 0..200_000_u64 {
            // Lengths in random order.
            let length_ns = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (at % 60);
            examples.add(length_ns, &[step(0), step(length_ns)], &mut room);
        }
        let kept_count = examples.all().count();
        assert!(kept_count <= MAX_FIRST + MAX_LENGTHS + 1, "{kept_count}");
        assert_eq!(kept_count - 2, MAX_KEPT - room);
        let lengths =
            || (0..200_000_u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (at % 60));
        let worst = examples.worst.as_ref().map(|request| request.length_ns);
        assert_eq!(worst, lengths().max());
        // Each slow length has a stored request near it.
        let mut all: Vec<u64> = lengths().collect();
        all.sort_unstable();
        let p99 = all[all.len() * 99 / 100];
        let near = nearest(examples.all(), p99).map_or(0, |request| request.length_ns);
        assert!(near.abs_diff(p99) <= p99 / 8, "{near} for {p99}");
        let mut none = 0;
        let mut small = Examples::default();
        (0..1000).for_each(|at| small.add(at, &[step(0), step(at)], &mut none));
        assert_eq!(small.all().count(), 2);
    }
}
