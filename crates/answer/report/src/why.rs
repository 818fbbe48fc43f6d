//! The report of `hyperscope why`: what VMs did with their time, and the causes of slowness, the costliest first.

mod document;
mod words;

use analyses::why::{Cause, CauseId, Why};
use printable::line;
use serde::Serialize;

pub(crate) use self::document::Document;
use self::words::{budget, evidence, percent};
use crate::table::Table;
use crate::units::{plural, time};
use crate::xml::shortened;
use crate::{Report, losses};

/// Lines of a report on a terminal.
const MAX_LINES: usize = 12;
/// Lines that a cause takes.
const LINES_OF_CAUSE: usize = 4;
/// Evidence that is shown of a cause, if it fits into a line: JSON has all.
const MAX_EVIDENCE: usize = 3;
/// Columns before the lines below a cause.
const INDENT: &str = "   ";

/// What was asked.
#[derive(Clone, Debug, Default)]
pub struct WhyQuestion {
    /// The VM, if only one was asked about.
    pub vm: Option<String>,
}

/// Why VMs are slow.
#[derive(Debug)]
pub struct WhyReport {
    /// Paths of the recordings, as the user named them.
    pub sources: Vec<String>,
    pub question: WhyQuestion,
    pub why: Why,
}

impl Report for WhyReport {
    /// What the VM with the costliest cause did with its time, and whether anything is wrong.
    fn headline(&self) -> String {
        if !self.why.nanoseconds {
            return "The clock does not count nanoseconds, so no cause can be claimed.".to_owned();
        }
        let Some(first) = self.why.vms.first() else {
            return "The recording has no VM: record the KVM host, with kvm and sched events."
                .to_owned();
        };
        let others = self.why.vms.len() - 1;
        let wrong = self.why.vms.iter().skip(1).filter(|vm| !vm.causes.is_empty()).count();
        let vm = line(&first.vm);
        let mut verdict = match first.causes.first() {
            Some(cause) => {
                format!("{vm}: {} ({}): {}.", cause.id.title(), percent(cause.share), budget(first))
            }
            None => format!("{vm}: nothing wrong: {}.", budget(first)),
        };
        if others > 0 && wrong > 0 {
            verdict += &format!(" Causes below: {} of {} VMs.", wrong + 1, others + 1);
        } else if others > 0 {
            verdict += &format!(" Nothing wrong in {}.", plural(others as u64, "other VM"));
        }
        verdict
    }

    fn tables(&self, width: Option<usize>) -> String {
        let notes: Vec<String> =
            self.why.losses.iter().flat_map(|lost| losses::notes(lost, 0)).collect();
        // The verdict, a line for what is not shown, and one for losses.
        let reserved = 2 + usize::from(!notes.is_empty());
        let room = MAX_LINES.saturating_sub(reserved) / LINES_OF_CAUSE;
        let causes: Vec<&Cause> = self.causes().collect();
        let (shown, hidden) = causes.split_at(room.min(causes.len()));
        let mut lines: Vec<String> = Vec::new();
        for (at, cause) in shown.iter().enumerate() {
            lines.extend(self.lines_of(at, cause, width));
        }
        lines.extend(hidden_causes(hidden).or_else(|| self.unseen()));
        if !notes.is_empty() {
            lines.push(line(&notes.join("; ")).into_owned());
        }
        let fitted =
            |text: &String| width.map_or_else(|| text.clone(), |width| shortened(text, width));
        lines.iter().map(|text| fitted(text) + "\n").collect()
    }

    fn document(&self) -> impl Serialize {
        self.document_of()
    }

    fn csv(&self) -> Table {
        let mut table = Table::default();
        let all = || self.causes();
        let mut texts = |title: &str, cell: &dyn Fn(&Cause) -> String| {
            table.names(title, 0, all().map(cell).collect());
        };
        texts("cause", &|cause| cause.id.name().to_owned());
        texts("vm", &|cause| cause.vm.clone());
        texts("vcpu", &|cause| cause.vcpu.map(|vcpu| vcpu.to_string()).unwrap_or_default());
        texts("cost_ns", &|cause| cause.cost_ns.to_string());
        texts("share", &|cause| cause.share.to_string());
        texts("confidence", &|cause| cause.confidence.to_string());
        table
    }
}

impl WhyReport {
    pub(crate) fn document_of(&self) -> Document<'_> {
        Document::new(self)
    }

    /// The causes of all VMs, the costliest first.
    fn causes(&self) -> impl Iterator<Item = &Cause> {
        let mut causes: Vec<&Cause> = self.why.vms.iter().flat_map(|vm| &vm.causes).collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.cost_ns));
        causes.into_iter()
    }

    /// What the recording cannot show.
    fn unseen(&self) -> Option<String> {
        let recording = self.why.vms.first()?.recording;
        let unseen = self.why.unseen.get(recording)?.first()?;
        Some(format!("Not recorded: {}; it shows {}.", unseen.events, unseen.shows))
    }

    fn lines_of(&self, at: usize, cause: &Cause, width: Option<usize>) -> [String; LINES_OF_CAUSE] {
        let vcpu = cause.vcpu.map(|vcpu| format!(" vCPU {vcpu}")).unwrap_or_default();
        let head = format!(
            "{}. {}  {}{vcpu}  {} ({}), {:.0}% sure",
            at + 1,
            cause.id.name(),
            line(&cause.vm),
            time(cause.cost_ns, true),
            percent(cause.share),
            cause.confidence * 100.0,
        );
        let help = cause.id.helps().first().copied().unwrap_or_default();
        [
            head,
            format!("{INDENT}{}", shown_evidence(cause, width)),
            format!("{INDENT}Remedy: {help}"),
            format!("{INDENT}Next: {}", self.next(cause.id)),
        ]
    }

    /// The command that shows more.
    fn next(&self, id: CauseId) -> String {
        let first = self.sources.first().map(|path| line(path)).unwrap_or_default();
        let more = if self.sources.len() > 1 { " …" } else { "" };
        format!("hyperscope {} {first}{more}", id.next())
    }
}

/// The strongest evidence, as much as fits into a line.
fn shown_evidence(cause: &Cause, width: Option<usize>) -> String {
    let mut text = String::new();
    for fact in cause.evidence.iter().take(MAX_EVIDENCE).map(evidence) {
        let longer = if text.is_empty() { fact } else { format!("{text}; {fact}") };
        if !text.is_empty()
            && width.is_some_and(|width| longer.chars().count() + INDENT.len() > width)
        {
            break;
        }
        text = longer;
    }
    line(&text).into_owned()
}

/// Causes that have no room.
fn hidden_causes(hidden: &[&Cause]) -> Option<String> {
    let named = |cause: &&Cause| format!("{} {}", cause.id.name(), percent(cause.share));
    let names: Vec<String> = hidden.iter().take(MAX_EVIDENCE).map(named).collect();
    let count = plural(hidden.len() as u64, "more cause");
    (!hidden.is_empty()).then(|| format!("{count}: {}; --format json lists all", names.join(", ")))
}
