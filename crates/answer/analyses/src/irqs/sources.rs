//! Events that begin and end interrupt handlers, and names of handlers.

use ftrace::eventfmt::EventFormat;
use sources::Recording;
use timeline::NamedNumber;

use crate::states::HandlerSources;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HandlerKind {
    /// A device's interrupt (`irq:irq_handler_entry`).
    Irq,
    /// An interrupt of the architecture: timers, calls by other CPUs (`irq_vectors:*_entry`).
    Vector,
    /// A call by another CPU, on arm64 (`ipi:ipi_entry`).
    Ipi,
    /// A soft interrupt (`irq:softirq_entry`).
    Softirq,
}

impl HandlerKind {
    /// Name in reports and scripts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Irq => "irq",
            Self::Vector => "vector",
            Self::Ipi => "ipi",
            Self::Softirq => "softirq",
        }
    }
}

/// Names of soft interrupts (include/linux/interrupt.h).
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// The kernel's name of a soft interrupt.
pub(crate) fn softirq_name(number: u64) -> Option<&'static str> {
    SOFTIRQS.get(usize::try_from(number).ok()?).copied()
}

/// The event that has the handler names of devices' interrupts.
pub(crate) const IRQ_NAMES: NamedNumber =
    NamedNumber { event: "irq:irq_handler_entry", number: "irq", name: "name" };

const IRQ: u8 = 0;
pub(super) const SOFTIRQ: u8 = 1;
const IPI: u8 = 2;
const FIRST_VECTOR: u8 = 3;
/// Max named vectors: more than any kernel has events for.
const MAX_VECTORS: usize = 100;

/// Sources of handlers in some recordings.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    vectors: Vec<String>,
}

impl Sources {
    pub(super) fn new(recordings: &[Recording]) -> Self {
        let formats = recordings.iter().flat_map(|recording| recording.formats().iter());
        let mut vectors: Vec<String> =
            formats.filter_map(|(_, format)| vector(format)).map(str::to_owned).collect();
        vectors.sort_unstable();
        vectors.dedup();
        vectors.truncate(MAX_VECTORS);
        Self { vectors }
    }

    /// Kind of a source, and the name if it is a vector.
    pub(super) fn kind(&self, source: u8) -> (HandlerKind, Option<&str>) {
        match source {
            IRQ => (HandlerKind::Irq, None),
            SOFTIRQ => (HandlerKind::Softirq, None),
            IPI => (HandlerKind::Ipi, None),
            vector => {
                let at = usize::from(vector.saturating_sub(FIRST_VECTOR));
                (HandlerKind::Vector, self.vectors.get(at).map(String::as_str))
            }
        }
    }
}

impl HandlerSources for Sources {
    fn source_of(&self, format: &EventFormat) -> Option<(u8, &'static [&'static str])> {
        Some(match (format.system(), format.name()) {
            ("irq", "irq_handler_entry" | "irq_handler_exit") => (IRQ, &["irq"]),
            ("irq", "softirq_raise" | "softirq_entry" | "softirq_exit") => (SOFTIRQ, &["vec"]),
            ("ipi", "ipi_entry" | "ipi_exit") => (IPI, &[]),
            _ => {
                let at = self.vectors.iter().position(|name| Some(name.as_str()) == vector(format));
                (FIRST_VECTOR.checked_add(u8::try_from(at?).ok()?)?, &[])
            }
        })
    }
}

fn vector(format: &EventFormat) -> Option<&str> {
    let name = format.name();
    let stem = name.strip_suffix("_entry").or_else(|| name.strip_suffix("_exit"))?;
    (format.system() == "irq_vectors").then_some(stem)
}
