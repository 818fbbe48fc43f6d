//! Undoes changes of this system in any case: on drop, or, if the program was killed, at its next start from a note.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How to undo a change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    /// Write this text to the file.
    Write(PathBuf, String),
    /// Append this line to the file.
    Append(PathBuf, String),
    /// Remove the folder.
    Remove(PathBuf),
}

/// Changes in force.
#[derive(Debug)]
pub(crate) struct Undo {
    note: PathBuf,
    actions: Vec<Action>,
}

impl Undo {
    /// No changes yet. First undoes the changes in the note of a killed program; refuses if that program still runs.
    pub(crate) fn new(note: &Path) -> io::Result<Self> {
        let note_text = fs::read_to_string(note).unwrap_or_default();
        let mut lines = note_text.lines();
        let whose = lines.next().and_then(|line| line.parse::<u32>().ok());
        if whose.is_some_and(|pid| pid != std::process::id() && is_alive(pid)) {
            let text = format!("another program holds changed settings: {}", note.display());
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
        }
        Self { note: note.to_owned(), actions: lines.filter_map(Action::parse).collect() }.done();
        Ok(Self { note: note.to_owned(), actions: Vec::new() })
    }

    /// Changes a file's text.
    pub(crate) fn write(&mut self, path: &Path, text: &str) -> io::Result<()> {
        let before = fs::read_to_string(path).map_err(|error| named(path, &error))?;
        let before = before.trim_end_matches('\n').to_owned();
        self.note(Action::Write(path.to_owned(), before))?;
        put(path, text, false)
    }

    /// Changes the text of a file whose current text can't be written back (`?`, `X`); `back` undoes it.
    pub(crate) fn write_new(&mut self, path: &Path, text: &str, back: &str) -> io::Result<()> {
        self.note(Action::Write(path.to_owned(), back.to_owned()))?;
        put(path, text, false)
    }

    /// Appends a line to a file; `back` undoes it.
    pub(crate) fn append(&mut self, path: &Path, line: &str, back: &str) -> io::Result<()> {
        self.note(Action::Append(path.to_owned(), back.to_owned()))?;
        put(path, &format!("{line}\n"), true)
    }

    /// Makes a folder.
    pub(crate) fn make(&mut self, path: &Path) -> io::Result<()> {
        self.note(Action::Remove(path.to_owned()))?;
        fs::create_dir(path).map_err(|error| named(path, &error))
    }

    /// Undoes all changes, last one first.
    pub(crate) fn done(mut self) {
        self.take_back();
    }

    /// Written before the change: undoing a change that was not made is harmless.
    fn note(&mut self, action: Action) -> io::Result<()> {
        self.actions.push(action);
        let actions: String = self.actions.iter().map(Action::line).collect();
        fs::write(&self.note, format!("{}\n{actions}", std::process::id()))
            .map_err(|error| named(&self.note, &error))
    }

    fn take_back(&mut self) {
        if self.actions.is_empty() {
            return;
        }
        while let Some(action) = self.actions.pop() {
            // There is nobody to report to; the other changes are undone anyway.
            let _ = action.take();
        }
        let _ = fs::remove_file(&self.note);
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        self.take_back();
    }
}

impl Action {
    fn take(&self) -> io::Result<()> {
        match self {
            Self::Write(path, text) => put(path, text, false),
            Self::Append(path, line) => put(path, &format!("{line}\n"), true),
            Self::Remove(path) => fs::remove_dir(path),
        }
    }

    fn line(&self) -> String {
        match self {
            Self::Write(path, text) => format!("write\t{}\t{text}\n", path.display()),
            Self::Append(path, text) => format!("append\t{}\t{text}\n", path.display()),
            Self::Remove(path) => format!("remove\t{}\n", path.display()),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(3, '\t');
        let (word, path) = (words.next()?, PathBuf::from(words.next()?));
        match (word, words.next()) {
            ("write", Some(text)) => Some(Self::Write(path, text.to_owned())),
            ("append", Some(text)) => Some(Self::Append(path, text.to_owned())),
            ("remove", None) => Some(Self::Remove(path)),
            _ => None,
        }
    }
}

/// Not with `fs::write`, which would create a missing file, and truncates a file with others' lines.
fn put(path: &Path, text: &str, append: bool) -> io::Result<()> {
    let file = OpenOptions::new().write(true).append(append).truncate(!append).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| named(path, &error))
}

fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("undo-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("parameter"), "200000\n").unwrap();
        fs::write(path.join("probes"), "p:theirs f\n").unwrap();
        path
    }

    fn change(undo: &mut Undo, at: &Path) {
        undo.write(&at.join("parameter"), "0").unwrap();
        undo.append(&at.join("probes"), "p:ours g", "-:ours").unwrap();
        undo.make(&at.join("instance")).unwrap();
        assert_eq!(fs::read_to_string(at.join("parameter")).unwrap(), "0");
        assert!(at.join("instance").is_dir() && at.join("note").exists());
    }

    fn is_back(at: &Path) {
        assert_eq!(fs::read_to_string(at.join("parameter")).unwrap(), "200000");
        // The kernel interprets the last line as a removal; a plain file keeps it.
        let probes = fs::read_to_string(at.join("probes")).unwrap();
        assert_eq!(probes, "p:theirs f\np:ours g\n-:ours\n");
        assert!(!at.join("instance").exists() && !at.join("note").exists());
        fs::remove_dir_all(at).unwrap();
    }

    #[test]
    fn changes_are_taken_back_when_they_fall() {
        let at = folder("drop");
        let mut undo = Undo::new(&at.join("note")).unwrap();
        change(&mut undo, &at);
        drop(undo);
        is_back(&at);
    }

    #[test]
    fn changes_of_a_program_that_was_killed_are_taken_back_by_the_next() {
        let at = folder("killed");
        let mut undo = Undo::new(&at.join("note")).unwrap();
        change(&mut undo, &at);
        std::mem::forget(undo);
        drop(Undo::new(&at.join("note")).unwrap());
        is_back(&at);
    }

    #[test]
    fn what_another_program_has_switched_is_left_to_it() {
        let at = folder("alive");
        // Process 1 lives as long as the system.
        fs::write(at.join("note"), format!("1\nwrite\t{}\t7\n", at.join("parameter").display()))
            .unwrap();
        assert!(Undo::new(&at.join("note")).is_err());
        assert_eq!(fs::read_to_string(at.join("parameter")).unwrap(), "200000\n");
        fs::remove_dir_all(at).unwrap();
    }

    #[test]
    fn a_file_that_is_not_there_is_not_made() {
        let at = folder("missing");
        let mut undo = Undo::new(&at.join("note")).unwrap();
        assert!(undo.write(&at.join("absent"), "0").is_err());
        drop(undo);
        assert!(!at.join("absent").exists());
        fs::remove_dir_all(at).unwrap();
    }
}
