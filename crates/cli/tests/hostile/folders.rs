//! A recorder that runs as root writes into places that other users have prepared: it follows and
//! overwrites nothing of theirs, and they can read nothing.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use crate::recorders::{hyperscope, instances, run, start};
use crate::tool::lock_tracing;

const NOBODY: u32 = 65534;

/// Another user's folder, with a private file of root's next to it.
struct Place {
    folder: tempfile::TempDir,
    secret: PathBuf,
}

impl Place {
    /// `None` if folders can't be given away.
    fn of_nobody() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        fs::write(&secret, "kept").unwrap();
        fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        if chown(folder.path(), Some(NOBODY), Some(NOBODY)).is_err() {
            testkit::skip!("only root gives folders away");
            return None;
        }
        Some(Self { folder, secret })
    }

    fn session(&self) -> PathBuf {
        self.folder.path().join("s.hscope")
    }

    /// A session's folder as its owner prepares it.
    fn prepared(&self, owner: u32, mode: u32) -> PathBuf {
        let session = self.session();
        fs::create_dir(&session).unwrap();
        chown(&session, Some(owner), Some(owner)).unwrap();
        fs::set_permissions(&session, Permissions::from_mode(mode)).unwrap();
        session
    }
}

fn record(session: &Path) -> (Option<i32>, String) {
    let to = session.to_str().unwrap();
    let (code, _, stderr) =
        run(&mut hyperscope(&["record", "-e", "sched_process_exec", "--for", "200ms", "-o", to]));
    (code, stderr)
}

fn tree(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let is_folder = entry.file_type().unwrap().is_dir();
        found.extend(if is_folder { tree(&entry.path()) } else { vec![entry.path()] });
    }
    found
}

#[test]
fn a_session_folder_of_another_user_is_refused_and_nothing_in_it_followed() {
    let Some(_lock) = lock_tracing() else { return };
    for name in [".room", "session.json.new", "host.dat.new", ".recorder"] {
        let Some(place) = Place::of_nobody() else { return };
        let session = place.prepared(NOBODY, 0o755);
        symlink(&place.secret, session.join(name)).unwrap();
        let (code, stderr) = record(&session);
        assert!(code == Some(1) && stderr.contains("belongs to user 65534"), "{name}: {stderr}");
        assert_eq!(fs::read_to_string(&place.secret).unwrap(), "kept", "{name}");
        assert_eq!(tree(&session).len(), 2, "{name}");
    }
    assert_eq!(instances(), Vec::<String>::new());
}

#[test]
fn links_in_a_folder_of_ones_own_are_not_followed_either() {
    let Some(_lock) = lock_tracing() else { return };
    for name in [".room", "session.json.new", "host.dat.new", ".recorder"] {
        let Some(place) = Place::of_nobody() else { return };
        let session = place.prepared(0, 0o700);
        symlink(&place.secret, session.join(name)).unwrap();
        record(&session);
        assert_eq!(fs::read_to_string(&place.secret).unwrap(), "kept", "{name}");
        assert_eq!(fs::metadata(&place.secret).unwrap().uid(), 0);
    }
    let Some(place) = Place::of_nobody() else { return };
    let target = place.folder.path().join("target");
    fs::create_dir(&target).unwrap();
    symlink(&target, place.session()).unwrap();
    let (code, stderr) = record(&place.session());
    assert!(code == Some(1) && stderr.contains("symbolic link"), "{stderr}");
    fs::remove_file(place.session()).unwrap();
    symlink(&target, place.prepared(0, 0o700).join("host.pages")).unwrap();
    assert_eq!(record(&place.session()).0, Some(1));
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}

#[test]
fn a_folder_that_others_may_write_into_is_refused() {
    let Some(_lock) = lock_tracing() else { return };
    for mode in [0o777, 0o1777, 0o770, 0o2770] {
        let Some(place) = Place::of_nobody() else { return };
        let session = place.prepared(0, mode);
        let (code, stderr) = record(&session);
        assert!(code == Some(1) && stderr.contains("others can write"), "{mode:o}: {stderr}");
        assert_eq!(tree(&session).len(), 1, "{mode:o}");
    }
}

#[test]
fn nobody_else_reads_a_session_while_it_is_recorded_and_after() {
    let Some(_lock) = lock_tracing() else { return };
    let Some(place) = Place::of_nobody() else { return };
    let session = place.session();
    // The parent folder belongs to another user, as with sudo in one's home.
    let mut recorder = start(&session, &["--for", "1s"]);
    let closed = |paths: Vec<PathBuf>| {
        assert!(paths.len() > 1);
        for path in paths {
            let found = fs::symlink_metadata(&path).unwrap();
            assert_eq!((found.mode() & 0o077, found.uid()), (0, 0), "{}", path.display());
        }
    };
    closed(tree(&session));
    assert!(recorder.ends());
    closed(tree(&session));
    let theirs = std::process::Command::new("ls").arg(&session).uid(NOBODY).gid(NOBODY).output();
    assert!(!theirs.unwrap().status.success());
}

#[test]
fn a_mode_opens_a_session_for_its_group() {
    let Some(_lock) = lock_tracing() else { return };
    let Some(place) = Place::of_nobody() else { return };
    let session = place.session();
    let to = session.to_str().unwrap();
    let record = |mode| {
        let arguments = ["record", "-e", "sched_process_exec", "--for", "100ms", "-o", to];
        run(hyperscope(&arguments).args(["--mode", mode]))
    };
    let (code, _, stderr) = record("666");
    assert!(code == Some(2) && stderr.contains("only the owner may write"), "{stderr}");
    assert_eq!(record("640").0, Some(0));
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!((mode(&session), mode(&session.join("host.dat"))), (0o750, 0o640));
}

#[test]
fn what_sudo_recorded_belongs_to_whoever_ran_it() {
    let Some(_lock) = lock_tracing() else { return };
    let Some(place) = Place::of_nobody() else { return };
    let session = place.session();
    let to = session.to_str().unwrap();
    let arguments = ["record", "-e", "sched_process_exec", "--for", "200ms", "-o", to];
    let mut sudo = hyperscope(&arguments);
    sudo.envs([("SUDO_UID", "65534"), ("SUDO_GID", "65533")]);
    let (code, _, stderr) = run(&mut sudo);
    assert_eq!(code, Some(0), "{stderr}");
    for path in tree(&session) {
        let found = fs::symlink_metadata(&path).unwrap();
        assert_eq!((found.uid(), found.gid()), (NOBODY, 65533), "{}", path.display());
    }
    assert_eq!(fs::metadata(&place.secret).unwrap().uid(), 0);
    // An existing folder keeps its owner and its other contents.
    fs::remove_dir_all(&session).unwrap();
    place.prepared(0, 0o700);
    assert_eq!(run(&mut sudo).0, Some(0));
    assert_eq!(fs::metadata(&session).unwrap().uid(), 0);
}

#[test]
fn of_two_recorders_of_one_folder_the_second_changes_nothing() {
    let Some(_lock) = lock_tracing() else { return };
    let Some(place) = Place::of_nobody() else { return };
    let session = place.session();
    let mut recorder = start(&session, &[]);
    let before = tree(&session);
    let (code, stderr) = record(&session);
    assert_eq!(code, Some(1));
    let pid = recorder.id();
    assert!(stderr.contains(&format!("process {pid}")) && stderr.contains("-o"), "{stderr}");
    assert_eq!(tree(&session), before);
    assert_eq!(instances(), [format!("hyperscope-{pid}")]);
    let recorded = Pid::from_raw(pid.cast_signed()).unwrap();
    kill_process(recorded, Signal::INT).unwrap();
    assert!(recorder.ends());
    assert!(session.join("host.dat").exists() && !session.join(".recorder").exists());
}
