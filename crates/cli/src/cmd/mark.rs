//! `hyperscope mark`: puts a text among the events that are recorded just now.

use std::io;

use anyhow::{Context, bail};

use crate::args::mark::MarkArgs;

/// Where tracefs is mounted.
const MARKERS: [&str; 2] =
    ["/sys/kernel/tracing/trace_marker", "/sys/kernel/debug/tracing/trace_marker"];

pub(crate) fn run(args: &MarkArgs) -> anyhow::Result<()> {
    let text = args.text.join(" ");
    if text.len() > hypertrace::MARK_BYTES {
        bail!("a mark has up to {} bytes, this one has {}", hypertrace::MARK_BYTES, text.len());
    }
    if !args.here && to_host(&text) {
        return Ok(());
    }
    to_kernel(&text)
}

/// Makes a hypercall for each piece. KVM refuses them to programs, but has traced them by then.
#[cfg(target_arch = "x86_64")]
fn to_host(text: &str) -> bool {
    use sys::guest_instructions::{hypercall, is_kvm_guest};
    if !is_kvm_guest() {
        return false;
    }
    // Programs that put marks at the same time have other process ids.
    let id = std::process::id().to_le_bytes();
    let id = u16::from_le_bytes([id[0], id[1]]);
    for words in hypertrace::mark_words(id, text) {
        let _refused = hypercall(hypertrace::MARK_NUMBER, words);
    }
    true
}

#[cfg(not(target_arch = "x86_64"))]
fn to_host(_: &str) -> bool {
    false
}

fn to_kernel(text: &str) -> anyhow::Result<()> {
    for path in MARKERS {
        let file = std::fs::OpenOptions::new().write(true).open(path);
        match file.and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => return done.with_context(|| format!("cannot write to {path}")),
        }
    }
    bail!("this is no guest of KVM, and no tracefs is mounted");
}
