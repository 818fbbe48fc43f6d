//! A virtual machine as data, and its QEMU command line. The same description is used for the lab's first machine,
//! started here, and for the guests started inside it.

use serde::{Deserialize, Serialize};

use crate::arch::Arch;

/// The machine's accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accelerator {
    /// KVM on the processor.
    Kvm,
    /// QEMU's emulator.
    Tcg,
}

/// The machine's board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Board {
    /// An x86 PC with PCI.
    Pc,
    /// x86 with only virtio-mmio: boots fastest.
    Microvm,
    /// Arm's board for virtual machines, with PCI.
    Virt,
}

/// A network device, on a tap of the machine below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Net {
    /// Packets go through QEMU.
    Virtio,
    /// Packets go through the kernel's vhost-net.
    Vhost,
}

/// The machine's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Private memory of its process.
    Own,
    /// Memory of its process that the server of a shared folder can access.
    Shared,
    /// A file, which the machine modifies.
    File(String),
    /// A copy-on-write mapping of a file.
    CopyOf(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    /// The file of its content, on the machine below.
    pub(crate) path: String,
    pub(crate) mib: u32,
}

/// Memory that a machine shares with the one below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedMemory {
    /// Its file, on the machine below.
    pub(crate) path: String,
    pub(crate) mib: u32,
}

/// PCI slot of a guest's shared memory.
const SHARED_MEMORY_SLOT: u8 = 0x10;

/// The file of a guest's shared memory inside the guest, which shares it with its own guest.
pub(crate) fn shared_memory_resource() -> String {
    format!("/sys/bus/pci/devices/0000:00:{SHARED_MEMORY_SLOT:02x}.0/resource2")
}

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LabMachine {
    /// Its level in the lab: level 1 is started on this system.
    pub(crate) level: u8,
    pub(crate) arch: Arch,
    pub(crate) accelerator: Accelerator,
    pub(crate) board: Board,
    pub(crate) cpus: u32,
    pub(crate) memory_mib: u32,
    pub(crate) memory: Memory,
    /// The command that starts QEMU: a program, possibly with a loader before it.
    pub(crate) qemu: Vec<String>,
    /// QEMU's firmware folders.
    pub(crate) data_folders: Vec<String>,
    pub(crate) kernel: String,
    pub(crate) initrd: String,
    /// Extra kernel command line arguments.
    pub(crate) append: String,
    /// Extra QEMU options.
    pub(crate) options: Vec<String>,
    /// The folder of sockets and logs.
    pub(crate) run: String,
    /// Its vsock CID on the machine below.
    pub(crate) vsock_cid: Option<u32>,
    pub(crate) net: Option<Net>,
    /// A disk image on the machine below.
    pub(crate) disk: Option<Disk>,
    pub(crate) shared_memory: Option<SharedMemory>,
    /// Whether it can mount a folder of the machine below, by virtiofs with the tag `share`.
    pub(crate) share: bool,
    /// Wait for the state of a snapshot instead of booting.
    pub(crate) incoming: bool,
    /// Virtual time per instruction, a power of two. The CPUs then take turns, and the clock follows the executed
    /// instructions.
    pub(crate) instruction_ns: Option<u32>,
    /// Extra CPU features for emulation, or removed ones (`-npt`), by QEMU's names, separated by commas.
    pub(crate) features: String,
}

/// The socket of control port `at` of the machine with its sockets in `run`.
pub(crate) fn control_socket(run: &str, at: usize) -> String {
    format!("{run}/control-{at}.sock")
}

/// The socket of the machine's monitor.
pub(crate) fn monitor_socket(run: &str) -> String {
    format!("{run}/qmp.sock")
}

/// The socket of the server of a shared folder.
pub(crate) fn share_socket(run: &str) -> String {
    format!("{run}/share.sock")
}

/// The log of the machine's serial console.
pub(crate) fn console_log(run: &str) -> String {
    format!("{run}/console.log")
}

/// A guest's vsock CID on the machine below: 2 is that machine's own.
pub(crate) fn vsock_cid(level: u8) -> u32 {
    u32::from(level) + 1
}

/// The tap of a guest, on the machine below it.
pub(crate) const TAP: &str = "tap0";

impl LabMachine {
    /// The QEMU command line.
    pub(crate) fn command(&self) -> Vec<String> {
        let mut words = self.qemu.clone();
        words.extend(self.base());
        words.extend(self.processor());
        words.extend(self.ram());
        words.extend(self.boot());
        words.extend(self.channels());
        words.extend(self.devices());
        words.extend(self.options.iter().cloned());
        if self.incoming {
            words.extend(strings(["-incoming", "defer"]));
        }
        words
    }

    fn base(&self) -> Vec<String> {
        let mut words =
            strings(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
        // Names the threads, so that recordings identify vCPUs.
        words.extend(["-name".into(), format!("l{},debug-threads=on", self.level)]);
        for folder in &self.data_folders {
            words.extend(["-L".into(), folder.clone()]);
        }
        words
    }

    fn processor(&self) -> Vec<String> {
        let model = match (self.accelerator, self.arch) {
            (Accelerator::Kvm, _) => "host",
            (Accelerator::Tcg, Arch::X86_64) => "qemu64,+svm,+npt",
            // A processor with EL2 in VHE mode, as servers have.
            (Accelerator::Tcg, Arch::Aarch64) => "cortex-a76",
        };
        let accelerator = match (self.accelerator, self.instruction_ns) {
            (Accelerator::Kvm, _) => "kvm",
            (Accelerator::Tcg, None) => "tcg,thread=multi",
            (Accelerator::Tcg, Some(_)) => "tcg,thread=single",
        };
        let cpus = self.cpus.to_string();
        let features = self.features.split(',').filter(|name| !name.is_empty());
        let feature = |name: &str| match name.strip_prefix('-') {
            Some(name) => format!(",-{name}"),
            None => format!(",+{name}"),
        };
        let model = features.fold(model.to_owned(), |model, name| model + &feature(name));
        let mut words = strings(["-accel", accelerator, "-cpu", &model, "-smp", &cpus]);
        if self.board == Board::Pc && self.accelerator == Accelerator::Kvm {
            // With vapic, QEMU writes back the task register as KVM shows it, with type "busy". If QEMU's emulator runs
            // this guest's host, it then refuses the guest's programs all I/O ports (helper_check_io expects type
            // "available"), and they die of SIGSEGV.
            words.extend(strings(["-global", "apic-common.vapic=off"]));
        }
        if let Some(ns) = self.instruction_ns {
            // While no instruction is executed, time follows the real clock: otherwise it would run ahead of programs
            // outside of the machine.
            words.extend(strings(["-icount", &format!("shift={},sleep=on", ns.ilog2())]));
        }
        words
    }

    fn ram(&self) -> Vec<String> {
        let size = self.memory_mib;
        let backend = match &self.memory {
            Memory::Own => format!("memory-backend-ram,id=ram,size={size}M"),
            Memory::Shared => format!("memory-backend-memfd,id=ram,size={size}M,share=on"),
            Memory::File(path) => {
                format!(
                    "memory-backend-file,id=ram,size={size}M,mem-path={},share=on",
                    escape(path)
                )
            }
            Memory::CopyOf(path) => {
                format!(
                    "memory-backend-file,id=ram,size={size}M,mem-path={},share=off",
                    escape(path)
                )
            }
        };
        let mut board = match self.board {
            Board::Pc => "pc".to_owned(),
            Board::Microvm => "microvm,rtc=off".to_owned(),
            Board::Virt => "virt,gic-version=3".to_owned(),
        };
        if self.board == Board::Virt && self.accelerator == Accelerator::Tcg {
            board.push_str(",virtualization=on");
        }
        board.push_str(",memory-backend=ram");
        vec!["-m".into(), format!("{size}M"), "-object".into(), backend, "-machine".into(), board]
    }

    fn boot(&self) -> Vec<String> {
        // Without "quiet", console output causes thousands of port I/O exits.
        let mut line = format!("console={} quiet panic=-1", self.arch.console());
        if self.arch == Arch::X86_64 {
            line.push_str(" reboot=t");
        }
        if self.arch == Arch::X86_64 && self.accelerator == Accelerator::Tcg {
            // The emulator's TSC is the same on all CPUs and never stops, but CPUID does not say so. Without this
            // option the kernel reads a device for the time, and its guests' clocks suffer.
            line.push_str(" tsc=reliable");
            // The timer check waits for a number of ticks in a loop of fixed length, and panics if the emulator gets no
            // CPU time meanwhile: "IO-APIC + timer doesn't work".
            line.push_str(" no_timer_check");
        }
        if self.board == Board::Microvm {
            // The board has no CMOS clock (rtc=off), but the kernel waits for one for half of its boot.
            line.push_str(" initcall_blacklist=cmos_init");
        }
        if !self.append.is_empty() {
            line.push(' ');
            line.push_str(&self.append);
        }
        strings(["-kernel", &self.kernel, "-initrd", &self.initrd, "-append", &line])
    }

    fn channels(&self) -> Vec<String> {
        let console = format!(
            "socket,id=console,path={}/console.sock,server=on,wait=off,logfile={},logappend=on",
            escape(&self.run),
            escape(&console_log(&self.run))
        );
        let monitor = format!(
            "socket,id=monitor,path={},server=on,wait=off",
            escape(&monitor_socket(&self.run))
        );
        let mut words = strings(["-chardev", &console, "-serial", "chardev:console"]);
        words.extend(strings(["-chardev", &monitor, "-mon", "chardev=monitor,mode=control"]));
        words.extend([
            "-device".into(),
            format!("{},id=ports,max_ports=31", self.virtio("virtio-serial")),
        ]);
        for at in 0..labguest::wire::PORTS {
            let socket = escape(&control_socket(&self.run, at));
            let backend = format!("socket,id=control{at},path={socket},server=on,wait=off");
            let name = format!("{}{at}", labguest::wire::PORT_PREFIX);
            let port =
                format!("virtserialport,bus=ports.0,nr={},chardev=control{at},name={name}", at + 1);
            words.extend(["-chardev".into(), backend, "-device".into(), port]);
        }
        words.extend(self.recording_ports());
        words
    }

    /// A guest's ports for its agent: one for control, one per CPU.
    fn recording_ports(&self) -> Vec<String> {
        if self.level == 1 {
            return Vec::new();
        }
        let names = std::iter::once("control".to_owned())
            .chain((0..self.cpus).map(|cpu| format!("cpu{cpu}")));
        let port = |(name, at): (String, usize)| {
            let name = format!("hyperscope.{name}");
            let socket = format!("{}/{name}", escape(&self.run));
            let backend = format!("socket,id={name},path={socket},server=on,wait=off");
            let port = format!(
                "virtserialport,id={name}.port,bus=ports.0,nr={at},chardev={name},name={name}"
            );
            ["-chardev".to_owned(), backend, "-device".to_owned(), port]
        };
        names.zip(labguest::wire::PORTS + 1..).flat_map(port).collect()
    }

    fn devices(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(cid) = self.vsock_cid {
            words.extend([
                "-device".into(),
                format!("{},guest-cid={cid}", self.virtio("vhost-vsock")),
            ]);
        }
        if let Some(net) = self.net {
            let vhost = if net == Net::Vhost { "on" } else { "off" };
            let tap = format!("tap,id=net,ifname={TAP},script=no,downscript=no,vhost={vhost}");
            // Without romfile= the firmware looks for a boot ROM that does not exist.
            let rom = if self.board == Board::Microvm { "" } else { ",romfile=" };
            let device = format!("{},netdev=net{rom}", self.virtio("virtio-net"));
            words.extend(["-netdev".into(), tap, "-device".into(), device]);
        }
        if let Some(disk) = &self.disk {
            let drive = format!("file={},if=none,id=disk,format=raw", escape(&disk.path));
            words.extend(["-drive".into(), drive]);
            words.extend(["-device".into(), format!("{},drive=disk", self.virtio("virtio-blk"))]);
        }
        if let Some(SharedMemory { path, mib }) = &self.shared_memory {
            let path = escape(path);
            let memory = format!("memory-backend-file,id=shm,share=on,mem-path={path},size={mib}M");
            // QEMU can migrate a machine only with master=on.
            let device = format!("ivshmem-plain,memdev=shm,master=on,addr={SHARED_MEMORY_SLOT:#x}");
            words.extend(["-object".into(), memory, "-device".into(), device]);
        }
        if self.share {
            let socket = format!("socket,id=share,path={}", escape(&share_socket(&self.run)));
            let device = format!("{},chardev=share,tag=share", self.virtio("vhost-user-fs"));
            words.extend(["-chardev".into(), socket, "-device".into(), device]);
        }
        words
    }

    /// A virtio device in the variant for the board's bus.
    fn virtio(&self, name: &str) -> String {
        let bus = if self.board == Board::Microvm { "device" } else { "pci" };
        format!("{name}-{bus}")
    }
}

fn strings<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).into()
}

/// A comma separates QEMU's options; two commas escape one.
fn escape(value: &str) -> String {
    value.replace(',', ",,")
}
