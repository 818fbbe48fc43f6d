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
use crate::{Report, losses};

/// Lines of a report on a terminal.
const MAX_LINES: usize = 12;
/// Lines that a cause takes.
const LINES_OF_CAUSE: usize = 3;
/// Evidence that is shown of a cause: all is in JSON.
const MAX_EVIDENCE: usize = 3;

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
    fn headline(&self) -> String {
        self.verdict()
    }

    fn tables(&self, width: Option<usize>) -> String {
        let mut lines = Vec::new();
        let causes: Vec<&Cause> = self.causes().collect();
        let notes: Vec<String> =
            self.why.losses.iter().flat_map(|lost| losses::notes(lost, 0)).collect();
        // The verdict, one line for causes that are not shown, and one for losses.
        let reserved = 1 + usize::from(!notes.is_empty());
        let room = MAX_LINES.saturating_sub(1 + reserved) / LINES_OF_CAUSE;
        for (at, cause) in causes.iter().take(room).enumerate() {
            lines.extend(self.lines_of(at, cause));
        }
        let hidden = causes.len().saturating_sub(room);
        if hidden > 0 {
            let costs = causes.iter().skip(room).take(3);
            let costs: Vec<_> = costs
                .map(|cause| format!("{} {}", cause.id.name(), percent(cause.share)))
                .collect();
            lines.push(format!(
                "{} more: {}; --format json lists all",
                plural(hidden as u64, "cause"),
                costs.join(", ")
            ));
        } else if let Some(unseen) = self.unseen() {
            lines.push(unseen);
        }
        if !notes.is_empty() {
            lines.push(line(&notes.join("; ")).into_owned());
        }
        let fitted = lines.iter().map(|text| fit(text, width));
        fitted.map(|text| text + "\n").collect()
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

    /// One sentence: what the VM with the costliest cause did with its time, and whether anything is wrong.
    #[must_use]
    pub fn verdict(&self) -> String {
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

    /// What the recording cannot show.
    fn unseen(&self) -> Option<String> {
        let unseen = self.why.vms.first()?.unseen.first()?;
        Some(format!("Not recorded: {}; it shows {}.", unseen.events, unseen.shows))
    }

    fn lines_of(&self, at: usize, cause: &Cause) -> [String; LINES_OF_CAUSE] {
        let vcpu = cause.vcpu.map(|vcpu| format!(" vCPU {vcpu}")).unwrap_or_default();
        let facts: Vec<String> = cause.evidence.iter().take(MAX_EVIDENCE).map(evidence).collect();
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
            format!("   {}", line(&facts.join("; "))),
            format!("   Remedy: {help}. Next: {}", self.next(cause.id)),
        ]
    }

    /// The command that shows more.
    fn next(&self, id: CauseId) -> String {
        let first = self.sources.first().map(|path| line(path)).unwrap_or_default();
        let more = if self.sources.len() > 1 { " …" } else { "" };
        format!("hyperscope {} {first}{more}", id.next().0)
    }
}

/// A line that a terminal shows without a break.
fn fit(text: &str, width: Option<usize>) -> String {
    let Some(width) = width.filter(|&width| text.chars().count() > width) else {
        return text.to_owned();
    };
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}
