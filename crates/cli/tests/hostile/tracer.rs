//! Kills programs after the n-th of their system calls that change something outside them. It follows
//! all their threads by ptrace: a signal at a random time would nearly always hit a waiting thread.

use std::collections::HashSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// System calls that change files, tracefs or another process's input. `openat` counts if it may
/// write.
const CHANGES: [i64; 20] = [
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_openat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_rename,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rmdir,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_splice,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_ftruncate,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_connect,
    libc::SYS_flock,
];

/// The result of a traced program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traced {
    /// Number of system calls that changed something.
    pub(crate) calls: u64,
    /// The last of them.
    pub(crate) last: i64,
    /// Its exit code; `None`: it was killed.
    pub(crate) code: Option<i32>,
}

/// A program that stops before its first instruction, until [`trace`] continues it.
pub(crate) fn stopped(command: &Command, stderr: std::fs::File) -> Child {
    let mut shell = Command::new("sh");
    shell.args(["-c", "kill -STOP $$; exec \"$0\" \"$@\""]);
    shell.arg(command.get_program()).args(command.get_args());
    shell.stdout(std::process::Stdio::null()).stderr(stderr);
    let child = shell.process_group(0).spawn().unwrap();
    while state(child.id()) != Some('T') {
        std::thread::yield_now();
    }
    child
}

/// The state that the kernel shows of a process.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Follows a process, which is [`stopped`] or running, to its end, and kills it and `others` after
/// its call number `kill_at`. `on_attach` runs once it is followed. The calling thread must have no
/// other children, because this waits for all of them.
pub(crate) fn trace(
    pid: u32,
    kill_at: u64,
    others: &dyn Fn() -> Vec<u32>,
    on_attach: &dyn Fn(),
) -> Traced {
    let main = raw(pid);
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    let is_stopped = state(pid) == Some('T');
    for thread in threads(pid) {
        ptrace::seize(thread, options).unwrap();
        ptrace::interrupt(thread).unwrap();
    }
    if is_stopped {
        kill(main, Signal::SIGCONT).unwrap();
    }
    on_attach();
    let mut traced = Traced { calls: 0, last: -1, code: None };
    // Calls of the shell that becomes the program don't count.
    let mut is_counting = !is_stopped;
    let mut entered = HashSet::new();
    loop {
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        let mut signal = None;
        let thread = match waitpid(Pid::from_raw(-1), Some(flags)) {
            Ok(WaitStatus::PtraceSyscall(thread)) => {
                let leaves = !entered.insert(thread) && entered.remove(&thread);
                if leaves
                    && is_counting
                    && let Some(call) = changed(thread)
                {
                    (traced.calls, traced.last) = (traced.calls + 1, call);
                    if traced.calls == kill_at {
                        others().into_iter().for_each(|other| {
                            let _ = kill(raw(other), Signal::SIGKILL);
                        });
                        let _ = kill(main, Signal::SIGKILL);
                    }
                }
                thread
            }
            Ok(WaitStatus::PtraceEvent(thread, _, event)) => {
                is_counting |= event == libc::PTRACE_EVENT_EXEC;
                thread
            }
            Ok(WaitStatus::Stopped(thread, sent)) => {
                signal = Some(sent);
                thread
            }
            Ok(WaitStatus::Exited(process, code)) => {
                traced.code = (process == main).then_some(code).or(traced.code);
                continue;
            }
            Err(Errno::ECHILD) => return traced,
            Err(Errno::EINTR) | Ok(_) => continue,
            Err(error) => panic!("{error}"),
        };
        // The next wait reports a thread that is dead by now.
        let _ = ptrace::syscall(thread, signal);
    }
}

fn raw(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap())
}

fn threads(pid: u32) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let number = |name: std::ffi::OsString| name.to_str().unwrap().parse().unwrap();
    tasks.map(|task| Pid::from_raw(number(task.unwrap().file_name()))).collect()
}

/// The call that a thread leaves, if it changed something.
fn changed(thread: Pid) -> Option<i64> {
    let registers = ptrace::getregs(thread).ok()?;
    let call = registers.orig_rax.cast_signed();
    let failed = registers.rax.cast_signed() < 0;
    let writes = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT;
    let only_reads =
        call == libc::SYS_openat && registers.rdx & u64::from(writes.cast_unsigned()) == 0;
    (CHANGES.contains(&call) && !failed && !only_reads).then_some(call)
}
