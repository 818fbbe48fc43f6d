//! `--guest-kallsyms` and `--nested`: symbols of guests' kernels, from a list or a recording.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use analyses::profile::{GuestSymbols, Profile};
use anyhow::{Context, bail};
use ftrace::eventfmt::{Coverage, Kallsyms};

/// Max bytes of a list: those of kernels have about 15 MB.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// Reads `FILE` or `VM=FILE`, for the kernel of guests at a level.
pub(crate) fn guest_symbols(named: &str, level: u8) -> anyhow::Result<GuestSymbols> {
    let (vm, path) = match named.split_once('=') {
        Some((vm, path)) if !Path::new(named).exists() => (Some(vm.to_owned()), Path::new(path)),
        _ => (None, Path::new(named)),
    };
    let kallsyms = kallsyms(path)?;
    let path = path.display();
    match kallsyms.coverage() {
        Coverage::Whole => Ok(GuestSymbols { vm, level, kallsyms }),
        Coverage::Missing => bail!("{path} has no kernel symbols"),
        Coverage::Hidden => bail!(
            "symbols in {path} have no addresses: read /proc/kallsyms as root of that guest, with \
             kernel.kptr_restrict at most 1"
        ),
        Coverage::Partial => {
            bail!("{path} has only some of the kernel's symbols: copy all of /proc/kallsyms")
        }
    }
}

/// The symbols of a list or a recording.
fn kallsyms(path: &Path) -> anyhow::Result<Kallsyms> {
    // A list may be a pipe.
    if !path.is_dir() {
        let failed = || format!("cannot read {}", path.display());
        let mut text = Vec::new();
        let file = File::open(path).with_context(failed)?;
        file.take(MAX_LIST_BYTES).read_to_end(&mut text).with_context(failed)?;
        let list = Kallsyms::parse(&text);
        if list.coverage() != Coverage::Missing {
            return Ok(list);
        }
    }
    let recording =
        sources::open(path).context("neither a list of kernel symbols nor a recording")?;
    Ok(recording.kallsyms().clone())
}

/// Refuses symbols for VMs that don't exist.
pub(crate) fn each_names_a_vm(given: &[GuestSymbols], profile: &Profile) -> anyhow::Result<()> {
    let mut names: Vec<&str> = profile.vcpus.iter().map(|vcpu| vcpu.vm.as_str()).collect();
    names.dedup();
    let unknown = given.iter().filter_map(|symbols| symbols.vm.as_deref());
    match unknown.into_iter().find(|vm| !names.contains(vm)) {
        Some(vm) => bail!("no VM has the name {vm}; use one of: {}", names.join(", ")),
        None => Ok(()),
    }
}
