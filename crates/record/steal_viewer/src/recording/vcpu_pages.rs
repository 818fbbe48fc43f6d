//! One vCPU's spans as pages of events.

use std::fs::File;
use std::io::{self, Write};

use ftrace::ringbuf::{Missed, PageLayout, PageWriter};
use raw_bytes::{ByteOrder, LongSize};
use shmring::spans::{Activity, By, Span};

use super::PAGE_BYTES;
use super::events;

/// Buffered bytes that trigger a write.
const ENOUGH: usize = 64 << 10;

/// The state of the vCPU's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VcpuLocation {
    /// Unknown.
    Unknown,
    Guest,
    Kernel,
    User,
}

#[derive(Debug)]
pub(super) struct VcpuPages {
    vcpu: u32,
    file: File,
    writer: PageWriter,
    ready: Vec<u8>,
    place: VcpuLocation,
    /// If it is off its CPU: what runs instead, and whether it sleeps.
    off: Option<(By, bool)>,
    /// Time up to which everything is written.
    reached: u64,
}

impl VcpuPages {
    pub(super) fn new(vcpu: u32, file: File) -> Self {
        let layout = PageLayout {
            order: ByteOrder::Little,
            commit: LongSize::Eight,
            page_size: PAGE_BYTES as usize,
        };
        Self {
            vcpu,
            file,
            writer: PageWriter::new(layout),
            ready: Vec::new(),
            place: VcpuLocation::Unknown,
            off: None,
            reached: 0,
        }
    }

    /// Adds the next span.
    pub(super) fn span(&mut self, span: &Span) -> io::Result<()> {
        let at = span.start_tsc;
        if at > self.reached || span.begins_exit {
            self.enter(at.min(self.reached))?;
        }
        self.reached = span.end_tsc();
        if span.activity == Activity::Unknown {
            (self.place, self.off) = (VcpuLocation::Unknown, None);
            self.writer.missed(Missed::Unknown);
            if !span.begins_exit {
                return Ok(());
            }
        }
        if span.begins_exit {
            self.put(at, &events::exit(self.vcpu, span.code.unwrap_or(0), span.isa))?;
            self.place = VcpuLocation::Kernel;
        }
        match span.activity {
            // The hardware has left the guest, and the exit event follows.
            Activity::Kernel | Activity::User if span.code.is_none() => self.on_cpu(at)?,
            Activity::Kernel => {
                self.on_cpu(at)?;
                if std::mem::replace(&mut self.place, VcpuLocation::Kernel) == VcpuLocation::User {
                    self.put(at, &events::back(self.vcpu))?;
                }
            }
            Activity::User => {
                self.on_cpu(at)?;
                if std::mem::replace(&mut self.place, VcpuLocation::User) != VcpuLocation::User {
                    self.put(at, &events::user_exit(self.vcpu))?;
                }
            }
            Activity::Preempted => self.off_cpu(at, span.by, false)?,
            Activity::Asleep => self.off_cpu(at, By::Unknown, true)?,
            Activity::Waiting => {
                self.off_cpu(at, By::Unknown, true)?;
                self.put(at, &events::waking(self.vcpu))?;
            }
            Activity::Unknown => self.writer.missed(Missed::Unknown),
        }
        Ok(())
    }

    /// Notes the time up to which everything is known: a vCPU that was away before it has entered its guest.
    pub(super) fn known(&mut self, known_to: u64) -> io::Result<()> {
        if self.reached < known_to {
            self.enter(self.reached)?;
        }
        if self.ready.len() >= ENOUGH {
            self.file.write_all(&self.ready)?;
            self.ready.clear();
        }
        Ok(())
    }

    /// Writes the rest.
    pub(super) fn end(mut self) -> io::Result<File> {
        self.writer.flush(&mut self.ready);
        self.file.write_all(&self.ready)?;
        Ok(self.file)
    }

    fn enter(&mut self, at: u64) -> io::Result<()> {
        self.on_cpu(at)?;
        if matches!(self.place, VcpuLocation::Kernel | VcpuLocation::User) {
            self.put(at, &events::entry(self.vcpu))?;
            self.place = VcpuLocation::Guest;
        }
        Ok(())
    }

    fn off_cpu(&mut self, at: u64, by: By, sleeps: bool) -> io::Result<()> {
        if self.off.is_none() {
            self.put(at, &events::goes(self.vcpu, by, sleeps))?;
            self.off = Some((by, sleeps));
        }
        Ok(())
    }

    fn on_cpu(&mut self, at: u64) -> io::Result<()> {
        if let Some((by, _)) = self.off.take() {
            self.put(at, &events::comes(self.vcpu, by))?;
        }
        Ok(())
    }

    fn put(&mut self, at: u64, event: &[u8]) -> io::Result<()> {
        self.writer.push(at, event, &mut self.ready).map_err(io::Error::other)
    }
}
