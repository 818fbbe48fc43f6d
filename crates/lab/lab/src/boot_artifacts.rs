//! Everything that the lab's machines need to start: programs, kernel, images, an accelerator.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::accelerator::{self, Trials};
use crate::arch::Arch;
use crate::cache::{self, Cache};
use crate::description::Description;
use crate::error::{LabError, Result};
use crate::image::{Image, Ingredients};
use crate::lab::Lab;
use crate::machine::{Accelerator, Board, LabMachine, Memory};
use crate::machine_programs;
use crate::packages::PackageSet;
use crate::root::{Kernel, Root};
use crate::start::guest;
use crate::tool::{Tool, ToolFile};
use crate::up::{ProgressFn, Step, UpOptions};

/// Everything that machines need to start.
pub(crate) struct BootArtifacts {
    /// The file tree of this system's QEMU.
    pub(crate) host: Root,
    qemu: PathBuf,
    image: Image,
    arch: Arch,
}

impl BootArtifacts {
    /// Fetches and builds what is missing.
    pub(crate) fn collect(
        cache: &Cache,
        wanted: &Description,
        options: &UpOptions,
        report: ProgressFn<'_>,
    ) -> Result<Self> {
        let progress = |text: &str| report(Step { text: text.to_owned(), usual: None });
        // Reports a missing program before hundreds of megabytes are fetched.
        let labguest = machine_programs::find(wanted.arch)?;
        let (host, root) = roots(cache, wanted, options, &progress)?;
        let (kernel, guest_kernel) = kernels(wanted, &root)?;
        let files = |tools: &[Tool], kernel: &Kernel| -> Result<Vec<ToolFile>> {
            let mut files = Vec::new();
            for &tool in tools {
                let root_and_kernel = (&root, kernel);
                files.extend(tool_files(tool, cache, wanted, options, root_and_kernel, &progress)?);
            }
            Ok(files)
        };
        let host_tools = files(&wanted.host_tools, &kernel)?;
        let tools = files(&wanted.guest.tools, &guest_kernel)?;
        progress("making images");
        let arch = wanted.arch;
        let ingredients =
            Ingredients { arch, root, kernel, guest_kernel, labguest, host_tools, tools };
        let image = ingredients.image(cache, wanted.levels)?;
        let qemu = host.program(wanted.arch.qemu())?;
        Ok(Self { host, qemu, image, arch: wanted.arch })
    }

    /// Requested guest tools that are not available, and why; fetches the others.
    pub(crate) fn missing_tools(
        cache: &Cache,
        wanted: &Description,
        options: &UpOptions,
        report: ProgressFn<'_>,
    ) -> Result<Vec<(Tool, LabError)>> {
        let progress = |text: &str| report(Step { text: text.to_owned(), usual: None });
        let (_, root) = roots(cache, wanted, options, &progress)?;
        let (_, kernel) = kernels(wanted, &root)?;
        let why = |&tool: &Tool| {
            if let Err(error) = tool.check_built() {
                return Some((tool, error));
            }
            let root_and_kernel = (&root, &kernel);
            Some((
                tool,
                tool_files(tool, cache, wanted, options, root_and_kernel, &progress).err()?,
            ))
        };
        Ok(wanted.guest.tools.iter().filter_map(why).collect())
    }

    /// The release of the guests' kernel.
    pub(crate) fn guest_release(
        cache: &Cache,
        wanted: &Description,
        options: &UpOptions,
        report: ProgressFn<'_>,
    ) -> Result<String> {
        let progress = |text: &str| report(Step { text: text.to_owned(), usual: None });
        let (_, root) = roots(cache, wanted, options, &progress)?;
        let (_, kernel) = kernels(wanted, &root)?;
        Ok(release(&kernel))
    }

    /// The accelerator of the first machine: the requested one, or KVM if a kernel boots in it.
    pub(crate) fn accelerator(
        &self,
        cache: &Cache,
        wanted: &Description,
        report: ProgressFn<'_>,
    ) -> Result<Accelerator> {
        if let Some(accelerator) = wanted.accelerator {
            return Ok(accelerator);
        }
        let is_emulated = wanted.instruction_ns.is_some() || !wanted.processor.is_empty();
        if is_emulated || !accelerator::may_have_kvm(wanted.arch, wanted.levels) {
            return Ok(Accelerator::Tcg);
        }
        let _lock = cache.lock("accelerator")?;
        let trials = Trials::on(cache, wanted.arch, &self.qemu)?;
        if let Some(found) = trials.found() {
            return Ok(found);
        }
        let text = "trying hardware KVM".to_owned();
        report(Step { text, usual: Some(accelerator::TRIAL) });
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
            // Avoids a zombie.
            let _ = child.kill();
            let _ = child.wait();
            up
        });
        lab.end()?;
        Ok(up.is_ok())
    }

    /// The lab's first machine.
    pub(crate) fn first(
        &self,
        lab: &Lab,
        description: &Description,
        memory: Memory,
        incoming: bool,
    ) -> Result<LabMachine> {
        let host = &self.host;
        let data = ["usr/share/qemu", "usr/share/seabios"]
            .map(|at| host.path().join(at).display().to_string());
        Ok(LabMachine {
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
            append: description.append.clone(),
            options: Vec::new(),
            run: lab.run_text(),
            vsock_cid: None,
            net: None,
            disk: None,
            shared_memory: None,
            share: description.share.is_some(),
            incoming,
            instruction_ns: description.instruction_ns,
            features: description.processor.clone(),
        })
    }

    /// Depends on everything that affects a snapshot, except for the lab's name.
    pub(crate) fn snapshot_key(&self, lab: &Lab, description: &Description) -> Result<String> {
        let machine = self.first(lab, description, Memory::Own, true)?;
        let words = machine.command().join("\n").replace(&lab.run_text(), "RUN");
        let guests =
            (2..=description.started).map(|level| guest(description, level).command().join("\n"));
        let guests: Vec<String> = guests.collect();
        let kernel = &self.image.kernel;
        Ok(cache::key([
            words.as_bytes(),
            guests.join("\n\n").as_bytes(),
            self.image.key.as_bytes(),
            &fs::read(kernel).map_err(LabError::io("cannot read", kernel))?,
            &size_and_time(&self.qemu),
        ]))
    }
}

/// The kernels of the first machine and of guests.
fn kernels(wanted: &Description, root: &Root) -> Result<(Kernel, Kernel)> {
    let to_kernel = |(image, modules): &(PathBuf, PathBuf)| Kernel {
        image: image.clone(),
        modules: modules.clone(),
    };
    let kernel =
        wanted.kernel.as_ref().map_or_else(|| root.kernel(), |named| Ok(to_kernel(named)))?;
    let guests = wanted.guest_kernel.as_ref().map_or_else(|| kernel.clone(), to_kernel);
    Ok((kernel, guests))
}

/// The files of a tool, from the user's file tree if there is one.
fn tool_files(
    tool: Tool,
    cache: &Cache,
    wanted: &Description,
    options: &UpOptions,
    (machine_root, kernel): (&Root, &Kernel),
    progress: &dyn Fn(&str),
) -> Result<Vec<ToolFile>> {
    let root = if wanted.root.is_some() {
        machine_root.clone()
    } else {
        let set = PackageSet { architecture: wanted.arch.debian(), names: vec![tool.package()] };
        Root::new(set.unpacked(cache, options.offline, progress)?, wanted.arch)
    };
    tool.files(&root, wanted.arch, &release(kernel))
}

/// A kernel's release, which is the name of its folder of modules.
fn release(kernel: &Kernel) -> String {
    kernel.modules.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Changes when the program is replaced.
fn size_and_time(program: &Path) -> Vec<u8> {
    let file = fs::metadata(program);
    let time = file.as_ref().ok().and_then(|file| file.modified().ok());
    let time = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let size = file.map_or(0, |file| file.len());
    [size.to_le_bytes().as_slice(), &time.map_or(0, |time| time.as_nanos()).to_le_bytes()].concat()
}

/// The file trees of this system's QEMU and of the machines' programs.
fn roots(
    cache: &Cache,
    wanted: &Description,
    options: &UpOptions,
    progress: &dyn Fn(&str),
) -> Result<(Root, Root)> {
    let arch = wanted.arch;
    if let Some(path) = &wanted.root {
        let inside = Root::new(path.clone(), arch);
        let serves = arch == Arch::native() && inside.program(arch.qemu()).is_ok();
        let system_root = || Root::new(PathBuf::from("/"), Arch::native());
        return Ok((if serves { inside.clone() } else { system_root() }, inside));
    }
    let mut names = vec!["busybox-static", "trace-cmd", "iperf3", arch.qemu_package()];
    if wanted.kernel.is_none() {
        names.push(arch.kernel_package());
    }
    let inside = PackageSet { architecture: arch.debian(), names };
    let inside = Root::new(inside.unpacked(cache, options.offline, progress)?, arch);
    if arch == Arch::native() {
        return Ok((inside.clone(), inside));
    }
    let native = Arch::native();
    let host = PackageSet { architecture: native.debian(), names: vec![arch.qemu_package()] };
    Ok((Root::new(host.unpacked(cache, options.offline, progress)?, native), inside))
}
