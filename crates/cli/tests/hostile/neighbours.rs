//! Other processes of the host can't pose as its VMs, and their files are not taken for VMs'
//! memory.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::agent::Agent;
use crate::tool::{lock_tracing, run};

/// A process with the command line of a VMM; killed when dropped.
struct Neighbour(Child);

/// Prints a line when it is ready, and waits. KVM_CREATE_VM is `_IO(0xAE, 1)`.
const NEIGHBOUR: &str = r#"
import fcntl, mmap, os, sys
what, path = sys.argv[1], sys.argv[2]
if what == "vm":
    kvm = os.open("/dev/kvm", os.O_RDWR)
    vm = fcntl.ioctl(kvm, 0xAE01, 0)
elif what == "folder":
    os.makedirs(path + "/anon_inode:kvm-vm", exist_ok=True)
    a = open(path + "/anon_inode:kvm-vm/kvm-vm", "w")
    b = open(path + "/kvm-vm", "w")
elif what == "memfd":
    a = os.memfd_create("anon_inode:kvm-vm")
    b = os.memfd_create("kvm-vm")
if len(sys.argv) > 3 and sys.argv[3].startswith("map=/"):
    f = open(sys.argv[3][4:], "r+b")
    m = mmap.mmap(f.fileno(), 1 << 20)
print("ready", flush=True)
sys.stdin.read()
"#;

impl Neighbour {
    /// Starts a process that does `what`, with these words at the end of its command line.
    fn start(what: &str, folder: &Path, words: &[&str]) -> Option<Self> {
        let mut command = Command::new("python3");
        command.args(["-c", NEIGHBOUR, what, folder.to_str().unwrap()]).args(words);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut child) = child else {
            testkit::skip!("there is no python3");
            return None;
        };
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let neighbour = Self(child);
        if line.trim() == "ready" {
            return Some(neighbour);
        }
        testkit::skip!("no VM can be made here");
        None
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The message with which `record` refuses this VM or guest.
fn refused(option: &str, value: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("s");
    let words = ["record", option, value, "-e", "sched_switch", "--for", "100ms", "-o"];
    let ran = run(&[&words[..], &[to.to_str().unwrap()]].concat());
    assert_eq!(ran.code, Some(1), "{option} {value}: {}", ran.stderr);
    assert!(!to.exists(), "{option} {value}");
    ran.stderr
}

#[test]
fn a_process_without_a_vm_is_none_whatever_its_files_are_called() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    for what in ["folder", "memfd", "nothing"] {
        let words = ["-name", "webserver", "-device", "vhost-vsock-pci,guest-cid=77"];
        let Some(_fake) = Neighbour::start(what, folder.path(), &words) else { return };
        for (option, value) in [("--vm", "webserver"), ("--guest", "webserver")] {
            let stderr = refused(option, value);
            let none =
                stderr.contains("no VM webserver runs here") || stderr.contains("is not a channel");
            assert!(none, "{what}: {stderr}");
        }
    }
}

#[test]
fn a_name_that_two_vms_claim_is_refused_and_each_is_recorded_by_its_process() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let vsock = ["-device", "vhost-vsock-pci,guest-cid=77"];
    let named = |name| ["-name", name].into_iter().chain(vsock).collect::<Vec<_>>();
    let Some(first) = Neighbour::start("vm", folder.path(), &named("twice")) else { return };
    let Some(other) = Neighbour::start("vm", folder.path(), &named("twice")) else { return };
    let Some(_third) = Neighbour::start("vm", folder.path(), &named("once")) else { return };
    for (option, value) in [("--vm", "twice"), ("--guest", "twice"), ("--hypertrace", "twice")] {
        let stderr = refused(option, value);
        assert!(
            stderr.contains(&first.pid()) && stderr.contains(&other.pid()),
            "{option}: {stderr}"
        );
    }
    // All three claim this vsock number.
    for value in ["once", "vsock:77", "g=vsock:77"] {
        let stderr = refused("--guest", value);
        assert!(stderr.contains("vsock:77") && stderr.contains(&first.pid()), "{value}: {stderr}");
    }
    let to = folder.path().join("s");
    let words = ["record", "--vm", &other.pid(), "-e", "sched_switch", "--for", "100ms", "-o"]
        .map(str::to_owned);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = run(&[&words[..], &[to.to_str().unwrap()]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let session = fs::read_to_string(to.join("session.json")).unwrap();
    assert!(session.contains(&format!("\"pid\": {}", other.pid())), "{session}");
    assert!(!session.contains(&format!("\"pid\": {}", first.pid())), "{session}");
}

#[test]
fn a_file_is_a_vms_memory_only_if_the_vm_has_mapped_all_of_it() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let memory = path.to_str().unwrap().to_owned();
    let file = File::create(&path).unwrap();
    file.set_len(3 << 30).unwrap();
    let object = format!("memory-backend-file,id=m,share=on,mem-path={memory},size=1M");
    let words = |map: &str, name: &str| {
        let words = [map, "-name", name, "-object", &object, "-device", "ivshmem-plain,memdev=m"];
        words.map(str::to_owned).to_vec()
    };
    let start = |map: &str, name: &str| {
        let words = words(map, name);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Neighbour::start("vm", folder.path(), &words)
    };
    let Some(liar) = start("map=", "liar") else { return };
    let map = format!("map={memory}");
    for option in ["--guest", "--hypertrace"] {
        let stderr = refused(option, "liar");
        assert!(stderr.contains("MiB, the limit for"), "{option}: {stderr}");
    }
    file.set_len(2 << 20).unwrap();
    for option in ["--guest", "--hypertrace"] {
        let stderr = refused(option, "liar");
        assert!(stderr.contains("not memory of the VM"), "{option}: {stderr}");
    }
    drop(liar);
    // It maps only a part: its claims about its device are false.
    let Some(part) = start(&map, "part") else { return };
    for option in ["--guest", "--hypertrace"] {
        let stderr = refused(option, "part");
        assert!(
            stderr.contains("2097152 bytes, but the VM's device has 1048576"),
            "{option}: {stderr}"
        );
    }
    assert_eq!(fs::metadata(&path).unwrap().blocks(), 0, "nothing is written to it");
    drop(part);
    // An agent on this machine represents one in the VM that maps all of it.
    file.set_len(1 << 20).unwrap();
    let Some(_whole) = start(&map, "whole") else { return };
    let _agent = Agent::start(&format!("shm:{memory}"));
    let to = folder.path().join("s");
    let words = ["record", "--guest", "whole", "-e", "sched_process_exec", "--guest-event"];
    let more = ["sched_process_exec", "--for", "200ms", "-o", to.to_str().unwrap()];
    let ran = run(&[&words[..], &more[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(to.join("guest-whole.dat").exists());
}

#[test]
fn a_name_is_shown_without_what_a_terminal_would_obey() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let words = ["-name", "\u{1b}]0;owned\u{7}"];
    let Some(_vm) = Neighbour::start("vm", folder.path(), &words) else { return };
    let stderr = refused("--vm", "nobody");
    assert!(stderr.contains("owned") && !stderr.contains('\u{1b}'), "{stderr:?}");
    std::io::stderr().flush().unwrap();
}
