//! Metrics as Prometheus' protocol buffers, the only format with native histograms: messages
//! `io.prometheus.client.MetricFamily`, each preceded by its length.
//!
//! The field numbers are those of `metrics.proto` in prometheus/client_model 0.6.

use crate::{BUCKETS, Histogram};
use prost::Message;

use crate::metrics::exposition::{Exposition, Kind, Labels, Value};

/// Four buckets per power of two, as the kernel counts them.
const SCHEMA: i32 = 2;
/// Native index of the kernel's first bucket: it ends at 2^((-96 + 1) / 4) seconds.
const FIRST_INDEX: i32 = -95;

#[derive(Clone, PartialEq, Message)]
struct MetricFamily {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    help: String,
    #[prost(enumeration = "MetricType", tag = "3")]
    r#type: i32,
    #[prost(message, repeated, tag = "4")]
    metric: Vec<Metric>,
    #[prost(string, tag = "5")]
    unit: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
enum MetricType {
    Counter = 0,
    Gauge = 1,
    Histogram = 4,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<NativeHistogram>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// `Gauge` and `Counter`, which have the same field.
#[derive(Clone, PartialEq, Message)]
struct Number {
    #[prost(double, tag = "1")]
    value: f64,
}

#[derive(Clone, PartialEq, Message)]
struct NativeHistogram {
    #[prost(uint64, tag = "1")]
    sample_count: u64,
    #[prost(double, tag = "2")]
    sample_sum: f64,
    #[prost(sint32, tag = "5")]
    schema: i32,
    #[prost(double, tag = "6")]
    zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    positive_span: Vec<BucketSpan>,
    /// Difference of each bucket's count to the previous bucket's.
    #[prost(sint64, repeated, tag = "13")]
    positive_delta: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct BucketSpan {
    /// Number of buckets since the previous span, or, for the first span, since bucket 0.
    #[prost(sint32, tag = "1")]
    offset: i32,
    #[prost(uint32, tag = "2")]
    length: u32,
}

/// The messages so far.
#[derive(Debug, Default)]
pub(crate) struct Protobuf {
    out: Vec<u8>,
    family: MetricFamily,
}

impl Protobuf {
    /// Returns all messages.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.write_family();
        self.out
    }

    /// Skips a family without metrics.
    fn write_family(&mut self) {
        let family = std::mem::take(&mut self.family);
        if !family.metric.is_empty() {
            self.out.extend_from_slice(&family.encode_length_delimited_to_vec());
        }
    }

    fn metric(&mut self, labels: Labels<'_>, metric: Metric) {
        let pair = |(name, value): &(&str, &str)| LabelPair {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        };
        self.family.metric.push(Metric { label: labels.iter().map(pair).collect(), ..metric });
    }
}

impl Exposition for Protobuf {
    fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        self.write_family();
        let (kind, total) = match kind {
            Kind::Counter => (MetricType::Counter, "_total"),
            Kind::Gauge => (MetricType::Gauge, ""),
            Kind::Histogram => (MetricType::Histogram, ""),
        };
        self.family.name = format!("{name}{total}");
        help.clone_into(&mut self.family.help);
        self.family.set_type(kind);
    }

    fn sample(&mut self, labels: Labels<'_>, value: Value) {
        let number = Some(Number { value: value.number() });
        let metric = match self.family.r#type() {
            MetricType::Counter => Metric { counter: number, ..Metric::default() },
            _ => Metric { gauge: number, ..Metric::default() },
        };
        self.metric(labels, metric);
    }

    fn histogram(&mut self, labels: Labels<'_>, times: &Histogram, sum_ns: u64) {
        let histogram = Some(native(times, sum_ns));
        self.metric(labels, Metric { histogram, ..Metric::default() });
    }
}

/// The kernel's first bucket, which begins at 0, becomes the zero bucket; times beyond the last bucket get one more.
fn native(times: &Histogram, sum_ns: u64) -> NativeHistogram {
    let counts = times.counts();
    let [shortest, ..] = *counts;
    let in_buckets = counts.iter().copied().fold(0, u64::saturating_add);
    let longer = times.count().saturating_sub(in_buckets);
    let all = (1..).zip(counts.iter().skip(1).copied()).chain([(BUCKETS, longer)]);
    let mut histogram = NativeHistogram {
        sample_count: times.count(),
        sample_sum: Value::Seconds(sum_ns).number(),
        schema: SCHEMA,
        zero_threshold: Histogram::end_s(0),
        zero_count: shortest,
        ..NativeHistogram::default()
    };
    let (mut next_index, mut before) = (0, 0);
    for (bucket, count) in all.filter(|(_, count)| *count > 0) {
        let index = FIRST_INDEX + i32::try_from(bucket).unwrap_or(i32::MAX);
        let offset = index - next_index;
        match histogram.positive_span.last_mut() {
            Some(span) if offset == 0 => span.length += 1,
            _ => histogram.positive_span.push(BucketSpan { offset, length: 1 }),
        }
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        histogram.positive_delta.push(count - before);
        (next_index, before) = (index + 1, count);
    }
    // An empty span marks a native histogram without buckets.
    if histogram.positive_span.is_empty() {
        histogram.positive_span.push(BucketSpan::default());
    }
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counts by the upper bound of native buckets, as a reader of the format computes them.
    fn read(histogram: &NativeHistogram) -> Vec<(f64, u64)> {
        let (mut index, mut count, mut found) = (0, 0, Vec::new());
        let mut deltas = histogram.positive_delta.iter();
        for span in &histogram.positive_span {
            index += span.offset;
            for _ in 0..span.length {
                count += deltas.next().unwrap();
                found.push((2f64.powf(f64::from(index) / 4.0), count.try_into().unwrap()));
                index += 1;
            }
        }
        assert_eq!(deltas.next(), None);
        found
    }

    proptest! {
        #[test]
        fn buckets_are_the_kernels(
            some in proptest::collection::vec((0..BUCKETS, 1..u64::from(u32::MAX)), 0..40),
            longer in 0..3_u64,
        ) {
            let mut counts = [0; BUCKETS];
            some.iter().for_each(|(bucket, count)| counts[*bucket] = *count);
            let all = counts.iter().sum::<u64>() + longer;
            let histogram = native(&Histogram::new(counts, all), 1_500_000_000);
            let expected: Vec<(usize, u64)> =
                (1..).zip(counts[1..].iter().copied()).chain([(BUCKETS, longer)]).filter(|entry| entry.1 > 0).collect();
            let found = read(&histogram);
            prop_assert_eq!(found.len(), expected.len());
            for ((end_s, count), (bucket, expected)) in found.into_iter().zip(expected) {
                prop_assert_eq!(count, expected);
                prop_assert!((end_s / Histogram::end_s(bucket) - 1.0).abs() < 1e-12);
            }
            prop_assert_eq!((histogram.zero_count, histogram.sample_count), (counts[0], all));
            prop_assert_eq!(histogram.sample_sum, 1.5);
        }
    }

    #[test]
    fn families_come_one_after_the_other_with_their_lengths() {
        let mut protobuf = Protobuf::default();
        protobuf.family("none", Kind::Gauge, "No samples.");
        protobuf.family("some_seconds", Kind::Counter, "Time.");
        protobuf.sample(&[("vm", "a\"b\n")], Value::Seconds(1_500_000_000));
        protobuf.family("things", Kind::Gauge, "Things.");
        protobuf.sample(&[], Value::Count(5));
        let bytes = protobuf.end();
        let mut rest = bytes.as_slice();
        let first = MetricFamily::decode_length_delimited(&mut rest).unwrap();
        assert_eq!(
            (first.name.as_str(), first.r#type()),
            ("some_seconds_total", MetricType::Counter)
        );
        let [metric] = first.metric.as_slice() else { panic!("{first:?}") };
        assert_eq!(metric.counter.as_ref().unwrap().value, 1.5);
        assert_eq!((&*metric.label[0].name, &*metric.label[0].value), ("vm", "a\"b\n"));
        let second = MetricFamily::decode_length_delimited(&mut rest).unwrap();
        assert_eq!(second.metric[0].gauge.as_ref().unwrap().value, 5.0);
        assert!(rest.is_empty());
    }
}
