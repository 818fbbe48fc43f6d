//! The content of each machine's initial RAM filesystem.

use std::path::{Path, PathBuf};

use labguest::wire::GuestConfig;

use crate::arch::Arch;
use crate::cache::{self, Cache};
use crate::error::{LabError, Result};
use crate::initramfs::Initramfs;
use crate::kernel_modules::KernelModules;
use crate::root::{Kernel, Root};
use crate::tool::ToolFile;

/// Path of a guest's kernel in the machine that hosts it.
pub(crate) const GUEST_KERNEL: &str = "/lab/guest/vmlinuz";
/// Path of a guest's initial RAM filesystem in the machine that hosts it.
pub(crate) const GUEST_INITRD: &str = "/lab/guest/initrd";

/// Max images to keep.
const KEPT: usize = 12;

/// Programs of every machine, in addition to busybox.
const PROGRAMS: [&str; 2] = ["trace-cmd", "iperf3"];

/// Modules of every machine. Those of buses that a board lacks load without effect.
const MODULES: [&str; 4] = ["virtio_pci", "virtio_mmio", "virtio_console", "virtio_blk"];
/// Modules of machines that host a guest.
const HOST_MODULES: [&str; 3] = ["vhost_vsock", "tun", "vhost_net"];
/// Modules of machines that are guests of another one in the lab.
const GUEST_MODULES: [&str; 2] = ["vmw_vsock_virtio_transport", "virtio_net"];
/// Modules of the lab's first machine.
const FIRST_MODULES: [&str; 1] = ["virtiofs"];

/// Sources of images.
#[derive(Debug)]
pub(crate) struct Ingredients {
    pub(crate) arch: Arch,
    /// The file tree of programs.
    pub(crate) root: Root,
    pub(crate) kernel: Kernel,
    pub(crate) guest_kernel: Kernel,
    /// The init process and command server.
    pub(crate) labguest: PathBuf,
    /// Additional programs of the first machine.
    pub(crate) host_tools: Vec<ToolFile>,
    /// Guests' additional programs.
    pub(crate) tools: Vec<ToolFile>,
}

/// The kernel and the initial RAM filesystem of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) kernel: PathBuf,
    pub(crate) initrd: PathBuf,
    /// Changes with the image.
    pub(crate) key: String,
}

impl Ingredients {
    /// The image of the first machine of a lab with this many levels; built unless it exists.
    pub(crate) fn image(&self, cache: &Cache, levels: u8) -> Result<Image> {
        let _lock = cache.lock("images")?;
        let image = self.image_of(cache, 1, levels)?;
        cache::keep_newest(&cache.folder("images")?, "", KEPT)?;
        Ok(image)
    }

    fn image_of(&self, cache: &Cache, level: u8, levels: u8) -> Result<Image> {
        let guest =
            if level < levels { Some(self.image_of(cache, level + 1, levels)?) } else { None };
        let content = self.content(level, guest.as_ref())?;
        let key = content.key()?;
        let initrd = cache.folder("images")?.join(format!("{key}.cpio"));
        if !initrd.exists() {
            cache.need_room(256 << 20)?;
            content.write(&initrd)?;
        }
        cache::used(&initrd);
        Ok(Image { kernel: self.kernel_of(level).image.clone(), initrd, key })
    }

    fn kernel_of(&self, level: u8) -> &Kernel {
        if level == 1 { &self.kernel } else { &self.guest_kernel }
    }

    fn content(&self, level: u8, guest: Option<&Image>) -> Result<Initramfs> {
        let mut content = Initramfs::default();
        content.copy("/init", &self.labguest, true);
        add_libraries(&mut content, &self.root, &self.labguest)?;
        content.copy("/bin/busybox", &self.root.program("busybox")?, true);
        content.link("/bin/hyperscope-labguest", "/init");
        for name in PROGRAMS {
            self.add_program(&mut content, name)?;
        }
        for tool in if level == 1 { &self.host_tools } else { &self.tools } {
            content.copy(&tool.place, &tool.file, tool.libraries.is_some());
            if let Some(root) = &tool.libraries {
                add_libraries(&mut content, root, &tool.file)?;
            }
        }
        // glibc loads it by name when a thread ends.
        let unwinder = format!("/lib/{}/libgcc_s.so.1", self.arch.triplet());
        content.copy(&unwinder, &self.root.library("libgcc_s.so.1", &[])?, true);
        // iperf3 and trace-cmd look up their user.
        content.text("/etc/passwd", "root::0:0:root:/root:/bin/sh\n".into());
        content.text("/etc/group", "root:x:0:\n".into());
        content.text("/etc/hosts", "127.0.0.1 localhost\n".into());
        if let Some(guest) = guest {
            self.add_guest(&mut content, guest)?;
        }
        self.add_modules(&mut content, level, guest.is_some())?;
        Ok(content)
    }

    fn add_program(&self, content: &mut Initramfs, name: &str) -> Result<()> {
        let path = self.root.program(name)?;
        content.copy(&format!("/bin/{name}"), &path, true);
        add_libraries(content, &self.root, &path)
    }

    /// Adds QEMU and its guest's files.
    fn add_guest(&self, content: &mut Initramfs, guest: &Image) -> Result<()> {
        self.add_program(content, self.arch.qemu())?;
        for names in self.arch.firmware() {
            let (name, file) = self.root.data(names)?;
            content.copy(&format!("/usr/share/{name}"), &file, false);
        }
        content.copy(GUEST_KERNEL, &guest.kernel, false);
        content.copy(GUEST_INITRD, &guest.initrd, false);
        Ok(())
    }

    fn add_modules(&self, content: &mut Initramfs, level: u8, hosts: bool) -> Result<()> {
        let (kvm, kvm_one_of) = self.arch.kvm_modules();
        let mut names: Vec<&str> = MODULES.into();
        if level == 1 {
            names.extend(FIRST_MODULES);
        } else {
            names.extend(GUEST_MODULES);
            names.extend(self.arch.guest_modules());
        }
        let all = KernelModules::list(&self.kernel_of(level).modules)?;
        let module_files = all.in_order(&names)?;
        // Available even without a guest, if the kernel has them.
        let can_be = |name: &&str| hosts || all.in_order(&[*name]).is_ok();
        let host_names: Vec<&str> =
            HOST_MODULES.iter().chain(kvm).chain(kvm_one_of).copied().filter(can_be).collect();
        let mut for_hosts = all.in_order(&host_names)?;
        for_hosts.retain(|file| !module_files.contains(file));
        for file in module_files.iter().chain(&for_hosts) {
            content.copy(&place(file), file, false);
        }
        let is_one_of = |place: &String| {
            let name = place.rsplit('/').next().unwrap_or_default().trim_end_matches(".ko");
            kvm_one_of.contains(&name.replace('-', "_").as_str())
        };
        let places = |files: &[PathBuf]| files.iter().map(|file| place(file)).collect::<Vec<_>>();
        let (one_of, for_hosts) = places(&for_hosts).into_iter().partition(is_one_of);
        let config =
            GuestConfig { level, modules: places(&module_files), hosts, for_hosts, one_of };
        let text = serde_json::to_string_pretty(&config)
            .map_err(|error| LabError::Usage(error.to_string()))?;
        content.text(labguest::wire::CONFIG_PATH, text);
        Ok(())
    }
}

/// Path of a module's file in machines.
fn place(file: &Path) -> String {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
    format!("/lab/modules/{}", name.unwrap_or_default())
}

fn add_libraries(content: &mut Initramfs, root: &Root, program: &Path) -> Result<()> {
    for (place, file) in root.closure(program)? {
        content.copy(&place, &file, true);
    }
    Ok(())
}
