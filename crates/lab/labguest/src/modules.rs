//! Loads kernel modules from the initramfs.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;

use labguest::wire::GuestConfig;
use rustix::io::Errno;
use rustix::system::finit_module;

/// Loads the machine's modules in order; reports failures on the console.
pub(crate) fn load(config: &GuestConfig) {
    config.modules.iter().for_each(load_or_report);
    if config.hosts {
        load_for_hosts(config);
    }
}

/// Prepares this machine for hosting a guest, even if it has none.
pub(crate) fn host() -> io::Result<()> {
    load_for_hosts(&serde_json::from_slice(&fs::read(labguest::wire::CONFIG_PATH)?)?);
    Ok(())
}

fn load_for_hosts(config: &GuestConfig) {
    config.for_hosts.iter().for_each(load_or_report);
    // One of these is for another processor, and fails.
    let loads = |path: &String| load_one(path).is_ok();
    if !config.one_of.is_empty() && !config.one_of.iter().any(loads) {
        println!(
            "hyperscope-lab: none of {} loads: KVM is not available",
            config.one_of.join(", ")
        );
    }
}

fn load_or_report(path: &String) {
    if let Err(error) = load_one(path) {
        println!("hyperscope-lab: cannot load {path}: {error}");
    }
}

fn load_one(path: &str) -> io::Result<()> {
    let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let file = File::open(path)?;
    match finit_module(&file, &parameters(path, &line), 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A module's parameters on the kernel command line: `MODULE.NAME=VALUE`, in modprobe's syntax.
fn parameters(path: &str, line: &str) -> CString {
    let file = path.rsplit('/').next().unwrap_or_default();
    let module = file.trim_end_matches(".ko").replace('-', "_");
    let parameter = |word: &str| Some(word.strip_prefix(&module)?.strip_prefix('.')?.to_owned());
    let words: Vec<String> = line.split_whitespace().filter_map(parameter).collect();
    CString::new(words.join(" ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_gets_what_the_command_line_says_for_it() {
        let line = "quiet kvm.tdp_mmu=0 kvm_amd.npt=0 kvm_amd.avic=1 panic=-1\n";
        assert_eq!(parameters("/lab/modules/kvm-amd.ko", line).as_c_str(), c"npt=0 avic=1");
        assert_eq!(parameters("/lab/modules/kvm.ko", line).as_c_str(), c"tdp_mmu=0");
        assert_eq!(parameters("/lab/modules/tun.ko", line).as_c_str(), c"");
    }
}
