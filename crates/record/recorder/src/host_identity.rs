//! Identifies the host of a session: a name that is unique in a fleet, and the type of the machine.

use std::fs::File;
use std::io::Read;

use rustix::system::uname;
use session_json::HostIdentity;
use sha2::{Digest, Sha256};

/// Salt of the hashed machine id: hashes of other programs differ.
const PURPOSE: &str = "hyperscope host id/1:";

/// Max bytes to read of a file: the first CPU comes first.
const MAX_BYTES: u64 = 64 << 10;

pub(crate) fn here() -> HostIdentity {
    let about = uname();
    let [name, kernel_release, arch] = [about.nodename(), about.release(), about.machine()]
        .map(|text| text.to_string_lossy().into_owned());
    let cpus = read("/proc/cpuinfo").unwrap_or_default();
    HostIdentity {
        id: read("/etc/machine-id").and_then(|text| host_id(&text)),
        name,
        kernel_release,
        arch,
        cpu_model: cpu_model(&cpus),
        microcode: value(&cpus, "microcode"),
    }
}

fn read(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Hashes a machine id: 32 hexadecimal digits, see machine-id(5).
fn host_id(text: &str) -> Option<String> {
    let id = text.trim();
    let is_one = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hash = Sha256::new().chain_update(PURPOSE).chain_update(id.to_ascii_lowercase()).finalize();
    is_one.then(|| hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}

/// The model of a CPU: x86 kernels have a name, Arm kernels the numbers of implementer and part.
fn cpu_model(cpus: &str) -> Option<String> {
    let numbers = || {
        let (maker, part) = (value(cpus, "CPU implementer")?, value(cpus, "CPU part")?);
        Some(format!("implementer {maker}, part {part}"))
    };
    value(cpus, "model name").or_else(numbers)
}

/// The first value of a key in /proc/cpuinfo.
fn value(cpus: &str, key: &str) -> Option<String> {
    let pairs = cpus.lines().filter_map(|line| line.split_once(':'));
    let mut values = pairs.filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim());
    values.next().filter(|value| !value.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_name_which_is_not_its_machine_id() {
        let id = "0123456789abcdef0123456789abcdef";
        let named = host_id(&format!("{id}\n")).unwrap();
        assert_eq!((named.len(), Some(&named)), (32, host_id(id).as_ref()));
        assert!(named != id && host_id("0123").is_none() && host_id("uninitialized").is_none());
        assert_ne!(host_id("1123456789abcdef0123456789abcdef"), Some(named));
    }

    #[test]
    fn cpus_say_what_they_are() {
        let x86 =
            "processor\t: 0\nmodel name\t: A CPU @ 2 GHz\nmicrocode\t: 0x71\n\nprocessor\t: 1\n";
        assert_eq!(cpu_model(x86).as_deref(), Some("A CPU @ 2 GHz"));
        assert_eq!(value(x86, "microcode").as_deref(), Some("0x71"));
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd07\n";
        assert_eq!(cpu_model(arm).as_deref(), Some("implementer 0x41, part 0xd07"));
        assert_eq!(cpu_model("processor: 0\n"), None);
    }
}
