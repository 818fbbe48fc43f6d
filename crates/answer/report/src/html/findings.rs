//! The findings at the top of a page, in words: where the time went, what is unusual, how reliable the
//! numbers are.

mod advice;
mod path;
mod quality;
mod time;
mod vms;

use analyses::advice::{About, Advice};
use schemars::JsonSchema;
use serde::Serialize;

use super::PageReport;
use crate::advice::AdviceRow;

/// The importance of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Information.
    Info,
    /// Likely relevant to the reader.
    Notice,
    /// Numbers are less reliable than they seem.
    Warning,
}

impl Weight {
    const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
        }
    }
}

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Piece {
    /// Its words.
    pub text: String,
    /// Whether it is emphasized.
    pub strong: bool,
}

/// The place in the page that shows a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Link {
    /// The part of the page.
    #[schemars(extend("enum" = ["exits", "heat", "timeline", "nested", "clocks", "calls", "path"]))]
    pub section: &'static str,
    /// Only for this VM.
    pub vm: Option<String>,
    /// Only for this level.
    pub level: Option<u8>,
    /// Only for this reason.
    pub reason: Option<String>,
}

/// One sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its importance.
    pub weight: Weight,
    /// Its words.
    pub pieces: Vec<Piece>,
    /// The place to look at.
    pub link: Option<Link>,
    /// The subject, by which advice is matched.
    about: Option<About>,
    /// Advice on it, with the path of the recording.
    advice: Vec<(String, Advice)>,
}

impl Finding {
    /// A finding from a sentence in which `*` encloses emphasized text. Values replace `{}` after the split,
    /// so that a star in them has no effect.
    fn new(weight: Weight, sentence: &str, values: &[impl AsRef<str>]) -> Self {
        let mut values = values.iter();
        let mut pieces = Vec::new();
        for (at, part) in sentence.split('*').enumerate() {
            let mut text = String::new();
            for (nth, words) in part.split("{}").enumerate() {
                if nth > 0 {
                    text += values.next().map_or("", AsRef::as_ref);
                }
                text += words;
            }
            if !text.is_empty() {
                pieces.push(Piece { text, strong: at % 2 == 1 });
            }
        }
        Self { weight, pieces, link: None, about: None, advice: Vec::new() }
    }

    fn to(mut self, link: Link) -> Self {
        self.link = Some(link);
        self
    }

    fn about(mut self, about: About) -> Self {
        self.about = Some(about);
        self
    }

    pub(super) fn document(&self) -> FindingDocument<'_> {
        let advice = self.advice.iter();
        FindingDocument {
            weight: self.weight.name(),
            pieces: &self.pieces,
            link: self.link.as_ref(),
            advice: advice.map(|(source, advice)| AdviceRow::new(source, advice)).collect(),
        }
    }
}

/// A sentence.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct FindingDocument<'p> {
    /// Its importance; warning: numbers are less reliable than they seem.
    #[schemars(extend("enum" = ["info", "notice", "warning"]))]
    weight: &'static str,
    /// The sentence in pieces.
    pieces: &'p [Piece],
    /// The place in the page that shows it; null: none.
    link: Option<&'p Link>,
    /// Advice, as rows of hyperscope advice; empty if no rule applies.
    advice: Vec<AdviceRow<'p>>,
}

/// All findings of a page, the most important first.
pub(super) fn collect(page: &PageReport) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, source) in page.exits.sources.iter().enumerate() {
        let takers = page.cpu.cpu.takers.iter().filter(|taker| taker.recording == at);
        let mut of_source = time::findings_of(source, &takers.collect::<Vec<_>>());
        let nested = page.nested.as_ref().and_then(|nested| nested.sources.get(at));
        of_source.extend(nested.and_then(|(_, nested)| time::nested(nested)));
        let own_advice =
            page.advice.iter().filter(|(source_at, _)| *source_at == at).map(|(_, advice)| advice);
        advice::attach(&source.path, own_advice, &mut of_source);
        findings.extend(of_source);
    }
    findings.extend(page.path.as_ref().and_then(path::finding_of));
    findings.extend(quality::findings_of(page));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.weight));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_in_names_mean_nothing() {
        let finding = Finding::new(Weight::Info, "*{}* of {}.", &["1%", "a*b{}*"]);
        let pieces: Vec<(&str, bool)> =
            finding.pieces.iter().map(|piece| (piece.text.as_str(), piece.strong)).collect();
        assert_eq!(pieces, [("1%", true), (" of a*b{}*.", false)]);
    }
}
