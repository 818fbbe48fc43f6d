//! Single settings that change the cost of exits, applied temporarily.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::exitcost::undo::Undo;

/// A setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Toggle {
    /// No ioeventfd: doorbells return to the VMM, which signals their eventfds.
    NoIoeventfd,
    /// The kernel's vhost-net handles sent frames, instead of a thread of the VMM.
    Vhost,
    /// KVM has no interrupt controllers: the VMM handles their ports, and halts.
    NoIrqchip,
    /// A kernel module parameter has another value.
    Parameter {
        /// `MODULE/NAME`.
        name: String,
        value: String,
    },
    /// Extra kernel command line arguments; module parameters are `MODULE.NAME=VALUE` there.
    Boot {
        /// The arguments.
        text: String,
    },
    /// Extra kernel command line arguments of guests, for their hypervisors; the same syntax as [`Self::Boot`].
    GuestBoot {
        /// The arguments.
        text: String,
    },
    /// An extra CPU feature of the lab's emulated processor, or a removed one (`-npt`), by QEMU's name.
    Processor { name: String },
    /// KVM's events are recorded.
    KvmEvents,
    /// KVM's and the scheduler's events are recorded.
    KvmSchedEvents,
    /// A kprobe on the function that handles each exit is recorded.
    Kprobe,
    /// Each call of a kernel function is recorded.
    Function,
    /// Each call of a kernel function, and each return from one.
    FunctionGraph,
}

const TRACING: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Functions that handle each exit, on AMD's and on Intel's processors.
const EXIT_HANDLERS: [&str; 2] = ["svm_handle_exit", "vmx_handle_exit"];

impl Toggle {
    /// The name in reports.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::NoIoeventfd => "no ioeventfd".into(),
            Self::Vhost => "vhost".into(),
            Self::NoIrqchip => "no irqchip in KVM".into(),
            Self::Boot { text } => format!("booted with {text}"),
            Self::GuestBoot { text } => format!("guests booted with {text}"),
            Self::Processor { name } => match name.strip_prefix('-') {
                Some(name) => format!("processor without {name}"),
                None => format!("processor with {name}"),
            },
            Self::Parameter { name, value } => format!("{name}={value}"),
            Self::KvmEvents => "kvm events".into(),
            Self::KvmSchedEvents => "kvm and sched events".into(),
            Self::Kprobe => "kprobe on exits".into(),
            Self::Function => "function tracer".into(),
            Self::FunctionGraph => "function_graph".into(),
        }
    }

    /// Parses a command line word; a parameter is `MODULE/NAME=VALUE`.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Vec<Self>> {
        let toggle = match word {
            "all" => return Some([Self::tracers(), Self::settings()].concat()),
            "tracers" => return Some(Self::tracers()),
            "settings" => return Some(Self::settings()),
            "boot" => return Some(Self::boots()),
            "no-ioeventfd" => Self::NoIoeventfd,
            "vhost" => Self::Vhost,
            "no-irqchip" => Self::NoIrqchip,
            "kvm-events" => Self::KvmEvents,
            "kvm-sched-events" => Self::KvmSchedEvents,
            "kprobe" => Self::Kprobe,
            "function" => Self::Function,
            "function-graph" => Self::FunctionGraph,
            other => Self::with_value(other)?,
        };
        Some(vec![toggle])
    }

    /// Parses a word with a value.
    fn with_value(word: &str) -> Option<Self> {
        let text = |prefix| {
            let text: &str = word.strip_prefix(prefix)?;
            let is_whole = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
            is_whole.then(|| text.to_owned())
        };
        if let Some(text) = text("boot:") {
            return Some(Self::Boot { text });
        }
        if let Some(text) = text("guest-boot:") {
            return Some(Self::GuestBoot { text });
        }
        if let Some(name) = text("processor:") {
            return Some(Self::Processor { name });
        }
        let (name, value) = word.split_once('=').filter(|(name, _)| name.contains('/'))?;
        Some(Self::Parameter { name: name.into(), value: value.into() })
    }

    /// The tracers, sorted by increasing amount of recorded data.
    #[must_use]
    pub fn tracers() -> Vec<Self> {
        vec![
            Self::KvmEvents,
            Self::KvmSchedEvents,
            Self::Kprobe,
            Self::Function,
            Self::FunctionGraph,
        ]
    }

    /// Settings other than tracers: a KVM parameter that matters for halts, and optional features of machines.
    #[must_use]
    pub fn settings() -> Vec<Self> {
        let parameter =
            |name: &str, value: &str| Self::Parameter { name: name.into(), value: value.into() };
        vec![
            parameter("kvm/halt_poll_ns", "0"),
            parameter("kvm/nx_huge_pages", "off"),
            parameter("kvm_intel/vmentry_l1d_flush", "never"),
            Self::NoIoeventfd,
            Self::Vhost,
            Self::NoIrqchip,
        ]
    }

    /// Settings that are read at boot or when a module is loaded: mitigations of CPU vulnerabilities, and features that
    /// KVM leaves to AMD's hardware.
    #[must_use]
    pub fn boots() -> Vec<Self> {
        let words = [
            "mitigations=off",
            "kvm_amd.npt=0",
            "kvm_amd.avic=1",
            "kvm_amd.vls=0",
            "kvm_amd.vgif=0",
        ];
        words.map(|text| Self::Boot { text: text.into() }).into()
    }

    /// Whether machines have to be booted for it.
    #[must_use]
    pub fn needs_boot(&self) -> bool {
        matches!(self, Self::Boot { .. } | Self::GuestBoot { .. } | Self::Processor { .. })
    }

    /// Applies it until it is undone. Settings of a machine are applied there, not here.
    pub(crate) fn apply(&self, undo: &mut Undo) -> io::Result<()> {
        match self {
            Self::NoIoeventfd | Self::Vhost | Self::NoIrqchip => Ok(()),
            Self::Boot { .. } | Self::GuestBoot { .. } | Self::Processor { .. } => {
                Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "it needs machines that boot with it: use --lab",
                ))
            }
            Self::Parameter { name, value } => set_parameter(undo, name, value),
            Self::KvmEvents => record(undo, &["kvm"]),
            Self::KvmSchedEvents => record(undo, &["kvm", "sched"]),
            Self::Kprobe => probe(undo),
            Self::Function => {
                let instance = instance(undo)?;
                undo.write(&instance.join("current_tracer"), "function")
            }
            Self::FunctionGraph => graph(undo),
        }
    }
}

fn set_parameter(undo: &mut Undo, name: &str, value: &str) -> io::Result<()> {
    let invalid =
        || io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is not MODULE/NAME"));
    let (module, parameter) = name.split_once('/').ok_or_else(invalid)?;
    let plain = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    if !plain(module) || !plain(parameter) {
        return Err(invalid());
    }
    undo.write(&Path::new("/sys/module").join(module).join("parameters").join(parameter), value)
}

/// The mount point of tracefs.
pub(crate) fn tracing() -> io::Result<PathBuf> {
    let found = TRACING.map(PathBuf::from).into_iter().find(|at| at.join("instances").is_dir());
    found.ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, "tracefs is not mounted, or not accessible")
    })
}

/// A separate tracing instance that overwrites old events and has no reader: only recording costs.
fn instance(undo: &mut Undo) -> io::Result<PathBuf> {
    let instance = tracing()?.join(format!("instances/hyperscope-bench-{}", std::process::id()));
    undo.make(&instance)?;
    Ok(instance)
}

fn record(undo: &mut Undo, systems: &[&str]) -> io::Result<()> {
    let instance = instance(undo)?;
    systems.iter().try_for_each(|system| {
        undo.write_new(&instance.join("events").join(system).join("enable"), "1", "0")
    })
}

fn probe(undo: &mut Undo) -> io::Result<()> {
    let probes = tracing()?.join("kprobe_events");
    let group = format!("hyperscope_bench_{}", std::process::id());
    let mut set = Err(io::ErrorKind::NotFound.into());
    for function in EXIT_HANDLERS {
        set =
            undo.append(&probes, &format!("p:{group}/exit {function}"), &format!("-:{group}/exit"));
        if set.is_ok() {
            break;
        }
    }
    set?;
    let instance = instance(undo)?;
    undo.write_new(&instance.join("events").join(group).join("enable"), "1", "0")
}

/// Before Linux 6.13 only the top-level instance supports this: fails if it is in use.
fn graph(undo: &mut Undo) -> io::Result<()> {
    let tracer = tracing()?.join("current_tracer");
    let current = fs::read_to_string(&tracer)?;
    if current.trim() != "nop" {
        let text = format!("another program uses a tracer: {}", current.trim());
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
    }
    undo.write(&tracer, "function_graph")
}
