//! `hyperscope mark`: writes a text into the recordings in progress, here and on this guest's host.

use std::process::ExitCode;

use anyhow::bail;
use tracefs::{RecordedBuffer, Tracefs};

use crate::args::mark::MarkArgs;
use command::notice::say;
use command::verb::{Memory, Range, VerbArgs};

impl VerbArgs for MarkArgs {
    fn memory(&self) -> Memory {
        Memory::Unbounded
    }

    fn range(&self) -> Range {
        Range::Whole
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(args: &MarkArgs) -> anyhow::Result<()> {
    let text = args.text.join(" ");
    if text.len() > hypertrace::MARK_BYTES {
        bail!("a mark has at most {} bytes, this one has {}", hypertrace::MARK_BYTES, text.len());
    }
    let is_sent = !args.here && to_host(&text);
    if is_sent {
        say("sent to the host by hypercall: a recording of kvm:kvm_hypercall there has it");
    }
    match here(&text, args.here) {
        Ok(Here::Recorded) => Ok(()),
        Ok(Here::NotRecorded(tracefs)) if !is_sent => {
            RecordedBuffer::kernels_own(&tracefs).mark(&text)?;
            say(
                "no recording runs on this machine: the mark is only in the kernel's own trace buffer",
            );
            Ok(())
        }
        Ok(Here::NotRecorded(_)) => {
            say("no recording runs on this machine");
            Ok(())
        }
        Err(error) if is_sent => {
            say(&format!(
                "cannot mark recordings of this machine, if any run: {}",
                printable::with_causes(&error)
            ));
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// The result of marking this machine's recordings.
enum Here {
    Recorded,
    NotRecorded(Tracefs),
}

/// Marks all recordings of this machine, and the kernel's own buffer if `is_asked`.
fn here(text: &str, is_asked: bool) -> tracefs::Result<Here> {
    let tracefs = Tracefs::find()?;
    let mut buffers = RecordedBuffer::all(&tracefs)?;
    let kernel_buffer = RecordedBuffer::kernels_own(&tracefs);
    if buffers.is_empty() {
        return Ok(Here::NotRecorded(tracefs));
    }
    if is_asked && !buffers.contains(&kernel_buffer) {
        buffers.push(kernel_buffer);
    }
    for buffer in &buffers {
        // A recording that is just ending takes no mark; the others do.
        match buffer.mark(text) {
            Ok(()) => say(&format!("marked {}", name(buffer))),
            Err(error) => {
                say(&format!("cannot mark {}: {}", name(buffer), printable::with_causes(&error)))
            }
        }
    }
    Ok(Here::Recorded)
}

/// The owner of a buffer, for messages.
fn name(buffer: &RecordedBuffer) -> String {
    match (buffer.session(), buffer.instance()) {
        (Some((pid, session)), _) => {
            format!("the recording of this machine in {} (process {pid})", session.display())
        }
        (None, Some(instance)) => format!("the recording in tracefs' instance {instance}"),
        (None, None) => "the kernel's own trace buffer".to_owned(),
    }
}

/// Makes one hypercall per piece. KVM refuses hypercalls from programs, but traces them first.
#[cfg(target_arch = "x86_64")]
fn to_host(text: &str) -> bool {
    use sys::guest_instructions::{hypercall, is_kvm_guest};
    if !is_kvm_guest() {
        return false;
    }
    // Programs that write marks at the same time have different process ids.
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
