//! Brings a lab up: fetches what is missing, makes images, boots machines or loads a snapshot.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::accelerator::{self, Trials};
use crate::arch::Arch;
use crate::cache::{self, Cache};
use crate::description::Description;
use crate::error::{LabError, Result};
use crate::image::{GUEST_INITRD, GUEST_KERNEL, Image, Ingredients};
use crate::lab::{Lab, guest_run};
use crate::labguest;
use crate::machine::{self, Accelerator, Board, Disk, Machine, Memory};
use crate::packages::PackageSet;
use crate::processes;
use crate::root::{Kernel, Root};
use crate::session::{Session, command};
use crate::share;

/// How a lab is brought up.
#[derive(Clone, Debug)]
pub struct Manner {
    /// Fetch nothing.
    pub offline: bool,
    /// Load a snapshot when there is one, and save one when there is none.
    pub snapshot: bool,
}

/// A step of bringing a lab up; told as it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is done.
    pub text: String,
    /// How long it took the last time, where that is known.
    pub usual: Option<Duration>,
}

/// Told of each step.
pub type Tell<'a> = &'a dyn Fn(Step);

/// How long machines may take to boot; nested ones are slow in emulation.
const BOOT: [Duration; 3] =
    [Duration::from_secs(180), Duration::from_secs(300), Duration::from_secs(900)];

/// How long short commands in a machine may take.
const SHORT: Duration = Duration::from_secs(60);

/// Everything that is needed to start machines.
struct Kit {
    host: Root,
    qemu: PathBuf,
    image: Image,
    arch: Arch,
}

impl Lab {
    /// Brings the lab up as described, and returns what it is then.
    ///
    /// # Errors
    /// When it is up already and different, something is missing, or a machine doesn't boot.
    pub fn up(&self, wanted: &Description, manner: &Manner, tell: Tell<'_>) -> Result<Description> {
        wanted.check()?;
        let _lock = self.cache().lock(self.name())?;
        if self.is_up() {
            return self.already_up(wanted);
        }
        // What a launcher that was killed left behind.
        self.end()?;
        let kit = Kit::collect(self.cache(), wanted, manner, tell)?;
        let mut description = wanted.clone();
        description.accelerator = Some(kit.accelerator(self.cache(), wanted, tell)?);
        need_memory(&description)?;
        let began = self.begin(&kit, &description, manner, tell);
        if began.is_err() {
            // The error is what matters.
            let _ = self.end();
        }
        began.map(|()| description)
    }

    fn already_up(&self, wanted: &Description) -> Result<Description> {
        let mut description = self.description()?;
        let accelerator = description.accelerator;
        description.accelerator = wanted.accelerator.and(accelerator);
        if description == *wanted {
            description.accelerator = accelerator;
            return Ok(description);
        }
        let text = "the lab is up, and is another one: `hyperscope lab down` first, or give this one a --name";
        Err(LabError::Usage(text.into()))
    }

    fn begin(
        &self,
        kit: &Kit,
        description: &Description,
        manner: &Manner,
        tell: Tell<'_>,
    ) -> Result<()> {
        fs::create_dir_all(self.run_folder())
            .map_err(LabError::io("cannot make", self.run_folder()))?;
        match &description.share {
            // What serves a shared folder has the machine's memory in its reach, and can't be saved.
            Some(folder) => {
                share::serve(self, &kit.host, folder)?;
                self.boot(kit, description, Memory::Shared, tell)?;
                share::mount(&mut self.open_session(1, SHORT)?)?;
            }
            None if manner.snapshot => self.from_snapshot(kit, description, tell)?,
            None => self.boot(kit, description, Memory::Own, tell)?,
        }
        description.write(self.run_folder())
    }

    /// Boots all machines that are to be started.
    fn boot(
        &self,
        kit: &Kit,
        description: &Description,
        memory: Memory,
        tell: Tell<'_>,
    ) -> Result<()> {
        let first = kit.first(self, description, memory, false)?;
        self.step(tell, "booting level 1", || {
            let mut child = self.start(kit, &first)?;
            self.wait_for_first(&mut child, BOOT[0]).map(drop)
        })?;
        for level in 2..=description.started {
            self.step(tell, &format!("booting level {level}"), || {
                self.start_guest(description, level).map(drop)
            })?;
        }
        Ok(())
    }

    /// Starts QEMU here. It goes on when this program ends.
    fn start(&self, kit: &Kit, machine: &Machine) -> Result<Child> {
        let words = machine.command();
        let (program, arguments) =
            words.split_first().ok_or_else(|| LabError::Usage("no QEMU".into()))?;
        let log = self.run_folder().join("qemu.log");
        let log_file = File::create(&log).map_err(LabError::io("cannot write", &log))?;
        let errors = log_file.try_clone().map_err(LabError::io("cannot write", &log))?;
        Command::new(program)
            .args(arguments)
            .env("QEMU_MODULE_DIR", kit.host.qemu_modules())
            .stdin(Stdio::null())
            .stdout(log_file)
            .stderr(errors)
            .current_dir("/")
            .process_group(0)
            .spawn()
            .map_err(LabError::io("cannot run", Path::new(program)))
    }

    /// Waits until the first machine answers.
    fn wait_for_first(&self, child: &mut Child, wait: Duration) -> Result<Session> {
        self.wait_for_sockets(child)?;
        self.open_session(1, wait)
    }

    fn wait_for_sockets(&self, child: &mut Child) -> Result<()> {
        let last = PathBuf::from(machine::control_socket(&self.run_text(), labwire::PORTS - 1));
        let deadline = Instant::now() + SHORT;
        while !last.exists() {
            let ended = child.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > deadline {
                let said =
                    fs::read_to_string(self.run_folder().join("qemu.log")).unwrap_or_default();
                return Err(LabError::Command { command: "qemu".into(), said });
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
        below.said(&exec)?;
        wait_for_guest(&mut below, &guest)?;
        if guest.net.is_some() {
            connect(&mut below, level)?;
        }
        drop(below);
        let wait = BOOT.get(usize::from(level) - 1).copied().unwrap_or(SHORT);
        self.open_session(level, wait)
    }

    /// Does a step, and keeps how long it took for the next time.
    fn step<T>(&self, tell: Tell<'_>, text: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let file = self.cache().folder("times")?.join(text.replace(' ', "-"));
        let usual = fs::read_to_string(&file).ok().and_then(|ms| ms.trim().parse().ok());
        tell(Step { text: text.to_owned(), usual: usual.map(Duration::from_millis) });
        let begun = Instant::now();
        let done = work()?;
        // Only a progress bar wants to know.
        let _ = fs::write(&file, begun.elapsed().as_millis().to_string());
        Ok(done)
    }
}

/// The state of a saved lab, less its memory.
const STATE: &str = "state";
/// Its memory.
const RAM: &str = "ram";

impl Lab {
    /// Loads the lab's snapshot; makes it first unless there is one.
    fn from_snapshot(&self, kit: &Kit, description: &Description, tell: Tell<'_>) -> Result<()> {
        let key = kit.snapshot_key(self, description)?;
        let _lock = self.cache().lock(&format!("snapshot-{key}"))?;
        let folder = self.cache().folder("snapshots")?.join(&key);
        if !folder.join(STATE).exists() {
            self.make_snapshot(kit, description, &folder, tell)?;
        }
        self.load_snapshot(kit, description, &folder, tell)
    }

    /// Boots the lab with its memory in a file, saves the rest beside it, and ends it.
    fn make_snapshot(
        &self,
        kit: &Kit,
        description: &Description,
        folder: &Path,
        tell: Tell<'_>,
    ) -> Result<()> {
        self.cache().need_room(u64::from(description.memory_mib) << 20)?;
        let unfinished = folder.with_extension("new");
        match fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(LabError::io("cannot remove", &unfinished)(error));
            }
            _ => {}
        }
        fs::create_dir_all(&unfinished).map_err(LabError::io("cannot make", &unfinished))?;
        let ram = unfinished.join(RAM).display().to_string();
        self.boot(kit, description, Memory::File(ram), tell)?;
        self.step(tell, "saving a snapshot", || {
            // Guests first: none of their processors is inside a guest when its machine is saved.
            for level in (1..=description.started).rev() {
                self.monitor(level)?.stop()?;
            }
            self.monitor(1)?.save(&unfinished.join(STATE).display().to_string())?;
            let pids = processes::of_run(self.run_folder());
            self.monitor(1)?.quit()?;
            processes::end(&pids, SHORT);
            fs::rename(&unfinished, folder).map_err(LabError::io("cannot rename", &unfinished))
        })
    }

    /// Starts the lab from a snapshot, which stays as it is.
    fn load_snapshot(
        &self,
        kit: &Kit,
        description: &Description,
        folder: &Path,
        tell: Tell<'_>,
    ) -> Result<()> {
        let ram = folder.join(RAM).display().to_string();
        let first = kit.first(self, description, Memory::CopyOf(ram), true)?;
        self.step(tell, "loading a snapshot", || {
            let mut child = self.start(kit, &first)?;
            self.wait_for_sockets(&mut child)?;
            let mut monitor = self.monitor(1)?;
            monitor.load(&folder.join(STATE).display().to_string())?;
            monitor.go_on()?;
            drop(monitor);
            for level in 2..=description.started {
                self.monitor(level)?.go_on()?;
            }
            (1..=description.started)
                .try_for_each(|level| set_clock(&mut self.open_session(level, SHORT)?))
        })
    }
}

/// Sets a machine's clock: a saved one still has the time it was saved at.
fn set_clock(session: &mut Session) -> Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    session.check(&["date", "-s", &format!("@{now}")], SHORT).map(drop)
}

/// Makes what a guest's QEMU expects on the machine below: a folder, a disk.
fn prepare(below: &mut Session, guest: &Machine) -> Result<()> {
    let mut script = format!("rm -rf {0} && mkdir -p {0}", guest.run);
    if let Some(disk) = &guest.disk {
        script.push_str(&format!("; truncate -s {}M {}", disk.mib, disk.path));
    }
    below.check(&["sh", "-c", &script], SHORT).map(drop)
}

/// Gives the tap that QEMU has made an address.
fn connect(below: &mut Session, level: u8) -> Result<()> {
    let (tap, address) = (machine::TAP, address(level, 1));
    let script = format!("ip address add {address}/24 dev {tap} && ip link set {tap} up");
    below.check(&["sh", "-c", &script], SHORT).map(drop)
}

/// The address of a guest (`end` 2) or of the machine below it (`end` 1) on the tap between them.
pub(crate) fn address(level: u8, end: u8) -> String {
    format!("10.77.{level}.{end}")
}

/// Waits until QEMU has made its sockets, or has ended.
fn wait_for_guest(below: &mut Session, guest: &Machine) -> Result<()> {
    let socket = machine::control_socket(&guest.run, labwire::PORTS - 1);
    let log = format!("{}/qemu.log", guest.run);
    let script = format!(
        "i=0; while [ ! -S {socket} ] && [ $i -lt 300 ]; do i=$((i+1)); sleep 0.1; done; \
         [ -S {socket} ] || {{ cat {log} >&2; exit 1; }}"
    );
    below.check(&["sh", "-c", &script], SHORT).map(drop)
}

/// A guest, as the machine below it starts it.
fn guest(description: &Description, level: u8) -> Machine {
    let shape = &description.guest;
    let deepest = level == description.levels;
    Machine {
        level,
        arch: description.arch,
        accelerator: Accelerator::Kvm,
        board: shape.board,
        cpus: shape.cpus,
        // One that hosts a guest itself has what that one needs, too.
        memory_mib: if deepest { shape.memory_mib.min(256) } else { shape.memory_mib },
        memory: Memory::Own,
        qemu: vec![description.arch.qemu().to_owned()],
        data_folders: vec!["/usr/share/qemu".into(), "/usr/share/seabios".into()],
        kernel: GUEST_KERNEL.into(),
        initrd: GUEST_INITRD.into(),
        run: guest_run(level),
        vsock_cid: Some(machine::vsock_cid(level)),
        net: shape.net,
        disk: shape.disk_mib.map(|mib| Disk { path: format!("/tmp/l{level}.disk"), mib }),
        share: false,
        incoming: false,
    }
}

impl Kit {
    fn collect(
        cache: &Cache,
        wanted: &Description,
        manner: &Manner,
        tell: Tell<'_>,
    ) -> Result<Self> {
        let told = |text: &str| tell(Step { text: text.to_owned(), usual: None });
        let (host, root) = roots(cache, wanted, manner, &told)?;
        let kernel = match &wanted.kernel {
            Some((image, modules)) => Kernel { image: image.clone(), modules: modules.clone() },
            None => root.kernel()?,
        };
        let labguest = labguest::find(wanted.arch)?;
        told("making images");
        let ingredients = Ingredients { arch: wanted.arch, root, kernel, labguest };
        let image = ingredients.image(cache, wanted.levels)?;
        let qemu = host.program(wanted.arch.qemu())?;
        Ok(Self { host, qemu, image, arch: wanted.arch })
    }

    /// What runs the first machine: what was asked for, else hardware where a kernel boots in it.
    fn accelerator(
        &self,
        cache: &Cache,
        wanted: &Description,
        tell: Tell<'_>,
    ) -> Result<Accelerator> {
        if let Some(accelerator) = wanted.accelerator {
            return Ok(accelerator);
        }
        if !accelerator::may_have_kvm(wanted.arch, wanted.levels) {
            return Ok(Accelerator::Tcg);
        }
        let _lock = cache.lock("accelerator")?;
        let trials = Trials::on(cache, wanted.arch, &self.qemu)?;
        if let Some(found) = trials.found() {
            return Ok(found);
        }
        let text = "trying hardware KVM".to_owned();
        tell(Step { text, usual: Some(accelerator::TRIAL) });
        let found = if self.boots_in_kvm(cache)? { Accelerator::Kvm } else { Accelerator::Tcg };
        trials.keep(found)?;
        Ok(found)
    }

    fn boots_in_kvm(&self, cache: &Cache) -> Result<bool> {
        let lab = Lab::named(cache, &format!("trial-{}", std::process::id()))?;
        let mut description = Description::new(self.arch, 1);
        description.accelerator = Some(Accelerator::Kvm);
        description.cpus = 1;
        fs::create_dir_all(lab.run_folder())
            .map_err(LabError::io("cannot make", lab.run_folder()))?;
        let machine = self.first(&lab, &description, Memory::Own, false)?;
        let up = lab.start(self, &machine).and_then(|mut child| {
            let up = lab.wait_for_first(&mut child, accelerator::TRIAL).map(drop);
            // Not left to be a zombie.
            let _ = child.kill();
            let _ = child.wait();
            up
        });
        lab.end()?;
        Ok(up.is_ok())
    }

    /// The lab's first machine.
    fn first(
        &self,
        lab: &Lab,
        description: &Description,
        memory: Memory,
        incoming: bool,
    ) -> Result<Machine> {
        let host = &self.host;
        let data = ["usr/share/qemu", "usr/share/seabios"]
            .map(|at| host.path().join(at).display().to_string());
        Ok(Machine {
            level: 1,
            arch: self.arch,
            accelerator: description.accelerator.unwrap_or(Accelerator::Tcg),
            board: if self.arch == Arch::X86_64 { Board::Pc } else { Board::Virt },
            cpus: description.cpus,
            memory_mib: description.memory_mib,
            memory,
            qemu: host.command_prefix(&self.qemu)?,
            data_folders: data.into(),
            kernel: self.image.kernel.display().to_string(),
            initrd: self.image.initrd.display().to_string(),
            run: lab.run_text(),
            vsock_cid: None,
            net: None,
            disk: None,
            share: description.share.is_some(),
            incoming,
        })
    }

    /// Changes with everything a snapshot depends on, and not with the lab's name.
    fn snapshot_key(&self, lab: &Lab, description: &Description) -> Result<String> {
        let machine = self.first(lab, description, Memory::Own, true)?;
        let words = machine.command().join("\n").replace(&lab.run_text(), "RUN");
        let guests =
            (2..=description.started).map(|level| guest(description, level).command().join("\n"));
        let guests: Vec<String> = guests.collect();
        Ok(cache::key([
            words.as_bytes(),
            guests.join("\n\n").as_bytes(),
            self.image.key.as_bytes(),
        ]))
    }
}

/// The file trees for this system's QEMU and for the machines' programs.
fn roots(
    cache: &Cache,
    wanted: &Description,
    manner: &Manner,
    told: &dyn Fn(&str),
) -> Result<(Root, Root)> {
    let arch = wanted.arch;
    if let Some(path) = &wanted.root {
        let own = Root::new(PathBuf::from("/"), Arch::native());
        return Ok((own, Root::new(path.clone(), arch)));
    }
    let mut names = vec!["busybox-static", "trace-cmd", "iperf3", arch.qemu_package()];
    if wanted.kernel.is_none() {
        names.push(arch.kernel_package());
    }
    let inside = PackageSet { architecture: arch.debian(), names };
    let inside = Root::new(inside.unpacked(cache, manner.offline, told)?, arch);
    if arch == Arch::native() {
        return Ok((inside.clone(), inside));
    }
    let native = Arch::native();
    let host = PackageSet { architecture: native.debian(), names: vec![arch.qemu_package()] };
    Ok((Root::new(host.unpacked(cache, manner.offline, told)?, native), inside))
}

/// Checks that the first machine fits in this system's memory.
fn need_memory(description: &Description) -> Result<()> {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available =
        line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    match available {
        Some(kib) if kib / 1024 < u64::from(description.memory_mib) => {
            let what = format!(
                "memory: {} MiB are available, {} MiB are needed; room",
                kib / 1024,
                description.memory_mib
            );
            Err(LabError::missing(what, "end other programs, or name a smaller --memory"))
        }
        _ => Ok(()),
    }
}

/// Gets everything a lab needs from the network.
///
/// # Errors
/// When something can't be had.
pub fn fetch(cache: &Cache, wanted: &Description, tell: Tell<'_>) -> Result<()> {
    Kit::collect(cache, wanted, &Manner { offline: false, snapshot: false }, tell).map(drop)
}
