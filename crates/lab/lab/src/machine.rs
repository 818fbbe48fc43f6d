//! A virtual machine as data, and the QEMU command line that makes it. The same description serves
//! for the lab's first machine, started here, and for the guests started inside it.

use serde::{Deserialize, Serialize};

use crate::arch::Arch;

/// What executes the machine's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accelerator {
    /// The processor, by KVM.
    Kvm,
    /// QEMU's emulator.
    Tcg,
}

/// The machine's board: what devices hang on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Board {
    /// An x86 PC with PCI.
    Pc,
    /// x86 with virtio-mmio and nothing else: boots fastest.
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
    /// Its process's own.
    Own,
    /// Its process's own, and in reach of the program that serves a shared folder.
    Shared,
    /// A file, which holds what the machine writes.
    File(String),
    /// What a file holds, unchanged by what the machine writes.
    CopyOf(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    /// The file with what is on it, on the machine below.
    pub(crate) path: String,
    /// Its size.
    pub(crate) mib: u32,
}

/// Memory that a machine shares with the one below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedMemory {
    /// The file that it is, on the machine below.
    pub(crate) path: String,
    /// Its size.
    pub(crate) mib: u32,
}

/// Where a guest has its shared memory on the PCI bus.
const SHARED_MEMORY_SLOT: u8 = 0x10;

/// The file that a guest's shared memory is inside it: what that one hands on to a guest of its own.
pub(crate) fn shared_memory_resource() -> String {
    format!("/sys/bus/pci/devices/0000:00:{SHARED_MEMORY_SLOT:02x}.0/resource2")
}

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LabMachine {
    /// The lab's number of it: 1 is started on this system.
    pub(crate) level: u8,
    pub(crate) arch: Arch,
    pub(crate) accelerator: Accelerator,
    pub(crate) board: Board,
    pub(crate) cpus: u32,
    pub(crate) memory_mib: u32,
    pub(crate) memory: Memory,
    /// How QEMU is started: a program, perhaps with a loader before it.
    pub(crate) qemu: Vec<String>,
    /// Where QEMU finds firmware.
    pub(crate) data_folders: Vec<String>,
    pub(crate) kernel: String,
    pub(crate) initrd: String,
    /// What stands on the kernel's command line beyond the usual.
    pub(crate) append: String,
    /// Options of QEMU beyond the usual.
    pub(crate) options: Vec<String>,
    /// Where sockets and logs are.
    pub(crate) run: String,
    /// Its address for vsock, from the machine below.
    pub(crate) vsock_cid: Option<u32>,
    pub(crate) net: Option<Net>,
    /// A disk image on the machine below.
    pub(crate) disk: Option<Disk>,
    pub(crate) shared_memory: Option<SharedMemory>,
    /// Whether it can mount a folder of the machine below, by virtiofs under the tag `share`.
    pub(crate) share: bool,
    /// Wait for the state of a snapshot in place of booting.
    pub(crate) incoming: bool,
    /// A power of two: how much of the machine's time each instruction takes. Its processors then
    /// take turns, and its clock goes by what they execute.
    pub(crate) instruction_ns: Option<u32>,
    /// What its emulated processor has beyond the usual, or less (`-npt`), by QEMU's names, with commas between them.
    pub(crate) features: String,
}

/// The socket of control port `at` of the machine whose sockets are in `run`.
pub(crate) fn control_socket(run: &str, at: usize) -> String {
    format!("{run}/control-{at}.sock")
}

/// The socket of the machine's monitor.
pub(crate) fn monitor_socket(run: &str) -> String {
    format!("{run}/qmp.sock")
}

/// The socket of the program that serves a shared folder.
pub(crate) fn share_socket(run: &str) -> String {
    format!("{run}/share.sock")
}

/// What the machine's serial console has said.
pub(crate) fn console_log(run: &str) -> String {
    format!("{run}/console.log")
}

/// A guest's address for vsock, from the machine below: 2 is that machine's own.
pub(crate) fn vsock_cid(level: u8) -> u32 {
    u32::from(level) + 1
}

/// The tap of a guest, on the machine below it.
pub(crate) const TAP: &str = "tap0";

impl LabMachine {
    /// QEMU with all its arguments.
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
        // Threads get names, by which a recording knows the vCPUs.
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
            // One with EL2 in VHE mode, as servers have.
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
            // With it QEMU writes the task register back as KVM shows it, of the type "busy". Its own emulator, where
            // that runs this guest's host, then refuses the guest's programs all ports (helper_check_io wants the
            // type "available"): they die by SIGSEGV.
            words.extend(strings(["-global", "apic-common.vapic=off"]));
        }
        if let Some(ns) = self.instruction_ns {
            // While nothing is executed, time goes by as everywhere: else it would run away from
            // whoever works with the machine from outside.
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
        // A console that talks makes port I/O exits by the thousand: "quiet".
        let mut line = format!("console={} quiet panic=-1", self.arch.console());
        if self.arch == Arch::X86_64 {
            line.push_str(" reboot=t");
        }
        if self.arch == Arch::X86_64 && self.accelerator == Accelerator::Tcg {
            // The emulator's counter is one for all processors and never stops, but doesn't say so.
            // Without it the kernel reads a device for the time, and its guests' clocks suffer.
            line.push_str(" tsc=reliable");
            // It waits for a number of ticks in a loop of fixed length, and panics where the emulator got no
            // processor meanwhile: "IO-APIC + timer doesn't work".
            line.push_str(" no_timer_check");
        }
        if self.board == Board::Microvm {
            // It has no CMOS clock (rtc=off), and the kernel waits for one for half of its boot.
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

    /// A guest's ports for an agent that records it: one for control, one for each processor.
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
            // Without romfile= the firmware would look for a boot ROM that isn't there.
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
            // Its master may be migrated.
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

    /// A virtio device in the form that the board has a bus for.
    fn virtio(&self, name: &str) -> String {
        let bus = if self.board == Board::Microvm { "device" } else { "pci" };
        format!("{name}-{bus}")
    }
}

fn strings<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).into()
}

/// A comma ends a value in QEMU's options; two are one comma in it.
fn escape(value: &str) -> String {
    value.replace(',', ",,")
}
