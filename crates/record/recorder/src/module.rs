//! Frames that a guest's kernel module stores in shared memory: a thread polls and copies them, unnoticed by the guest.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use channel::{Access, Frame, FrameRing, HostAddress, NoFrames, SharedMap, TakeFrom, frame_rings};
use hypertrace::{FrameWords, StoredWriter, ToHost};
use os::confine::Confined;
use os::folder::{Folder, OutFile};
use os::waits::{Deadline, Signal, Wait};
use session_json::ModuleSummary;
use vms::{GuestAddress, Vcpu, Vm, open_memory};

use crate::error::{RecordError, Result, same_name};
use crate::relation::to_host;
use crate::task::{Outcome, Task};

/// Poll interval: a CPU with a million events per second fills a ring of 16 MiB in half a second.
const LOOKS: Duration = Duration::from_millis(10);
/// Max frames to read from a CPU before the next one has its turn: 8 MiB.
const MAX_AT_ONCE: usize = 1 << 16;
/// Number of frames from before the recording that are kept: they contain a key frame, which describes the others
/// (`HT_KEY_FRAMES` of the module).
const EARLIER_FRAMES: u64 = 1024;

/// A guest's memory with frames.
#[derive(Debug)]
pub(crate) struct Module {
    address: GuestAddress,
    path: PathBuf,
    map: Arc<SharedMap>,
}

/// Resolves names of VMs, or `[NAME=]shm:FILE`, to guests with unique names.
///
/// # Errors
/// When one has no memory, the memory can't be mapped, or two have the same name.
pub(crate) fn find_all(specs: &[String]) -> Result<Vec<Module>> {
    if specs.is_empty() {
        return Ok(Vec::new());
    }
    let vms = vms::running();
    let mut found = Vec::<Module>::new();
    for spec in specs {
        let module = Module::find(spec, &vms)?;
        if found.iter().any(|other| other.address.name == module.address.name) {
            return Err(same_name(&module.address.name));
        }
        found.push(module);
    }
    Ok(found)
}

impl Module {
    /// Resolves the name of a VM, or `[NAME=]shm:FILE`.
    ///
    /// # Errors
    /// When it has no memory, or the memory can't be mapped.
    fn find(spec: &str, vms: &[Vm]) -> Result<Self> {
        let address = GuestAddress::find(spec, vms)?;
        let HostAddress::SharedMemory { path } = &address.channel else {
            let text = format!(
                "the guest {} shares no memory with this host: its module needs an ivshmem-plain device with a memory-backend-file",
                address.name
            );
            return Err(RecordError::Usage(text));
        };
        let path = path.clone();
        let file = open_memory(&path, address.vm.as_ref(), false);
        let file = file.map_err(RecordError::io("use", &path))?;
        let map = SharedMap::of_others(&file, Access::Read);
        let map = Arc::new(map.map_err(RecordError::io("map", &path))?);
        Ok(Self { address, path, map })
    }

    /// Starts reading frames, into a file of the session.
    ///
    /// # Errors
    /// When the file can't be written.
    pub(crate) fn begin(
        self,
        session: &Folder,
        stop: &Signal,
        quota: u64,
    ) -> Result<RecordedModule> {
        let Self { address, path, map } = self;
        let file = format!("guest-{}.hypertrace", address.name);
        let to = session.path().join(&file);
        let out = session.create_new(&file).map_err(RecordError::io("write", &to))?;
        let counts = Arc::new(Counts::default());
        let mut taker = Taker {
            map,
            rings: Vec::new(),
            from: TakeFrom::Last(EARLIER_FRAMES),
            writer: StoredWriter::new(),
            out,
            quota,
            counts: Arc::clone(&counts),
        };
        // The relation of its TSC is in the file from the start, even if nothing else follows.
        taker.assign_vcpus(address.vm.as_ref().map_or(&[], |vm| &vm.vcpus));
        taker.write().map_err(RecordError::io("write", &to))?;
        let stop = stop.clone();
        let pid = address.vm.as_ref().map(|vm| vm.pid);
        let task = Task::spawn("module".into(), Confined::Reader, move || taker.run(&stop))
            .map_err(RecordError::io("start a thread for", &path))?;
        Ok(RecordedModule { name: address.name, file, memory: path, pid, counts, task })
    }
}

/// A guest whose module's frames are read.
#[derive(Debug)]
pub(crate) struct RecordedModule {
    name: String,
    file: String,
    memory: PathBuf,
    pid: Option<u32>,
    counts: Arc<Counts>,
    task: Task<io::Result<(Option<NoFrames>, Taker)>>,
}

#[derive(Debug, Default)]
struct Counts {
    cpus: AtomicU64,
    frames: AtomicU64,
    missed: AtomicU64,
    damage: AtomicU64,
    bytes: AtomicU64,
}

impl RecordedModule {
    /// Size of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.counts.bytes.load(Ordering::Relaxed)
    }

    /// Waits for the end, which the signal began, until the deadline.
    pub(crate) fn end(self, until: Deadline) -> ModuleSummary {
        let ended = match self.task.end(Wait::until(until)) {
            Outcome::Done(ended) => ended.and_then(|(why, mut taker)| {
                taker.assign_vcpus(&self.pid.and_then(vms::vm_of).unwrap_or_default());
                taker.write()?;
                Ok(why)
            }),
            Outcome::Panicked => Err(io::Error::other("its thread panicked")),
            Outcome::StillBusy => Err(io::Error::other("its thread did not end in time")),
        };
        let fault = match ended {
            Ok(None) => None,
            Ok(Some(why)) => Some(why.to_string()),
            Err(error) => Some(format!("writing its events stopped early: {error}")),
        };
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counts { cpus, frames, missed, damage, bytes } = &*self.counts;
        ModuleSummary {
            name: self.name,
            file: self.file,
            memory: self.memory,
            pid: self.pid,
            cpus: count(cpus),
            frames: count(frames),
            frames_missed: count(missed),
            damage: count(damage),
            bytes: count(bytes),
            faults: fault.into_iter().collect(),
        }
    }
}

/// Adds a frame to the file.
fn keep(writer: &mut StoredWriter, counts: &Counts, cpu: u16, frame: &Frame) {
    let words = FrameWords::new(frame.filled, frame.words, frame.is_whole);
    writer.frame(cpu, frame.position, &words);
    counts.frames.fetch_add(1, Ordering::Relaxed);
}

/// Reads frames from a guest's memory.
#[derive(Debug)]
struct Taker {
    map: Arc<SharedMap>,
    rings: Vec<FrameRing>,
    from: TakeFrom,
    writer: StoredWriter,
    out: OutFile,
    /// Max size of the file.
    quota: u64,
    counts: Arc<Counts>,
}

impl Taker {
    /// Reads until the stop signal. Returns why there were no frames, if so, and itself, so that the caller can add the
    /// clock relation: this thread may not read it.
    fn run(mut self, stop: &Signal) -> io::Result<(Option<NoFrames>, Self)> {
        loop {
            let is_over = stop.wait(LOOKS);
            let attached = self.attach();
            self.take()?;
            if !is_over {
                continue;
            }
            self.last()?;
            return Ok((attached.err(), self));
        }
    }

    /// Attaches once the module is loaded: it may be loaded after the recorder starts.
    fn attach(&mut self) -> std::result::Result<(), NoFrames> {
        if self.rings.is_empty() {
            let rings = frame_rings(&self.map, self.from);
            self.from = TakeFrom::Oldest;
            self.rings = rings?;
            self.counts.cpus.store(self.rings.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Reads frames of all CPUs in turn.
    fn take(&mut self) -> io::Result<()> {
        let mut rings = std::mem::take(&mut self.rings);
        for (cpu, ring) in (0_u16..).zip(&mut rings) {
            // Checked for each CPU: the guest chooses the number of CPUs.
            let is_full = self.counts.bytes.load(Ordering::Relaxed) >= self.quota;
            // A guest that never pauses is read again soon enough.
            for frame in std::iter::from_fn(|| ring.take()).take(MAX_AT_ONCE) {
                if is_full {
                    self.counts.missed.fetch_add(1, Ordering::Relaxed);
                } else {
                    keep(&mut self.writer, &self.counts, cpu, &frame);
                }
            }
            self.write()?;
        }
        self.rings = rings;
        Ok(())
    }

    /// Reads the remaining frames, including unfinished ones, and reports errors.
    fn last(&mut self) -> io::Result<()> {
        let mut missed = 0;
        for (cpu, ring) in (0_u16..).zip(&mut self.rings) {
            if let Some(frame) = ring.take_open() {
                keep(&mut self.writer, &self.counts, cpu, &frame);
            }
            if ring.damage() > 0 {
                self.writer.damage(cpu, ring.damage());
                self.counts.damage.fetch_add(ring.damage(), Ordering::Relaxed);
            }
            missed += ring.missed();
        }
        self.counts.missed.fetch_add(missed, Ordering::Relaxed);
        self.write()
    }

    /// Notes the relation of the vCPUs' TSCs to the host's, from KVM.
    fn assign_vcpus(&mut self, vcpus: &[Vcpu]) {
        for vcpu in vcpus {
            let (Ok(cpu), Some(sample)) = (u16::try_from(vcpu.vcpu), to_host(vcpu, 0)) else {
                continue;
            };
            let (scaling, offset) = (sample.scaling, sample.offset);
            let fraction = u8::try_from(sample.fraction).unwrap_or(0);
            self.writer.relation(cpu, ToHost { scaling, fraction, offset });
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let bytes = self.writer.take();
        self.out.write_all(&bytes)?;
        self.counts.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn nobody_waits_for_a_module_whose_thread_does_not_end() {
        let busy = Signal::new().unwrap();
        let held = busy.clone();
        let task = Task::spawn("held".into(), Confined::Reader, move || {
            held.wait(Duration::from_secs(600));
            Err(io::ErrorKind::Other.into())
        });
        let counts = Arc::new(Counts::default());
        counts.frames.store(7, Ordering::Relaxed);
        let recorded = RecordedModule {
            name: "web".into(),
            file: "guest-web.hypertrace".into(),
            memory: "/dev/shm/web".into(),
            pid: None,
            counts,
            task: task.unwrap(),
        };
        let start = Instant::now();
        let summary = recorded.end(Deadline::after(Duration::from_millis(50)));
        assert!(start.elapsed() < Duration::from_secs(60));
        assert_eq!(summary.frames, 7);
        assert!(summary.faults[0].contains("did not end in time"), "{:?}", summary.faults);
        busy.set();
    }
}
