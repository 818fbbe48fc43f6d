//! Conditions of `--fail-if` on the numbers of a fleet.

use std::io::Write;
use std::process::ExitCode;

use analyses::diff::Condition;
use anyhow::bail;
use fleet::Metric;
use printable::messages;
use report::plural;

use command::exit_codes::CONDITION_HOLDS;
use session::Misuse;

/// Conditions, each with its metric.
#[derive(Debug)]
pub(super) struct Conditions<'c>(Vec<(&'c Condition, Metric)>);

/// A number of a fleet that has changed, or may have changed.
#[derive(Debug)]
pub(super) struct Number<'n> {
    pub(super) reason: &'n str,
    pub(super) metric: Metric,
    /// Values of the typical host before and after.
    pub(super) values: Option<(f64, f64)>,
    /// The change is real and lasting.
    pub(super) is_finding: bool,
    /// The verdict, for messages.
    pub(super) verdict: String,
}

impl Number<'_> {
    pub(super) fn is_asked_for(&self, condition: &Condition, metric: Metric) -> bool {
        self.metric == metric && is_about(condition, self.reason)
    }

    fn is_beyond(&self, condition: &Condition) -> bool {
        let is_time = self.metric.is_time();
        self.values.and_then(|values| condition.is_beyond_values(values, is_time)) == Some(true)
    }
}

pub(super) fn is_about(condition: &Condition, reason: &str) -> bool {
    condition
        .reason
        .as_deref()
        .is_none_or(|condition_reason| reason.eq_ignore_ascii_case(condition_reason))
}

impl<'c> Conditions<'c> {
    /// # Errors
    /// When a condition's metric does not exist in comparisons of hosts.
    pub(super) fn new(conditions: &'c [Condition]) -> Result<Self, Misuse> {
        let with_metric = |condition: &'c Condition| Ok((condition, metric_of(condition)?));
        conditions.iter().map(with_metric).collect::<Result<_, _>>().map(Self)
    }

    /// The requested metrics, otherwise all, and those of conditions.
    pub(super) fn metrics(&self, asked_for: &[Metric]) -> Vec<Metric> {
        let mut metrics = match asked_for {
            [] => Metric::ALL.to_vec(),
            some => some.to_vec(),
        };
        metrics.extend(self.0.iter().map(|entry| entry.1));
        metrics.sort_unstable();
        metrics.dedup();
        metrics
    }

    /// Reports which conditions are true, and for what; `is_known` tells whether a condition's subject exists.
    ///
    /// # Errors
    /// When it does not.
    pub(super) fn conclude(
        &self,
        numbers: &[Number<'_>],
        is_known: &dyn Fn(&Condition, Metric) -> bool,
    ) -> anyhow::Result<ExitCode> {
        let mut code = ExitCode::SUCCESS;
        let mut err = messages();
        for (condition, metric) in &self.0 {
            if !is_known(condition, *metric) {
                // A misspelt name must not pass as a good result.
                bail!("--fail-if '{}': no row has the numbers for this condition", condition.text);
            }
            let matching_numbers =
                numbers.iter().filter(|number| number.is_asked_for(condition, *metric));
            let (findings, others): (Vec<&Number<'_>>, Vec<_>) = matching_numbers
                .filter(|number| number.is_beyond(condition))
                .partition(|number| number.is_finding);
            for finding in findings {
                let _ = writeln!(err, "hyperscope: {}: {}", condition.text, finding.verdict);
                code = ExitCode::from(CONDITION_HOLDS);
            }
            if !others.is_empty() {
                let rows = plural(others.len() as u64, "row");
                let _ = writeln!(
                    err,
                    "hyperscope: {}: {rows} exceed it by chance, temporarily or for another reason",
                    condition.text
                );
            }
        }
        Ok(code)
    }
}

fn metric_of(condition: &Condition) -> Result<Metric, Misuse> {
    let names = || Metric::ALL.map(Metric::short).join(", ");
    let metric = Metric::named(condition.metric()).ok_or_else(|| {
        Misuse(format!("--fail-if {}: unknown metric; use one of: {}", condition.text, names()))
    })?;
    let fits = condition.check_unit(metric.is_time());
    fits.map_err(|(_, what)| Misuse(format!("--fail-if {}: {what}", condition.text)))?;
    Ok(metric)
}
