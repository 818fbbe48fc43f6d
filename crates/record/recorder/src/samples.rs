//! Samples of the host's CPUs, taken during a recording.

use std::collections::BTreeSet;

use os::folder::Folder;
use printable::with_causes;
use sampler::{EarlierMappings, Opened, SampleFiles, Sampled, SampledEvent, Sampler, SamplerPlan};
use session_json::{CodeSummary, EarlierSummary, SamplerSummary};
use vms::Vm;

use crate::error::RecordError;
use crate::task::EndingTask;

/// How to sample CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Samples per second and CPU.
    pub hz: u32,
    /// The event; `None`: the best available one.
    pub event: Option<SampledEvent>,
}

/// The files' names.
const FILE: &str = "host.data";
const CLOCK_FILE: &str = "host.clock";
const CODE_FILE: &str = "host.kcore";

/// Opens events on these CPUs, before the recording begins; `only`: keep only samples of that VM.
pub(crate) fn open(
    what: Sampling,
    cpus: &[u32],
    only: Option<&[Vm]>,
    clock: &str,
    trace_id: u64,
) -> crate::error::Result<Opened> {
    let Sampling { hz, event } = what;
    let only = only.map(|vms| vms.iter().flat_map(processes).collect());
    let plan = SamplerPlan { hz, event, clock: clock.to_owned(), trace_id, only };
    Ok(Opened::open(plan, cpus)?)
}

/// A VM's process, and the kernel threads that work for it.
fn processes(vm: &Vm) -> BTreeSet<u32> {
    let kernels_own = format!("vhost-{}", vm.pid);
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_its = |pid: &u32| {
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        comm.is_ok_and(|comm| comm.trim_end() == kernels_own)
    };
    // Since Linux 6.4 those are threads of the VM's own process.
    pids.filter(is_its).chain([vm.pid]).collect()
}

/// Starts sampling into the session's folder.
pub(crate) fn begin(opened: Opened, session: &Folder) -> crate::error::Result<Sampler> {
    let file = |name: &'static str| {
        session.create_new(name).map_err(RecordError::io("make", &session.path().join(name)))
    };
    let code = sampler::shows_kernel_code().then(|| file(CODE_FILE)).transpose()?;
    let files = SampleFiles { samples: file(FILE)?, clocks: file(CLOCK_FILE)?, code };
    Ok(opened.begin(files)?.wait_until_ready()?)
}

/// Removes the files of a recording that did not begin.
pub(crate) fn forget(session: &Folder) {
    let _ = session.remove(FILE);
    let _ = session.remove(CLOCK_FILE);
    let _ = session.remove(CODE_FILE);
}

/// Ends a sampler; `hz` is its rate.
pub(crate) fn end(sampler: Sampler, hz: u32) -> EndingTask<SamplerSummary> {
    EndingTask::begin("sampled", move || match sampler.end() {
        Ok(sampled) => Ok(summary(&sampled, hz)),
        Err(error) => Err(with_causes(&error)),
    })
}

fn summary(sampled: &Sampled, hz: u32) -> SamplerSummary {
    let &Sampled { event, samples, lost, throttled, earlier, bytes, code_bytes } = sampled;
    let EarlierMappings { files, build_ids, left_out } = earlier;
    let event = Some(event.name().to_owned());
    SamplerSummary {
        file: FILE.to_owned(),
        clock_file: CLOCK_FILE.to_owned(),
        bytes,
        code: (code_bytes > 0)
            .then(|| CodeSummary { file: CODE_FILE.to_owned(), bytes: code_bytes }),
        event,
        hz,
        samples: Some(samples),
        lost,
        throttled,
        earlier: Some(EarlierSummary { files, build_ids, left_out }),
    }
}
