//! Arguments of `lab`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use command::args::time::some_time;

use super::lab_corpus::LabCorpusArgs;

/// Arguments of `lab`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope lab up --levels 2            a KVM host with a guest\n  \
    hyperscope lab exec 2 -- uname -a       run a command in the guest\n  \
    hyperscope lab run exits -o out         record a scenario, and check its event counts\n  \
    hyperscope lab down\n\n\
    Level 1 is the host inside the lab, level 2 its guest, level 3 the nested guest. Packages, images\n\
    and snapshots are kept between runs in ~/.cache/hyperscope/lab, or in the folder named by\n\
    HYPERSCOPE_LAB_DIR.")]
pub(crate) struct LabArgs {
    /// Name of the lab; several labs can be up at once
    #[arg(long, global = true, value_name = "NAME", default_value = "default")]
    pub(crate) name: String,
    #[command(subcommand)]
    pub(crate) verb: LabVerb,
}

/// What to do with the lab.
#[derive(Debug, Subcommand)]
pub(crate) enum LabVerb {
    /// Start the lab's machines
    Up(LabUpArgs),
    /// Run a command in a machine, and return its exit code
    Exec(LabExecArgs),
    /// Copy a file into a machine
    Put(LabPutArgs),
    /// Copy a file out of a machine
    Get(LabGetArgs),
    /// Show the console output of a machine
    Console(LabConsoleArgs),
    /// Run a monitor command (QMP) in a machine's QEMU, and print the answer
    Monitor(LabMonitorArgs),
    /// Show which labs are up
    Status,
    /// Run a scenario and record it; without a name, list them
    Run(LabRunArgs),
    /// Record a corpus: recordings with planted causes of slowness, and healthy ones
    Corpus(LabCorpusArgs),
    /// Stop the lab's machines and clean up
    Down,
    /// Download all packages now, to start labs without a network later
    Fetch(LabShapeArgs),
    /// Remove what is kept between runs: packages, images, snapshots
    Clean,
}

/// An architecture on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArchArg {
    /// 64-bit x86
    #[value(name = "x86_64")]
    X86_64,
    /// 64-bit Arm
    Aarch64,
}

impl From<ArchArg> for lab::Arch {
    fn from(arch: ArchArg) -> Self {
        match arch {
            ArchArg::X86_64 => Self::X86_64,
            ArchArg::Aarch64 => Self::Aarch64,
        }
    }
}

/// An accelerator on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AcceleratorArg {
    /// The processor's virtualization
    Kvm,
    /// QEMU's emulator
    Tcg,
}

/// A network device on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetArg {
    /// Packets go through QEMU
    Virtio,
    /// Packets go through the kernel's vhost-net
    Vhost,
}

impl From<NetArg> for lab::Net {
    fn from(net: NetArg) -> Self {
        match net {
            NetArg::Virtio => Self::Virtio,
            NetArg::Vhost => Self::Vhost,
        }
    }
}

/// Which machines a lab has.
#[derive(Debug, Args)]
pub(crate) struct LabShapeArgs {
    /// Number of nested machines
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=3))]
    pub(crate) levels: u8,
    /// The machines' architecture [default: this system's]
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<ArchArg>,
    /// Kernel to boot instead of Debian's
    #[arg(long, value_name = "FILE", requires = "modules")]
    pub(crate) kernel: Option<PathBuf>,
    /// Module folder of --kernel (/lib/modules/RELEASE)
    #[arg(long, value_name = "DIR", requires = "kernel")]
    pub(crate) modules: Option<PathBuf>,
    /// Kernel for the guests, if it differs
    #[arg(long, value_name = "FILE", requires = "guest_modules")]
    pub(crate) guest_kernel: Option<PathBuf>,
    /// Module folder of --guest-kernel
    #[arg(long, value_name = "DIR", requires = "guest_kernel")]
    pub(crate) guest_modules: Option<PathBuf>,
    /// Take programs from this file tree (/ is this system) instead of Debian packages. The QEMU
    /// that runs level 1 also comes from there if it works here, otherwise from this system
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
}

/// Arguments of `lab up`.
#[derive(Debug, Args)]
pub(crate) struct LabUpArgs {
    #[command(flatten)]
    pub(crate) shape: LabShapeArgs,
    /// Processors of level 1
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) cpus: u32,
    /// Memory of level 1, in MiB [default: 2048, with three levels 4096]
    #[arg(long, value_name = "MIB")]
    pub(crate) memory: Option<u32>,
    /// Processors of the guests
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) guest_cpus: u32,
    /// Memory that the guests share with level 1 for recording, in MiB
    #[arg(long, value_name = "MIB")]
    pub(crate) guest_shm: Option<u32>,
    /// Text to append to the kernel command line of level 1
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) append: Option<String>,
    /// Add or remove features of level 1's emulated processor, by QEMU's names, separated by
    /// commas: vgif, -npt
    #[arg(long, value_name = "NAMES", allow_hyphen_values = true)]
    pub(crate) processor: Option<String>,
    /// Text to append to the kernel command lines of the guests
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) guest_append: Option<String>,
    /// Additional options for the guests' QEMU, separated by spaces: "-global
    /// virtio-mmio.ioeventfd=off"
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) guest_qemu: Option<String>,
    /// Give the guests a network device, on a tap of the machine below, whose address there is
    /// 10.77.LEVEL.1
    #[arg(long, value_name = "WHAT")]
    pub(crate) guest_net: Option<NetArg>,
    /// Give the guests an empty disk of this size, in MiB
    #[arg(long, value_name = "MIB")]
    pub(crate) guest_disk: Option<u32>,
    /// Mount this folder of this system on /share in level 1
    #[arg(long, value_name = "DIR")]
    pub(crate) share: Option<PathBuf>,
    /// Accelerator of level 1 [default: kvm if a kernel boots in it, otherwise tcg]
    #[arg(long, value_name = "WHAT")]
    pub(crate) accel: Option<AcceleratorArg>,
    /// Let each instruction take this much of level 1's time, in ns (1, 2, 4, ... 1024). Its clock
    /// then counts instructions, whatever the real speed, and its processors run in turn
    #[arg(long, value_name = "NS")]
    pub(crate) instruction_ns: Option<u32>,
    /// Boot, and save no snapshot
    #[arg(long)]
    pub(crate) no_snapshot: bool,
    /// Download nothing; fail if something is missing
    #[arg(long)]
    pub(crate) offline: bool,
}

/// Arguments of `lab exec`.
#[derive(Debug, Args)]
pub(crate) struct LabExecArgs {
    /// The machine: 1 is the host inside the lab
    #[arg(value_name = "LEVEL")]
    pub(crate) level: u8,
    /// Pass standard input to the command
    #[arg(short = 'i', long)]
    pub(crate) stdin: bool,
    /// End the command after this time, with code 124
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) timeout: Option<Duration>,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

/// Arguments of `lab put`.
#[derive(Debug, Args)]
pub(crate) struct LabPutArgs {
    /// The machine
    #[arg(value_name = "LEVEL")]
    pub(crate) level: u8,
    /// The file on this system
    #[arg(value_name = "FILE")]
    pub(crate) from: PathBuf,
    /// Its path in the machine
    #[arg(value_name = "PATH")]
    pub(crate) to: String,
}

/// Arguments of `lab get`.
#[derive(Debug, Args)]
pub(crate) struct LabGetArgs {
    /// The machine
    #[arg(value_name = "LEVEL")]
    pub(crate) level: u8,
    /// The file in the machine
    #[arg(value_name = "PATH")]
    pub(crate) from: String,
    /// The file to write on this system; - is standard output
    #[arg(value_name = "FILE")]
    pub(crate) to: PathBuf,
}

/// Arguments of `lab monitor`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope lab monitor 2 query-status\n  \
    hyperscope lab monitor 1 device_del '{\"id\":\"pages0\"}'")]
pub(crate) struct LabMonitorArgs {
    /// The machine
    #[arg(value_name = "LEVEL")]
    pub(crate) level: u8,
    /// The command
    #[arg(value_name = "COMMAND")]
    pub(crate) command: String,
    /// Arguments of the command, as JSON
    #[arg(value_name = "ARGUMENTS", default_value = "{}", value_parser = json)]
    pub(crate) arguments: serde_json::Value,
}

fn json(text: &str) -> Result<serde_json::Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Arguments of `lab console`.
#[derive(Debug, Args)]
pub(crate) struct LabConsoleArgs {
    /// The machine
    #[arg(value_name = "LEVEL")]
    pub(crate) level: u8,
    /// Follow new output until interrupted
    #[arg(short, long)]
    pub(crate) follow: bool,
}

/// Arguments of `lab run`.
#[derive(Debug, Args)]
pub(crate) struct LabRunArgs {
    /// Name of a scenario, or a file that contains one
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Option<String>,
    /// List the scenarios; the same as no name
    #[arg(long, conflicts_with = "scenario")]
    pub(crate) list: bool,
    /// Folder for the recordings [default: SCENARIO.hscope]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Also sample what level 1 runs, HZ times per second, as record --sample does; the scenario's
    /// probes are then omitted
    #[arg(long = "sample", value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) sample_hz: Option<u32>,
    /// The machines' architecture [default: this system's]
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<ArchArg>,
    /// If the lab is not up, boot it and save no snapshot
    #[arg(long)]
    pub(crate) no_snapshot: bool,
    /// Download nothing; fail if something is missing
    #[arg(long)]
    pub(crate) offline: bool,
}
