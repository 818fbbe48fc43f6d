//! The kernel's trace of only one VM's vCPU threads.

use ftrace::eventfmt::EventFormat;
use ftrace::ringbuf::PageLayout;
use raw_bytes::{Abi, ByteOrder, LongSize};
use sources::FormatTable;
use timeline::cycles::VcpuCycles;
use timeline::reasons::ReasonNames;
use timeline::trace_events::{LiveTraceEvents, TraceEventSink};
use tracefs::{RawPages, Texts, TraceRequest, TraceSession, Tracefs};
use vms::Vm;

use crate::error::{PublishError, Result};

/// Events of exits and entries. `kvm_vcpu_wakeup` is not among them: its duration is in nanoseconds, which can't be
/// matched to ticks.
const EVENTS: [&str; 2] = ["kvm:kvm_exit", "kvm:kvm_entry"];
/// Recorded if the kernel has them.
const OPTIONAL: [&str; 9] = [
    "kvm:kvm_userspace_exit",
    "kvm:kvm_fpu",
    "kvm:kvm_nested_vmenter",
    "kvm:kvm_nested_vmrun",
    "kvm:kvm_nested_vmenter_failed",
    "kvm:kvm_nested_vmexit",
    "kvm:kvm_nested_vmexit_inject",
    "sched:sched_switch",
    "sched:sched_waking",
];
/// Size of each CPU's buffer: one VM's events, for an interval or two.
const BUFFER_KIB: u64 = 2048;

/// A running trace.
#[derive(Debug)]
pub(crate) struct Trace {
    // Drop order: pages hold files of the instance.
    pages: Vec<(u32, RawPages)>,
    session: TraceSession,
    live: LiveTraceEvents,
    page: Vec<u8>,
    read: u64,
}

impl Trace {
    /// Starts tracing the vCPU threads of a VM. `is_first`: the first trace of this process.
    pub(crate) fn begin(vm: &Vm, is_first: bool) -> Result<(Self, ReasonNames)> {
        let wanted = EVENTS.map(str::to_owned);
        let session = TraceSession::set_up(
            Tracefs::find()?,
            &TraceRequest {
                events: &wanted,
                optional: OPTIONAL.to_vec(),
                buffer_kib: Some(BUFFER_KIB),
                is_another: !is_first,
                ..TraceRequest::default()
            },
        )?;
        if session.clock().name != "x86-tsc" {
            let why = "this host's kernel has no trace clock for the TSC, or does not trust it";
            return Err(PublishError::NoClock { vm: vm.name.clone(), why });
        }
        let (formats, abi) = (formats(session.texts())?, abi());
        let names = ReasonNames::of_formats(&formats, abi);
        let page_size = session.texts().page_size() as usize;
        let layout = PageLayout { order: abi.order, commit: abi.long, page_size };
        let cpus = session.cpus();
        let open = |&cpu: &u32| Ok((cpu, session.raw_pages(cpu)?));
        let pages = cpus.iter().map(open).collect::<Result<Vec<_>>>()?;
        let live = LiveTraceEvents::new(&formats, layout, cpus.len(), |format| {
            VcpuCycles::wanted(format, false)
        });
        // Before any event is enabled, so that no event of another VM's threads is recorded.
        let threads = vm.vcpus.iter().map(|vcpu| vcpu.tid.to_string());
        session.only_threads(&threads.collect::<Vec<_>>().join(" "))?;
        session.enable_events()?;
        session.on()?;
        let page = vec![0; page_size];
        Ok((Self { pages, session, live, page, read: 0 }, names))
    }

    /// Reads the kernel's buffers, and passes events before `until` to `sink`.
    pub(crate) fn take(&mut self, until: u64, sink: &mut impl TraceEventSink) -> Result<()> {
        for (index, (cpu, pages)) in self.pages.iter_mut().enumerate() {
            // Bounds the reads if a buffer fills as fast as it is read.
            let max = 2 * (BUFFER_KIB as usize * 1024) / self.page.len().max(1);
            let cpu = u16::try_from(*cpu).unwrap_or(u16::MAX);
            for _ in 0..max {
                if !pages.read_page(&mut self.page).map_err(PublishError::Pages)? {
                    break;
                }
                self.live.page(index, cpu, &self.page);
                self.read += 1;
            }
        }
        self.live.give(until, sink);
        Ok(())
    }

    /// Pages read so far.
    pub(crate) fn pages_read(&self) -> u64 {
        self.read
    }

    /// Events that the kernel dropped, and those that came too late for the right order.
    pub(crate) fn lost(&self) -> u64 {
        let cpus = self.pages.iter().map(|(cpu, _)| *cpu);
        let lost = cpus.filter_map(|cpu| Some(self.session.stats(cpu).ok()?.0.events()));
        lost.sum::<u64>().max(self.live.lost()).saturating_add(self.live.late())
    }

    /// Frequency of the host's TSC.
    pub(crate) fn ticks_per_second(&self) -> Option<u64> {
        let conversion = self.session.clock().tsc_conversion?;
        let per_second = 1_000_000_000_u128.checked_shl(conversion.shift)?;
        u64::try_from(per_second.checked_div(conversion.mult.into())?).ok()
    }
}

fn abi() -> Abi {
    Abi {
        order: if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little },
        long: if cfg!(target_pointer_width = "64") { LongSize::Eight } else { LongSize::Four },
    }
}

fn formats(texts: &Texts) -> Result<FormatTable> {
    let parse = |event: &tracefs::EventText| {
        EventFormat::parse(&event.system, event.text.as_bytes())
            .map_err(|error| PublishError::Format(error.to_string()))
    };
    texts.events.iter().map(parse).collect()
}
