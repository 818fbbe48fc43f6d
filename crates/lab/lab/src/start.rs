//! Starts machines: the first one here, guests inside the machine below them.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use labguest::wire::Ended;

use crate::boot_artifacts::BootArtifacts;
use crate::description::Description;
use crate::error::{LabError, Result};
use crate::image::{GUEST_INITRD, GUEST_KERNEL};
use crate::lab::{Lab, guest_run};
use crate::machine::{self, Accelerator, Disk, LabMachine, Memory, SharedMemory};
use crate::session::{Session, command};

/// Max time for machines to boot, by level; nested ones are slow in emulation.
pub(crate) const BOOT: [Duration; 3] =
    [Duration::from_secs(180), Duration::from_secs(300), Duration::from_secs(900)];

/// Max time for short commands in a machine.
pub(crate) const SHORT: Duration = Duration::from_secs(60);

impl Lab {
    /// Starts QEMU here. It keeps running when this program ends.
    pub(crate) fn start(&self, artifacts: &BootArtifacts, machine: &LabMachine) -> Result<Child> {
        let words = machine.command();
        let (program, arguments) =
            words.split_first().ok_or_else(|| LabError::Usage("no QEMU".into()))?;
        let log = self.run_folder().join("qemu.log");
        let log_file = File::create(&log).map_err(LabError::io("cannot write", &log))?;
        let errors = log_file.try_clone().map_err(LabError::io("cannot write", &log))?;
        Command::new(program)
            .args(arguments)
            .env("QEMU_MODULE_DIR", artifacts.host.qemu_modules())
            .stdin(Stdio::null())
            .stdout(log_file)
            .stderr(errors)
            .current_dir("/")
            .process_group(0)
            .spawn()
            .map_err(LabError::io("cannot run", Path::new(program)))
    }

    /// Waits until the first machine answers.
    pub(crate) fn wait_for_first(&self, child: &mut Child, wait: Duration) -> Result<Session> {
        self.wait_for_sockets(child)?;
        self.open_session(1, wait)
    }

    pub(crate) fn wait_for_sockets(&self, child: &mut Child) -> Result<()> {
        let last =
            PathBuf::from(machine::control_socket(&self.run_text(), labguest::wire::PORTS - 1));
        let deadline = Instant::now() + SHORT;
        while !last.exists() {
            let ended = child.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > deadline {
                let output =
                    fs::read_to_string(self.run_folder().join("qemu.log")).unwrap_or_default();
                return Err(LabError::Command { command: "qemu".into(), output });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Starts a guest inside the machine below it, and waits until it answers.
    pub(crate) fn start_guest(&self, description: &Description, level: u8) -> Result<Session> {
        let mut below = self.open_session(level - 1, SHORT)?;
        let guest = guest(description, level);
        prepare(&mut below, &guest)?;
        let words = guest.command();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut exec = command(&words, SHORT);
        exec.detach_to = Some(format!("{}/qemu.log", guest.run));
        below.output(&exec)?;
        wait_for_guest(&mut below, &guest)?;
        if guest.net.is_some() {
            connect(&mut below, level)?;
        }
        drop(below);
        let wait = BOOT.get(usize::from(level) - 1).copied().unwrap_or(SHORT);
        self.open_session(level, wait).map_err(|error| {
            if error.is_hang() || !self.has_ended(&guest) {
                return error;
            }
            let what = "failed: its QEMU ended during boot".to_owned();
            self.explain("", LabError::Hangs { level, what, console: String::new() })
        })
    }

    /// Whether no QEMU runs a guest any more. If the kernel panics or emulation fails, QEMU ends without a message.
    fn has_ended(&self, guest: &LabMachine) -> bool {
        let looked = self
            .open_session(guest.level - 1, SHORT)
            .and_then(|mut below| below.output(&command(&["pidof", guest.arch.qemu()], SHORT)));
        looked.is_ok_and(|output| output.ended == Ended::Exit(1))
    }
}

/// Makes a guest's folder and disk on the machine below.
fn prepare(below: &mut Session, guest: &LabMachine) -> Result<()> {
    let mut script = format!("rm -rf {0} && mkdir -p {0}", guest.run);
    if let Some(disk) = &guest.disk {
        script.push_str(&format!("; truncate -s {}M {}", disk.mib, disk.path));
    }
    if let Some(memory) = guest.shared_memory.as_ref().filter(|_| guest.level == 2) {
        script.push_str(&format!("; truncate -s {}M {}", memory.mib, memory.path));
    }
    if guest.shared_memory.is_some() && guest.level > 2 {
        let device = machine::shared_memory_resource().replace("resource2", "enable");
        // A driver may have enabled the device already; then the kernel lets nobody else do so.
        script.push_str(&format!("; [ $(cat {device}) != 0 ] || echo 1 > {device}"));
    }
    below.check(&["sh", "-c", &script], SHORT).map(drop)
}

/// Sets the address of the tap that QEMU makes some time after its sockets.
fn connect(below: &mut Session, level: u8) -> Result<()> {
    let (tap, address) = (machine::TAP, address(level, 1));
    let script = format!(
        "i=0; until [ -e /sys/class/net/{tap} ] || [ $i -ge 300 ]; do i=$((i+1)); sleep 0.1; done; \
         ip address add {address}/24 dev {tap} && ip link set {tap} up"
    );
    below.check(&["sh", "-c", &script], SHORT).map(drop)
}

/// The address of a guest (`end` 2) or of the machine below it (`end` 1) on the tap between them.
pub(crate) fn address(level: u8, end: u8) -> String {
    format!("10.77.{level}.{end}")
}

/// Waits until QEMU has made its sockets, or has ended.
fn wait_for_guest(below: &mut Session, guest: &LabMachine) -> Result<()> {
    let socket = machine::control_socket(&guest.run, labguest::wire::PORTS - 1);
    let log = format!("{}/qemu.log", guest.run);
    let script = format!(
        "i=0; while [ ! -S {socket} ] && [ $i -lt 300 ]; do i=$((i+1)); sleep 0.1; done; \
         [ -S {socket} ] || {{ cat {log} >&2; exit 1; }}"
    );
    below.check(&["sh", "-c", &script], SHORT).map(drop)
}

/// A guest, described for the machine below it.
pub(crate) fn guest(description: &Description, level: u8) -> LabMachine {
    let shape = &description.guest;
    let deepest = level == description.levels;
    // Tools are in its memory twice during boot.
    let most_mib = if shape.tools.is_empty() { 256 } else { 512 };
    LabMachine {
        level,
        arch: description.arch,
        accelerator: Accelerator::Kvm,
        board: description.guest_board(),
        cpus: shape.cpus,
        // A machine that hosts a guest needs memory for it, too.
        memory_mib: if deepest { shape.memory_mib.min(most_mib) } else { shape.memory_mib },
        memory: Memory::Own,
        qemu: vec![description.arch.qemu().to_owned()],
        data_folders: vec!["/usr/share/qemu".into(), "/usr/share/seabios".into()],
        kernel: GUEST_KERNEL.into(),
        initrd: GUEST_INITRD.into(),
        append: shape.append.clone(),
        options: shape.qemu.split_whitespace().map(str::to_owned).collect(),
        run: guest_run(level),
        vsock_cid: Some(machine::vsock_cid(level)),
        net: shape.net,
        disk: shape.disk_mib.map(|mib| Disk { path: format!("/tmp/l{level}.disk"), mib }),
        shared_memory: shape.shm_mib.map(|mib| SharedMemory { path: memory_path(level), mib }),
        share: false,
        incoming: false,
        instruction_ns: None,
        features: String::new(),
    }
}

/// The file of a guest's shared memory: for level 2 a file, for deeper levels the memory of the machine that they run
/// in. All levels share one memory with level 1.
pub(crate) fn memory_path(level: u8) -> String {
    if level == 2 {
        format!("{}/memory", guest_run(level))
    } else {
        machine::shared_memory_resource()
    }
}
