//! A folder of this system that level 1 mounts by virtiofs.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::error::{LabError, Result, last_lines};
use crate::lab::Lab;
use crate::machine;
use crate::root::Root;
use crate::session::Session;

/// The server; it needs root.
const PROGRAM: &str = "virtiofsd";
/// Max time for it to start.
const BEGINNING: Duration = Duration::from_secs(10);
/// The mount point in level 1.
const PLACE: &str = "/share";

/// Serves a folder for a lab that is about to start.
pub(crate) fn serve(lab: &Lab, host: &Root, folder: &Path) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        let text =
            "--share needs root, because the program that serves the folder (virtiofsd) does";
        return Err(LabError::Usage(text.into()));
    }
    let words = host.command_prefix(&host.program(PROGRAM)?)?;
    let (program, arguments) =
        words.split_first().ok_or_else(|| LabError::Usage(PROGRAM.into()))?;
    let socket = machine::share_socket(&lab.run_text());
    let log = lab.run_folder().join("share.log");
    let log_file = File::create(&log).map_err(LabError::io("cannot write", &log))?;
    let errors = log_file.try_clone().map_err(LabError::io("cannot write", &log))?;
    let mut child = Command::new(program)
        .args(arguments)
        .arg(format!("--socket-path={socket}"))
        .args(["-f", "-o"])
        .arg(format!("source={}", folder.display()))
        .stdin(Stdio::null())
        .stdout(log_file)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .map_err(LabError::io("cannot run", Path::new(program)))?;
    let deadline = Instant::now() + BEGINNING;
    while !Path::new(&socket).exists() {
        if child.try_wait().ok().flatten().is_some() || Instant::now() > deadline {
            let log_text = std::fs::read_to_string(&log).unwrap_or_default();
            return Err(LabError::Command {
                command: PROGRAM.into(),
                output: last_lines(&log_text, 8),
            });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Mounts the folder in level 1.
pub(crate) fn mount(session: &mut Session) -> Result<()> {
    let script = format!("mkdir -p {PLACE} && mount -t virtiofs share {PLACE}");
    session.check(&["sh", "-c", &script], BEGINNING).map(drop)
}
