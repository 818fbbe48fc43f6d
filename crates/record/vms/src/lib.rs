//! The running VMs: processes that hold a KVM VM, and their vCPU threads. Their command lines give their names and
//! channels; each process describes only its own VM.

#![forbid(unsafe_code)]

mod address;
mod meant;
mod memory;
mod process;

use std::fs;
use std::path::Path;

use self::process::has_vm;

pub use self::address::{GuestAddress, NoGuest, file_name};
pub use self::meant::{Ambiguous, called, reached};
pub use self::memory::{is_mapped_by, open_memory};
pub use session_json::{Vcpu, Vm, VmmThread};

/// Max threads to list per VMM; guards against a VMM with endless workers.
const MAX_THREADS: usize = 1024;

/// All VMs of this system, by process id.
#[must_use]
pub fn running() -> Vec<Vm> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut pids: Vec<u32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids.into_iter().filter(|&pid| has_vm(pid)).map(vm).collect()
}

/// The current vCPUs of a VM; `None` if it has ended.
#[must_use]
pub fn vm_of(pid: u32) -> Option<Vec<Vcpu>> {
    has_vm(pid).then(|| vcpus(pid))
}

fn vm(pid: u32) -> Vm {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<String> = line
        .split(|&byte| byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    let program = comm(&format!("/proc/{pid}/comm"));
    let name = name(&words).unwrap_or_else(|| format!("{program}-{pid}"));
    Vm {
        name,
        pid,
        program,
        vcpus: vcpus(pid),
        threads: threads(pid),
        vsock_cid: vsock_cid(&words),
        channels: channels(&words),
    }
}

fn comm(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim_end().to_owned()
}

/// The VM's name: QEMU's `-name`, Firecracker's `--id`.
fn name(words: &[String]) -> Option<String> {
    let after = |option: &str| {
        let at = words.iter().position(|word| word == option)?;
        words.get(at + 1)
    };
    if let Some(value) = after("-name") {
        let parts: Vec<&str> = value.split(',').collect();
        let named = parts.iter().find_map(|part| part.strip_prefix("guest="));
        return named.or_else(|| parts.first().copied()).map(str::to_owned);
    }
    after("--id").cloned()
}

/// Channels, preferred first: shared memory, virtio-serial ports (the folder of the socket `hyperscope.control`),
/// vsock.
fn channels(words: &[String]) -> Vec<String> {
    let parts = || words.iter().flat_map(|word| word.split(','));
    let socket = |part: &str| {
        let folder = part.strip_prefix("path=")?.strip_suffix("/hyperscope.control")?;
        Some(format!("virtio-serial:{folder}"))
    };
    let ports = parts().find_map(socket);
    shared_memory(words)
        .into_iter()
        .chain(ports)
        .chain(vsock_cid(words).map(|cid| format!("vsock:{cid}")))
        .collect()
}

/// The file behind QEMU's `ivshmem-plain,memdev=ID`: `mem-path=` of the object with that id.
fn shared_memory(words: &[String]) -> Option<String> {
    let device = words.iter().find(|word| word.starts_with("ivshmem-plain"))?;
    let id = device.split(',').find_map(|part| part.strip_prefix("memdev="))?;
    let is_its = |word: &&String| word.split(',').any(|part| part.strip_prefix("id=") == Some(id));
    let object = words.iter().find(|word| word.contains("mem-path=") && is_its(word))?;
    let path = object.split(',').find_map(|part| part.strip_prefix("mem-path="))?;
    Some(format!("shm:{path}"))
}

/// `guest-cid=N` of QEMU's vsock device, `cid=N` of cloud-hypervisor's.
fn vsock_cid(words: &[String]) -> Option<u32> {
    let parts = words.iter().flat_map(|word| word.split(','));
    let mut values = parts
        .filter_map(|part| part.strip_prefix("guest-cid=").or_else(|| part.strip_prefix("cid=")));
    values.find_map(|value| value.parse().ok())
}

/// vCPU threads, by thread name: QEMU's and crosvm's names include the vCPU's number, and so do Firecracker's (`fc_vcpu
/// 0`) and cloud-hypervisor's (`vcpu0`).
#[must_use]
pub fn vcpus(pid: u32) -> Vec<Vcpu> {
    let mut vcpus: Vec<Vcpu> = tids(pid)
        .filter_map(|tid| {
            let vcpu = vcpu_number(&thread_name(pid, tid))?;
            let of_vcpu = |file| debugfs(pid, vcpu, file);
            Some(Vcpu {
                vcpu,
                tid,
                tsc_offset: of_vcpu("tsc-offset").and_then(|text| text.parse().ok()),
                tsc_scaling_ratio: of_vcpu("tsc-scaling-ratio").and_then(|text| text.parse().ok()),
                tsc_scaling_bits: of_vcpu("tsc-scaling-ratio-frac-bits")
                    .and_then(|text| text.parse().ok()),
            })
        })
        .collect();
    vcpus.sort_by_key(|vcpu| vcpu.vcpu);
    vcpus
}

fn threads(pid: u32) -> Vec<VmmThread> {
    let named = tids(pid).map(|tid| VmmThread { tid, name: thread_name(pid, tid) });
    let others = named.filter(|thread| vcpu_number(&thread.name).is_none());
    let mut threads: Vec<VmmThread> = others.take(MAX_THREADS).collect();
    threads.sort_by_key(|thread| thread.tid);
    threads
}

fn tids(pid: u32) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn thread_name(pid: u32, tid: u32) -> String {
    comm(&format!("/proc/{pid}/task/{tid}/comm"))
}

fn vcpu_number(thread: &str) -> Option<u32> {
    if let Some(rest) = thread.strip_prefix("CPU ") {
        return rest.strip_suffix("/KVM").unwrap_or(rest).trim().parse().ok();
    }
    let rest = thread.strip_prefix("fc_vcpu").or_else(|| thread.strip_prefix("vcpu"))?;
    rest.trim_start_matches([' ', '_']).parse().ok()
}

/// A file of a vCPU in KVM's debugfs, in a folder named after the process id and a file descriptor.
fn debugfs(pid: u32, vcpu: u32, file: &str) -> Option<String> {
    let entries = fs::read_dir(Path::new("/sys/kernel/debug/kvm")).ok()?;
    let prefix = format!("{pid}-");
    let mut folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let folder = folders.find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
    })?;
    let text = fs::read_to_string(folder.join(format!("vcpu{vcpu}")).join(file)).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn names_on_command_lines() {
        assert_eq!(name(&words("qemu -name guest=web,debug-threads=on")).as_deref(), Some("web"));
        assert_eq!(name(&words("qemu -name l2,debug-threads=on")).as_deref(), Some("l2"));
        assert_eq!(name(&words("firecracker --id vm1")).as_deref(), Some("vm1"));
        assert_eq!(name(&words("qemu -name")), None);
    }

    #[test]
    fn addresses_on_command_lines() {
        let line = "qemu -device vhost-vsock-pci,guest-cid=3,id=v";
        assert_eq!(vsock_cid(&words(line)), Some(3));
        assert_eq!(vsock_cid(&words("cloud-hypervisor --vsock cid=4,socket=/s")), Some(4));
        assert_eq!(vsock_cid(&words("qemu -m 1")), None);
    }

    #[test]
    fn channels_on_command_lines() {
        let line = "qemu -chardev socket,id=c,path=/run/l2/hyperscope.control,server=on -device \
                    vhost-vsock-pci,guest-cid=3";
        assert_eq!(channels(&words(line)), ["virtio-serial:/run/l2", "vsock:3"]);
        let line = "qemu -object memory-backend-file,id=shm,share=on,mem-path=/dev/shm/l2,size=16M \
                    -device ivshmem-plain,memdev=shm";
        assert_eq!(channels(&words(line)), ["shm:/dev/shm/l2"]);
        assert!(channels(&words("qemu -m 1")).is_empty());
    }

    #[test]
    fn threads_that_run_no_vcpu() {
        let own_pid = std::process::id();
        let named = std::thread::Builder::new().name("IO iothread1".to_owned());
        let vcpu = std::thread::Builder::new().name("CPU 0/KVM".to_owned());
        let is_over = std::sync::Arc::new(std::sync::Barrier::new(3));
        let wait = || {
            let is_over = is_over.clone();
            move || is_over.wait()
        };
        let waiting = [named.spawn(wait()).unwrap(), vcpu.spawn(wait()).unwrap()];
        // A thread sets its own name after it starts.
        let has = |name: &str| threads(own_pid).iter().any(|thread| thread.name == name);
        let start = std::time::Instant::now();
        while (!has("IO iothread1") || vcpus(own_pid).is_empty()) && start.elapsed().as_secs() < 10
        {
            std::thread::yield_now();
        }
        assert!(has("IO iothread1") && !has("CPU 0/KVM"));
        assert!(threads(own_pid).iter().any(|thread| thread.tid == own_pid));
        is_over.wait();
        waiting.into_iter().for_each(|thread| assert!(thread.join().is_ok()));
    }

    #[test]
    fn vcpus_by_the_names_of_threads() {
        let threads = ["CPU 0/KVM", "CPU 12", "fc_vcpu 3", "vcpu2", "IO iothread1", "vcpus"];
        let numbers = threads.map(vcpu_number);
        assert_eq!(numbers, [Some(0), Some(12), Some(3), Some(2), None, None]);
    }
}
