//! Selects the format for a client by its `Accept` header.

use crate::metrics::exposition::Format;

/// The format for a client: protocol buffers if it prefers them to any text, else OpenMetrics if it accepts version
/// 1.0.0 at least as readily as plain text.
#[must_use]
pub fn accepted(accept: &str) -> Format {
    let (mut protobuf, mut open_metrics, mut text) = (0, 0, 0);
    for entry in accept.split(',') {
        let mut parts = entry.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut weight, mut version) = (FULL, None);
        let mut is_delimited = false;
        for part in parts {
            match part.split_once('=') {
                Some(("q" | "Q", value)) => weight = thousandths(value),
                Some((name, value)) if name.eq_ignore_ascii_case("version") => {
                    version = Some(value.trim_matches('"'));
                }
                Some(("encoding", "delimited")) => is_delimited = true,
                _ => {}
            }
        }
        let sum = match (kind.as_str(), version) {
            ("application/vnd.google.protobuf", _) if is_delimited => &mut protobuf,
            ("application/openmetrics-text", None | Some("1.0.0")) => &mut open_metrics,
            ("text/plain", None | Some("0.0.4")) => &mut text,
            _ => continue,
        };
        *sum = weight.max(*sum);
    }
    if protobuf > open_metrics.max(text) {
        Format::Protobuf
    } else if open_metrics > 0 && open_metrics >= text {
        Format::OpenMetrics
    } else {
        Format::Text
    }
}

/// A weight of 1, in thousandths.
const FULL: u32 = 1000;

/// A weight from 0 to 1 with at most three digits; an invalid weight counts as 0.
fn thousandths(value: &str) -> u32 {
    let weight = value.parse::<f64>().ok().filter(|weight| (0.0..=1.0).contains(weight));
    weight.map_or(0, |weight| (weight * f64::from(FULL)).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_what_they_weigh_most() {
        for (accept, expected) in [
            ("", Format::Text),
            ("*/*", Format::Text),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Format::Text),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("application/openmetrics-text; version=\"1.0.0\"; charset=utf-8", Format::OpenMetrics),
            ("application/openmetrics-text;version=0.0.1", Format::Text),
            ("application/openmetrics-text;q=0, text/plain", Format::Text),
            ("application/openmetrics-text;q=0.2,text/plain;q=0.3", Format::Text),
            (
                "Application/OpenMetrics-Text;Version=1.0.0;Q=0.3,text/plain;q=0.3",
                Format::OpenMetrics,
            ),
            ("application/openmetrics-text;q=nan", Format::Text),
            // Header of Prometheus 2.42.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Format::OpenMetrics,
            ),
            // Header with `--enable-feature=native-histograms`.
            (
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,\
                 application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Format::Protobuf,
            ),
            ("application/vnd.google.protobuf;encoding=text", Format::Text),
            ("application/vnd.google.protobuf;encoding=delimited;q=0.5,text/plain", Format::Text),
        ] {
            assert_eq!(accepted(accept), expected, "{accept}");
        }
    }
}
