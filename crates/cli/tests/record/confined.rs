//! The remaining privileges and system calls of the recorder's threads while it records.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use crate::agent::{Agent, signal};
use crate::tool::{command, lock_tracing, wait_until};

/// The kernel's information about a thread.
#[derive(Debug)]
struct Shown {
    name: String,
    effective: u64,
    bounding: u64,
    no_new_privs: String,
    filters: u32,
}

fn shown(status: &str) -> Shown {
    let line = |key: &str| {
        let found = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        found.unwrap_or_default().trim().to_owned()
    };
    let set = |key| u64::from_str_radix(&line(key), 16).unwrap();
    Shown {
        name: line("Name"),
        effective: set("CapEff") | set("CapPrm") | set("CapInh") | set("CapAmb"),
        bounding: set("CapBnd"),
        no_new_privs: line("NoNewPrivs"),
        filters: line("Seccomp_filters").parse().unwrap_or(0),
    }
}

/// Threads of a process; its first one is named `main` here.
fn threads(pid: u32) -> Vec<Shown> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of_task = |task: fs::DirEntry| {
        let mut thread = shown(&fs::read_to_string(task.path().join("status")).ok()?);
        if task.file_name().to_str() == Some(&pid.to_string()) {
            thread.name = "main".into();
        }
        Some(thread)
    };
    tasks.filter_map(of_task).collect()
}

const CHOWN: u64 = 1;
const DAC_READ_SEARCH: u64 = 1 << 2;
const NET_BIND_SERVICE: u64 = 1 << 10;
const SYS_RAWIO: u64 = 1 << 17;
const SYS_PTRACE: u64 = 1 << 19;
const SYS_ADMIN: u64 = 1 << 21;
const SYSLOG: u64 = 1 << 34;

/// Whether a thread reads guests' data.
fn reads_guests(name: &str) -> bool {
    let names = ["guest", "guest-pages", "guest-rings", "guest-cpu", "tls", "arrivals", "module"];
    names.contains(&name.trim_end_matches(|last: char| last.is_ascii_digit()))
}

/// Each thread has dropped all unneeded privileges, and threads that read guests' data have filters; returns how
/// many, by name. Capabilities that a parent without the right to change it left in the bounding set stay there,
/// within `max`; without new privileges they have no effect.
fn check(threads: &[Shown], of_main: u64, max: u64) -> BTreeMap<String, usize> {
    let mut readers = BTreeMap::new();
    for thread in threads {
        assert_eq!(thread.no_new_privs, "1", "{thread:?}");
        let may_have = if thread.name == "main" { of_main } else { 0 };
        assert_eq!(thread.effective, may_have, "{thread:?}");
        assert_eq!(thread.bounding & !(may_have | max), 0, "{thread:?}");
        if reads_guests(&thread.name) {
            assert!(thread.filters >= 2, "{thread:?}");
            *readers.entry(thread.name.clone()).or_default() += 1;
        }
    }
    readers
}

/// Waits until starting threads have confined themselves.
fn settled(pid: u32) -> Vec<Shown> {
    wait_until("threads are not confined", || {
        threads(pid).iter().all(|thread| thread.no_new_privs == "1")
    });
    threads(pid)
}

/// Waits until a recorder has begun: an earlier signal would stop the start.
fn wait_until_on(recorder: u32) {
    wait_until("it does not give anything up", || {
        threads(recorder).iter().any(|thread| thread.name == "main" && thread.no_new_privs == "1")
    });
}

#[test]
fn a_recorder_gives_up_its_rights_once_it_records() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let channel = format!("unix:{}", folder.path().join("agent").display());
    let _agent = Agent::start(&channel);
    for is_given_away in [false, true] {
        // A private folder, as homes are.
        let home = folder.path().join(if is_given_away { "home" } else { "own" });
        fs::create_dir(&home).unwrap();
        let session = home.join("s");
        let guest = format!("g={channel}");
        let mut record = command(&["record", "-e", "sched_process_exec", "--guest", &guest, "-o"]);
        record.arg(&session).stderr(Stdio::null()).env_remove("SUDO_UID");
        let mut of_main = SYS_PTRACE;
        if is_given_away {
            let owned = Command::new("chown").arg("1234:1234").arg(&home).status().unwrap();
            assert!(owned.success());
            assert!(Command::new("chmod").arg("0700").arg(&home).status().unwrap().success());
            record.env("SUDO_UID", "1234").env("SUDO_GID", "1234");
            of_main |= CHOWN | DAC_READ_SEARCH;
        }
        let mut recorder = Agent(record.spawn().unwrap());
        wait_until("it does not record", || session.join("guest-g.pages/trace_clock").exists());
        wait_until_on(recorder.pid());
        let readers = check(&settled(recorder.pid()), of_main, 0);
        assert!(readers["guest"] == 1 && readers["guest-pages0"] == 1, "{readers:?}");
        signal(recorder.pid(), "INT");
        assert!(recorder.0.wait().unwrap().success());
        assert!(session.join("host.dat").is_file() && session.join("guest-g.dat").is_file());
    }
}

#[test]
fn an_agent_serves_hosts_without_most_of_its_rights() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let channel = format!("unix:{}", folder.path().join("agent").display());
    let agent = Agent::start(&channel);
    let (guest, session) = (format!("g={channel}"), folder.path().join("s"));
    let mut record = command(&["record", "-e", "sched_process_exec", "--guest", &guest, "-o"]);
    let mut recorder = Agent(record.arg(&session).stderr(Stdio::null()).spawn().unwrap());
    wait_until("it does not record", || session.join("guest-g.pages/trace_clock").exists());
    let is_pump = |thread: &Shown| thread.name.starts_with("hyperscope-p");
    wait_until("its pumps are not confined", || {
        let threads = threads(agent.pid());
        threads.iter().any(is_pump)
            && threads.iter().filter(|thread| is_pump(thread)).all(|thread| thread.filters == 3)
    });
    let threads = threads(agent.pid());
    // Including what its unit leaves it.
    let needed = SYS_ADMIN | SYSLOG | NET_BIND_SERVICE;
    for thread in threads.iter().filter(|thread| thread.name != "main") {
        // A thread starts to sample at a host's request, and reads programs' mappings and the kernel's code.
        let (may_have, filters) = match &*thread.name {
            "starts" => (SYS_ADMIN | SYSLOG | SYS_PTRACE | SYS_RAWIO, 1),
            _ if is_pump(thread) => (0, 3),
            _ => (needed, 2),
        };
        assert_eq!((thread.effective, &*thread.no_new_privs), (may_have, "1"), "{thread:?}");
        assert!(thread.filters >= filters, "{thread:?}");
    }
    assert!(threads.iter().any(|thread| thread.name == "serves"), "{threads:?}");
    wait_until_on(recorder.pid());
    signal(recorder.pid(), "INT");
    assert!(recorder.0.wait().unwrap().success());
    assert!(session.join("guest-g.dat").is_file());
}

#[test]
fn the_command_of_a_recording_keeps_all_rights() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (session, status) = (folder.path().join("s"), folder.path().join("status"));
    let script = format!("cat /proc/self/status > {}", status.display());
    let mut record = command(&["record", "-e", "sched_process_exec", "-o"]);
    record.arg(&session).args(["--", "sh", "-c", &script]).stderr(Stdio::null());
    assert!(record.status().unwrap().success());
    let ours = shown(&fs::read_to_string("/proc/self/status").unwrap());
    let of_command = shown(&fs::read_to_string(status).unwrap());
    assert_eq!(
        (of_command.effective, of_command.bounding, of_command.no_new_privs, of_command.filters),
        (ours.effective, ours.bounding, ours.no_new_privs, ours.filters)
    );
}

#[test]
fn who_listens_for_guests_gives_up_its_rights() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("guests");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let at = format!("tcp-plain:{free}");
    let arguments = ["listen", &at, "-e", "sched_process_exec", "-o", to.to_str().unwrap()];
    let mut listens = command(&arguments);
    // Dropping this kills it, like an agent.
    let mut listens = Agent(listens.stderr(Stdio::null()).spawn().unwrap());
    wait_until("it does not listen", || TcpStream::connect(free).is_ok());
    let mut agent = Command::new(crate::agent::program());
    let agent = agent.arg(format!("connect:{at}")).stderr(Stdio::null()).spawn().unwrap();
    let _agent = Agent(agent);
    wait_until("no guest is recorded", || {
        threads(listens.pid()).iter().any(|thread| thread.name == "guest-pages0")
    });
    let threads = settled(listens.pid());
    // The capabilities to create sessions in other users' folders, and to identify guests.
    let needed = DAC_READ_SEARCH | 1 << 1 | SYS_PTRACE;
    let (makes, others): (Vec<Shown>, Vec<Shown>) =
        threads.into_iter().partition(|thread| thread.effective != 0);
    assert!(
        makes.iter().all(|thread| thread.effective == needed && thread.filters > 0),
        "{makes:?}"
    );
    let readers = check(&others, 0, needed);
    assert!(readers["arrivals"] == 1 && readers["guest"] == 1, "{readers:?}");
    listens.signal("INT");
    assert!(listens.0.wait().unwrap().success());
    assert!(
        to.read_dir().unwrap().flatten().any(|entry| entry.path().join("session.json").exists())
    );
}
