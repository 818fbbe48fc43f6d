//! The host's end for `guest_agent`: makes a folder of bare pages of what the guest hands out.
//!
//! `host_drain MEMORY-FILE FOLDER`, until the agent says that it ends. `hyperscope` reads the folder.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use shmring::{Access, Change, HostSide, PageConsumer, Poller, Received, SharedMap, Written};

/// Formats of a guest are text of a few megabytes; one that sends more is not listened to.
const MAX_TEXT: usize = 64 << 20;

fn main() -> io::Result<()> {
    let mut words = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(memory), Some(folder)) = (words.next(), words.next()) else {
        return Err(io::Error::other("host_drain MEMORY-FILE FOLDER"));
    };
    let map = Arc::new(SharedMap::open(&memory, Access::ReadWrite)?);
    let mut host = loop {
        match HostSide::attach(Arc::clone(&map)) {
            Ok(host) => break host,
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    };
    println!("host: {:?}", host.watch.plan());
    fs::create_dir_all(&folder)?;
    let name = |ring: &PageConsumer| folder.join(format!("cpu{}", ring.cpu()));
    let mut files: Vec<File> = Vec::new();
    for ring in &host.pages {
        files.push(File::create(name(ring))?);
    }
    let (mut poller, mut text) = (Poller::default(), Vec::new());
    loop {
        // Before the rings: what the agent did before it ended is then all there.
        let is_running = host.watch.agent().is_running;
        match host.watch.change() {
            Change::None => {}
            Change::Restarted { epoch } => println!("host: the agent started again, epoch {epoch}"),
            Change::Replaced => return Err(io::Error::other("the agent has another plan now")),
        }
        let found = drain(&mut host, &files)? | hear(&mut host, &mut text);
        if !found && !is_running {
            break;
        }
        poller.pause(found);
        host.watch.publish_polls(&poller);
    }
    write_texts(&folder, &text)?;
    for ring in &host.pages {
        println!("host: cpu {}: {:?} {:?}", ring.cpu(), ring.totals(), ring.producer_losses());
    }
    println!("host: {} polls, {} sleeps, {} bytes", poller.polls(), poller.sleeps(), text.len());
    Ok(())
}

fn drain(host: &mut HostSide, files: &[File]) -> io::Result<bool> {
    let mut found = false;
    for (ring, mut file) in host.pages.iter_mut().zip(files) {
        let before = io::Seek::stream_position(&mut file)?;
        match ring.next_to(file.as_fd())? {
            Written::Nothing => continue,
            Written::Page(_) => {}
            Written::Overtaken { .. } => {
                file.set_len(before)?;
                io::Seek::seek(&mut file, io::SeekFrom::Start(before))?;
            }
        }
        found = true;
    }
    Ok(found)
}

fn hear(host: &mut HostSide, text: &mut Vec<u8>) -> bool {
    let mut bytes = [0; 4096];
    match host.from_guest.read(&mut bytes) {
        Received::Bytes(len) if text.len() < MAX_TEXT => {
            text.extend(bytes.get(..len).unwrap_or_default());
            len > 0
        }
        Received::Bytes(_) => false,
        Received::NewStream | Received::Damage => {
            text.clear();
            true
        }
    }
}

/// Writes the files that the guest sent; a path that leads out of the folder is refused.
fn write_texts(folder: &Path, mut text: &[u8]) -> io::Result<()> {
    while let Some(at) = text.iter().position(|&byte| byte == b'\n') {
        let (line, rest) = text.split_at(at);
        let line = String::from_utf8_lossy(line);
        let parts = line.split_once(' ').and_then(|(path, len)| Some((path, len.parse().ok()?)));
        let Some((path, len)) = parts else { return Err(io::Error::other("not a message")) };
        let path = Path::new(path);
        let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        let body = rest.get(1..).and_then(|rest| rest.split_at_checked(len));
        let Some((body, next)) = body.filter(|_| is_inside) else {
            return Err(io::Error::other("not a message"));
        };
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, body)?;
        text = next;
    }
    Ok(())
}
