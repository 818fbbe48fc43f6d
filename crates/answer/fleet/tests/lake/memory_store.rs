//! A store in memory, in which a run can be killed at any call, or another run can make changes before it.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::SystemTime;

use bytes::Bytes;
use fleet::lake::store::{Before, Entry, Objects};
use parking_lot::Mutex;

/// The content of a bucket, shared by copies.
#[derive(Clone, Default)]
pub(crate) struct Bucket(Arc<Mutex<Content>>);

#[derive(Clone, Default)]
struct Content {
    objects: BTreeMap<String, (Bytes, Entry)>,
    versions: u64,
}

impl Bucket {
    /// A separate bucket with the same content.
    pub(crate) fn duplicate(&self) -> Self {
        Self(Arc::new(Mutex::new(self.0.lock().clone())))
    }

    /// Writes its content into a folder, for readers without store access.
    pub(crate) fn write_to(&self, root: &Path) {
        for (name, (bytes, _)) in &self.0.lock().objects {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.lock().objects.keys().cloned().collect()
    }
}

/// An event at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The caller is killed before the call.
    KilledBefore,
    /// The caller is killed after the call, before the reply.
    KilledAfter,
    /// Another run makes changes before the call.
    Other,
}

/// A client of a bucket, with an event at one of its calls.
pub(crate) struct Client {
    bucket: Bucket,
    event: Option<(usize, Event)>,
    other: Box<dyn Fn() + Send + Sync>,
    pub(crate) calls: AtomicUsize,
}

impl Client {
    /// A client without an event.
    pub(crate) fn new(bucket: &Bucket) -> Self {
        Self {
            bucket: bucket.clone(),
            event: None,
            other: Box::new(|| ()),
            calls: AtomicUsize::new(0),
        }
    }

    /// A client that is killed at a call.
    pub(crate) fn killed(bucket: &Bucket, at: usize, event: Event) -> Self {
        Self { event: Some((at, event)), ..Self::new(bucket) }
    }

    /// A client before whose call another run makes changes.
    pub(crate) fn disturbed(
        bucket: &Bucket,
        at: usize,
        other: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self { event: Some((at, Event::Other)), other: Box::new(other), ..Self::new(bucket) }
    }

    fn called<T>(&self, call: impl FnOnce(&mut Content) -> io::Result<T>) -> io::Result<T> {
        let number = self.calls.fetch_add(1, Relaxed);
        match self.event {
            Some((at, Event::KilledBefore)) if number >= at => return Err(killed()),
            Some((at, Event::KilledAfter)) if number > at => return Err(killed()),
            Some((at, Event::Other)) if number == at => (self.other)(),
            _ => (),
        }
        let answer = call(&mut self.bucket.0.lock());
        if self.event == Some((number, Event::KilledAfter)) { Err(killed()) } else { answer }
    }
}

fn killed() -> io::Error {
    io::Error::other("killed")
}

fn exists(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, format!("{name}: another version is there"))
}

impl Objects for Client {
    fn put(
        &self,
        name: &str,
        bytes: u64,
        body: &mut dyn Read,
        before: &Before,
    ) -> io::Result<Option<String>> {
        let mut all = Vec::new();
        body.read_to_end(&mut all)?;
        assert_eq!(all.len() as u64, bytes);
        self.called(|content| {
            let there = content.objects.get(name).and_then(|(_, entry)| entry.version.clone());
            let fits = match before {
                Before::Anything => true,
                Before::Nothing => there.is_none(),
                Before::Version(version) => there.as_ref() == Some(version),
            };
            if !fits {
                return Err(exists(name));
            }
            content.versions += 1;
            let version = Some(content.versions.to_string());
            let (name, written) = (name.to_owned(), SystemTime::now());
            let entry = Entry { name: name.clone(), bytes, written, version: version.clone() };
            content.objects.insert(name, (all.into(), entry));
            Ok(version)
        })
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let below = format!("{folder}/");
        self.called(|content| {
            let all = content.objects.iter().filter(|(name, _)| name.starts_with(&below));
            Ok(all.map(|(_, (_, entry))| entry.clone()).collect())
        })
    }

    fn read(&self, file: &Entry, from: u64, bytes: u64) -> io::Result<Bytes> {
        let range = usize::try_from(from).unwrap()..usize::try_from(from + bytes).unwrap();
        self.called(|content| Ok(found(content, file)?.slice(range)))
    }

    fn read_whole(&self, files: &[Entry]) -> io::Result<Vec<Bytes>> {
        self.called(|content| files.iter().map(|file| found(content, file)).collect())
    }

    fn remove(&self, names: &[String]) -> io::Result<()> {
        // Each removal is a step.
        names.iter().try_for_each(|name| {
            self.called(|content| {
                content.objects.remove(name);
                Ok(())
            })
        })
    }
}

fn found(content: &Content, file: &Entry) -> io::Result<Bytes> {
    let there = content.objects.get(&file.name).filter(|(_, entry)| *entry == *file);
    there.map(|(bytes, _)| bytes.clone()).ok_or_else(|| io::ErrorKind::NotFound.into())
}
