//! Folders that others have prepared: what is in them is neither followed nor overwritten.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use os::folder::{Folder, Made, Modes, Observer, Operation};
use parking_lot::Mutex;

fn open(path: &Path) -> Folder {
    Folder::open(path, Modes::default()).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn links_are_not_written_through() {
    let place = tempfile::tempdir().unwrap();
    let secret = place.path().join("secret");
    fs::write(&secret, "kept").unwrap();
    let session = place.path().join("s");
    fs::create_dir(&session).unwrap();
    let folder = open(&session);
    for name in ["file", "file.new"] {
        symlink(&secret, session.join(name)).unwrap();
    }
    symlink(place.path().join("nowhere"), session.join("dangling")).unwrap();
    symlink(place.path(), session.join("sub")).unwrap();
    assert!(folder.create_new("file").is_err());
    assert!(folder.create_new("dangling").is_err());
    assert!(folder.read("file").is_err() && folder.read_write("file").is_err());
    let error = folder.append("file").unwrap_err().to_string();
    assert!(error.contains("symbolic link"), "{error}");
    assert!(folder.subfolder("sub").is_err());
    assert!(folder.remove_all("sub").is_err());
    // The names are this program's to give: links that have them go, what they lead to stays.
    folder.replace("file", b"new").unwrap();
    assert_eq!(fs::read_to_string(session.join("file")).unwrap(), "new");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "kept");
    assert!(!place.path().join("nowhere").exists());
}

#[test]
fn a_file_with_a_second_name_is_not_written() {
    let place = tempfile::tempdir().unwrap();
    let session = place.path().join("s");
    fs::create_dir(&session).unwrap();
    fs::write(place.path().join("other"), "kept").unwrap();
    fs::hard_link(place.path().join("other"), session.join("cpu0")).unwrap();
    let error = open(&session).append("cpu0").unwrap_err().to_string();
    assert!(error.contains("hard link"), "{error}");
}

#[test]
fn folders_of_others_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let session = place.path().join("s");
    fs::create_dir(&session).unwrap();
    fs::set_permissions(&session, fs::Permissions::from_mode(0o777)).unwrap();
    let error = Folder::open(&session, Modes::default()).unwrap_err().to_string();
    assert!(error.contains("others can write"), "{error}");
    fs::set_permissions(&session, fs::Permissions::from_mode(0o755)).unwrap();
    symlink(&session, place.path().join("link")).unwrap();
    assert!(Folder::open(&place.path().join("link"), Modes::default()).is_err());
    if std::os::unix::fs::chown(&session, Some(65534), None).is_err() {
        return testkit::skip!("only root gives folders away");
    }
    let error = Folder::open(&session, Modes::default()).unwrap_err().to_string();
    assert!(error.contains("belongs to user 65534"), "{error}");
    // The folder above is anybody's.
    let (_, made) = Folder::open_or_make(&session.join("in"), Modes::default(), None).unwrap();
    assert_eq!(made, Made::New);
}

#[test]
fn what_is_made_is_for_nobody_else_unless_asked_for() {
    let place = tempfile::tempdir().unwrap();
    for (modes, file, folder) in
        [(Modes::default(), 0o600, 0o700), (Modes::of_files(0o644).unwrap(), 0o644, 0o755)]
    {
        let path = place.path().join(format!("{file:o}"));
        let made = Folder::make(&path, modes).unwrap();
        made.subfolder("sub").unwrap().create_new("in").unwrap();
        made.replace("new", b"x").unwrap();
        assert_eq!([mode(&path), mode(&path.join("sub"))], [folder; 2]);
        assert_eq!([mode(&path.join("new")), mode(&path.join("sub/in"))], [file; 2]);
    }
}

#[test]
fn a_folder_that_was_renamed_is_still_the_one_that_is_written() {
    let place = tempfile::tempdir().unwrap();
    let (before, after) = (place.path().join("before"), place.path().join("after"));
    let folder = Folder::make(&before, Modes::default()).unwrap();
    fs::rename(&before, &after).unwrap();
    fs::create_dir(&before).unwrap();
    folder.write_new("x", b"x").unwrap();
    assert!(after.join("x").exists() && !before.join("x").exists());
    assert!(!folder.is_at_its_path());
}

#[derive(Debug, Default)]
struct Seen(Mutex<Vec<String>>);

impl Observer for Seen {
    fn before(&self, operation: &Operation<'_>) -> std::io::Result<()> {
        let text = format!("{operation:?}");
        let is_refused = text.contains("refused");
        self.0.lock().push(text);
        if is_refused { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

#[test]
fn an_observer_sees_each_operation_before_it_is_done() {
    let place = tempfile::tempdir().unwrap();
    let seen = Arc::new(Seen::default());
    let observer = Some(Arc::clone(&seen) as Arc<dyn Observer>);
    let path = place.path().join("s");
    let (folder, _) = Folder::open_or_make(&path, Modes::default(), observer).unwrap();
    let mut file = folder.subfolder("sub").unwrap().append("x").unwrap();
    file.write_all(b"abc").unwrap();
    file.cut(1).unwrap();
    file.sync().unwrap();
    folder.replace("y", b"y").unwrap();
    assert!(folder.write_new("refused", b"").is_err() && !path.join("refused").exists());
    folder.remove("y").unwrap();
    let seen = seen.0.lock();
    let kinds: Vec<&str> =
        seen.iter().map(|operation| operation.split(['(', ' ']).next().unwrap()).collect();
    let expected = [
        "MakeFolder",
        "MakeFolder",
        "Open",
        "Write",
        "SetLength",
        "Sync",
        "Remove",
        "Open",
        "Write",
        "Sync",
        "Rename",
        "Sync",
        "Open",
        "Remove",
    ];
    assert_eq!(kinds, expected, "{seen:?}");
}
