//! Finds the VM that receives spans, and checks that only this VM maps the memory.

use std::path::PathBuf;

use channel::HostAddress;
use vms::{Vm, is_mapped_by as maps};

use crate::error::{PublishError, Result};

/// A VM to publish to, and its memory.
#[derive(Clone, Debug)]
pub(crate) struct Permitted {
    pub(crate) vm: Vm,
    pub(crate) memory: PathBuf,
}

/// Resolves `NAME`, `shm:FILE` or `NAME=shm:FILE` among the running VMs.
///
/// # Errors
/// When there is no such VM, or another VM maps the memory, too.
pub(crate) fn find(spec: &str, vms: &[Vm]) -> Result<Permitted> {
    let permitted = named(spec, vms)?;
    let Permitted { vm, memory } = &permitted;
    let (name, path) = (vm.name.clone(), memory.clone());
    if !maps(vm.pid, memory) {
        return Err(PublishError::NotItsMemory { vm: name, path });
    }
    let other = vms.iter().find(|other| other.pid != vm.pid && maps(other.pid, memory));
    match other.map(|other| other.name.clone()) {
        Some(other) => Err(PublishError::SharedWithOthers { vm: name, other, path }),
        None => Ok(permitted),
    }
}

fn named(spec: &str, vms: &[Vm]) -> Result<Permitted> {
    if let Some(vm) = called(spec, vms)? {
        let memory = vm.channels.iter().find_map(|channel| channel.strip_prefix("shm:"));
        let memory = memory.ok_or_else(|| PublishError::NoMemory(vm.name.clone()))?.into();
        return Ok(Permitted { vm, memory });
    }
    let (name, channel) = match spec.split_once('=') {
        Some((name, channel)) if !name.contains(':') => (Some(name), channel),
        _ => (None, spec),
    };
    let no_vm = || PublishError::NoVm(name.unwrap_or(spec).to_owned());
    let Ok(HostAddress::SharedMemory { path: memory }) = channel.parse::<HostAddress>() else {
        if name.is_none() && !channel.contains(':') {
            return Err(no_vm());
        }
        let text = format!("{channel:?} is not a guest's shared memory: write shm:FILE");
        return Err(PublishError::Usage(text));
    };
    let vm = match name {
        Some(name) => called(name, vms)?,
        None => vms.iter().find(|vm| maps(vm.pid, &memory)).cloned(),
    };
    Ok(Permitted { vm: vm.ok_or_else(no_vm)?, memory })
}

/// The VM with this name or process id.
fn called(name: &str, vms: &[Vm]) -> Result<Option<Vm>> {
    let found = vms::called(vms, name);
    Ok(found.map_err(|error| PublishError::Usage(error.to_string()))?.cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn vm(name: &str, pid: u32, memory: Option<&Path>) -> Vm {
        let channels = memory.map(|path| format!("shm:{}", path.display()));
        Vm {
            name: name.into(),
            pid,
            program: "qemu".into(),
            vcpus: Vec::new(),
            threads: Vec::new(),
            vsock_cid: None,
            channels: channels.into_iter().collect(),
        }
    }

    #[test]
    fn memory_is_published_to_the_vm_that_maps_it_and_to_no_other() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let path = file.path();
        let spec_for = |name: &str| format!("{name}=shm:{}", path.display());
        let own_pid = std::process::id();
        let vms = [vm("web", own_pid, Some(path)), vm("db", 1, None)];
        let not_its = find("web", &vms);
        assert!(matches!(not_its, Err(PublishError::NotItsMemory { .. })), "{not_its:?}");
        let map = shmring::SharedMap::open(path, shmring::Access::ReadWrite).unwrap();
        if !maps(own_pid, path) {
            testkit::skip!("this user may not look at map_files");
            return;
        }
        for spec in ["web".to_owned(), spec_for("web"), format!("shm:{}", path.display())] {
            let found = find(&spec, &vms).unwrap();
            assert_eq!((found.vm.name.as_str(), found.memory.as_path()), ("web", path));
        }
        assert!(matches!(find(&spec_for("db"), &vms), Err(PublishError::NotItsMemory { .. })));
        assert!(matches!(find("db", &vms), Err(PublishError::NoMemory(_))));
        for wrong in ["cache", "cache=shm:/x"] {
            assert!(matches!(find(wrong, &vms), Err(PublishError::NoVm(_))), "{wrong}");
        }
        assert!(matches!(find("web=vsock:3", &vms), Err(PublishError::Usage(_))));
        drop(map);
        assert!(!maps(own_pid, path));
    }

    #[test]
    fn memory_of_two_vms_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let _map = shmring::SharedMap::open(file.path(), shmring::Access::ReadWrite).unwrap();
        let own_pid = std::process::id();
        if !maps(own_pid, file.path()) {
            testkit::skip!("this user may not look at map_files");
            return;
        }
        // /proc/thread-self gives the process another id: that of a thread.
        let thread = fs::read_link("/proc/thread-self").unwrap();
        let tid: u32 = thread.file_name().unwrap().to_str().unwrap().parse().unwrap();
        if tid != own_pid {
            let vms = [vm("web", own_pid, Some(file.path())), vm("spy", tid, None)];
            let refused = find("web", &vms);
            let is_shared = matches!(&refused, Err(PublishError::SharedWithOthers { other, .. })
                if other == "spy");
            assert!(is_shared, "{refused:?}");
        }
    }
}
