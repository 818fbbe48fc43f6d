//! The common interface of all metrics formats: families of samples with labels and numbers.

use std::fmt::{self, Display};

use crate::Histogram;

/// A metrics format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format, version 0.0.4.
    Text,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
    /// Prometheus' protocol buffers, each after its length, with native histograms.
    Protobuf,
}

impl Format {
    /// The HTTP content type.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Labels of a sample; values are not escaped yet.
pub(crate) type Labels<'a> = &'a [(&'a str, &'a str)];

/// A sample's number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Count(u64),
    /// Nanoseconds, shown as seconds.
    Seconds(u64),
}

const NS_A_SECOND: u64 = 1_000_000_000;

impl Value {
    /// The number in protocol buffers.
    pub(crate) fn number(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Seconds(ns) => ns as f64 / NS_A_SECOND as f64,
        }
    }
}

/// The exact number in text.
impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => Display::fmt(count, f),
            Self::Seconds(ns) => write!(f, "{}.{:09}", ns / NS_A_SECOND, ns % NS_A_SECOND),
        }
    }
}

/// Writes metrics, family by family.
pub(crate) trait Exposition {
    /// Begins a family. Its name has no `_total`, and ends with its unit, if it has one.
    fn family(&mut self, name: &'static str, kind: Kind, help: &str);
    /// A sample of a counter or gauge.
    fn sample(&mut self, labels: Labels<'_>, value: Value);
    fn histogram(&mut self, labels: Labels<'_>, times: &Histogram, sum_ns: u64);
}
