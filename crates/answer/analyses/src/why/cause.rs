//! Causes of slowness by their ids, which are a contract with scripts, and what usually helps.

use crate::advice::{Amount, Fact};
use crate::longest_span::LongestSpan;

/// A cause. Its name in documents is a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CauseId {
    GuestCode,
    GuestLock,
    GuestIrqOff,
    VcpuPreempted,
    CpuQuota,
    VcpusShareCpu,
    VmmLock,
    VmmDevice,
    VmmThreadLate,
    BackendSlow,
    VhostLate,
    ExitStorm,
    LegacyDevice,
    SerialConsole,
    TimerTicks,
    HaltWakeup,
    HaltPollBurn,
    PauseLoop,
    IpiStorm,
    TlbShootdown,
    PageFault,
    HostIrq,
    NestedExits,
    ClockSource,
    Recorder,
    /// Nothing is wrong.
    None,
}

use CauseId as C;

impl CauseId {
    /// All causes.
    pub const ALL: [Self; 26] = [
        C::GuestCode,
        C::GuestLock,
        C::GuestIrqOff,
        C::VcpuPreempted,
        C::CpuQuota,
        C::VcpusShareCpu,
        C::VmmLock,
        C::VmmDevice,
        C::VmmThreadLate,
        C::BackendSlow,
        C::VhostLate,
        C::ExitStorm,
        C::LegacyDevice,
        C::SerialConsole,
        C::TimerTicks,
        C::HaltWakeup,
        C::HaltPollBurn,
        C::PauseLoop,
        C::IpiStorm,
        C::TlbShootdown,
        C::PageFault,
        C::HostIrq,
        C::NestedExits,
        C::ClockSource,
        C::Recorder,
        C::None,
    ];

    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            C::GuestCode => "guest_code",
            C::GuestLock => "guest_lock",
            C::GuestIrqOff => "guest_irq_off",
            C::VcpuPreempted => "vcpu_preempted",
            C::CpuQuota => "cpu_quota",
            C::VcpusShareCpu => "vcpus_share_cpu",
            C::VmmLock => "vmm_lock",
            C::VmmDevice => "vmm_device",
            C::VmmThreadLate => "vmm_thread_late",
            C::BackendSlow => "backend_slow",
            C::VhostLate => "vhost_late",
            C::ExitStorm => "exit_storm",
            C::LegacyDevice => "legacy_device",
            C::SerialConsole => "serial_console",
            C::TimerTicks => "timer_ticks",
            C::HaltWakeup => "halt_wakeup",
            C::HaltPollBurn => "halt_poll_burn",
            C::PauseLoop => "pause_loop",
            C::IpiStorm => "ipi_storm",
            C::TlbShootdown => "tlb_shootdown",
            C::PageFault => "page_fault",
            C::HostIrq => "host_irq",
            C::NestedExits => "nested_exits",
            C::ClockSource => "clock_source",
            C::Recorder => "recorder",
            C::None => "none",
        }
    }

    /// What happens, after the name of the VM.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            C::GuestCode => "the guest's own code uses the whole CPU time",
            C::GuestLock => "guest threads wait for a lock",
            C::GuestIrqOff => "the guest runs for long with interrupts off",
            C::VcpuPreempted => "other threads run while vCPUs could run",
            C::CpuQuota => "a CPU quota throttles the vCPUs",
            C::VcpusShareCpu => "vCPUs take turns on the same CPU",
            C::VmmLock => "vCPUs sleep in the VMM until another thread lets them go on",
            C::VmmDevice => "the VMM emulates a device that the guest uses often",
            C::VmmThreadLate => "threads of the VMM wait for a CPU",
            C::BackendSlow => "the storage below a virtual disk is slow",
            C::VhostLate => "vhost workers wait for a CPU",
            C::ExitStorm => "the guest executes an instruction that exits, again and again",
            C::LegacyDevice => "the guest uses an old PC device by port I/O",
            C::SerialConsole => "the guest writes to the serial console",
            C::TimerTicks => "the guest sets timers often",
            C::HaltWakeup => "short halts: the vCPU sleeps and is woken at once",
            C::HaltPollBurn => "the host polls for work that does not come",
            C::PauseLoop => "vCPUs spin for a lock whose holder does not run",
            C::IpiStorm => "vCPUs send many interrupts to one another",
            C::TlbShootdown => "vCPUs make one another flush their TLBs",
            C::PageFault => "the host maps guest memory page by page",
            C::HostIrq => "interrupts of the host stop the guest",
            C::NestedExits => "exits of a nested guest cost several exits each",
            C::ClockSource => "the guest reads a clock that exits",
            C::Recorder => "the recording itself takes the CPUs",
            C::None => "nothing is wrong",
        }
    }

    /// Settings and changes that usually help, the likeliest first.
    #[must_use]
    pub const fn helps(self) -> &'static [&'static str] {
        match self {
            C::GuestCode => &[
                "profile the guest: the host has nothing left to give but a faster CPU or more vCPUs",
            ],
            C::GuestLock => {
                &["look for the lock in the guest: perf lock, or offcputime in the guest"]
            }
            C::GuestIrqOff => {
                &["trace the guest with irqsoff; look for drivers and long critical sections"]
            }
            C::VcpuPreempted => &[
                "pin vCPUs to CPUs of their own (cpuset, libvirt vcpupin) and move the other threads away",
                "raise the VM's cpu.weight",
            ],
            C::CpuQuota => &[
                "raise or remove cpu.max of the VM's cgroup (libvirt: vcpu_quota, Kubernetes: limits.cpu)",
            ],
            C::VcpusShareCpu => &["give each vCPU a CPU of its own, or use fewer vCPUs"],
            C::VmmLock => {
                &["move the device that holds the VMM's lock to an iothread, or to vhost"]
            }
            C::VmmDevice => &[
                "use a virtio device with ioeventfd, an iothread or vhost, so that the vCPU need not wait for the VMM",
            ],
            C::VmmThreadLate => {
                &["give the VMM's threads (emulatorpin, iothreadpin) CPUs that are not fully used"]
            }
            C::BackendSlow => &[
                "check the host's storage, its queue depth and throttling limits (iotune, io.max)",
            ],
            C::VhostLate => &["pin vhost workers to CPUs that are not fully used"],
            C::ExitStorm => &["find the code that executes it: hyperscope exits --by reason,rip"],
            C::LegacyDevice => {
                &["use a virtio device instead; remove unused devices (-nodefaults)"]
            }
            C::SerialConsole => {
                &["use virtio-console (console=hvc0), or log less (quiet, loglevel=)"]
            }
            C::TimerTicks => {
                &["use fewer or longer timers: NO_HZ, a lower HZ, longer sleeps in programs"]
            }
            C::HaltWakeup => &[
                "let the host poll (kvm halt_poll_ns) or the guest (cpuidle_haltpoll); for dedicated CPUs: cpu-pm=on",
            ],
            C::HaltPollBurn => &["lower kvm's halt_poll_ns, or set it to 0"],
            C::PauseLoop => &["use fewer vCPUs or more CPUs; kvm-pv-unhalt lets waiters halt"],
            C::IpiStorm => &[
                "keep communicating threads on one vCPU; use a CPU with posted interrupts (APICv, AVIC)",
            ],
            C::TlbShootdown => &["unmap memory less often, or in larger pieces; kvm-pv-tlb-flush"],
            C::PageFault => &[
                "back the guest with huge pages, or allocate its memory before it starts (prealloc)",
            ],
            C::HostIrq => &[
                "move interrupts to other CPUs (smp_affinity, irqbalance), nohz_full for the vCPUs' CPUs",
            ],
            C::NestedExits => &[
                "let the nested guest exit less: virtio, huge pages, fewer timers; or run it at level 1",
            ],
            C::ClockSource => &["use clocksource=kvm-clock or tsc in the guest"],
            C::Recorder => {
                &["record fewer events; write the recording to memory or to another machine"]
            }
            C::None => &[],
        }
    }

    /// The verb that shows more, with its options; files come after it.
    #[must_use]
    pub const fn next(self) -> &'static str {
        match self {
            C::GuestCode | C::GuestLock | C::GuestIrqOff => "profile",
            C::VcpuPreempted | C::CpuQuota | C::VcpusShareCpu | C::Recorder => {
                "cpu --by taken,vcpu"
            }
            C::VmmLock | C::VmmDevice => "vmm",
            C::VmmThreadLate | C::VhostLate => "cpu --by thread",
            C::BackendSlow => "path",
            C::LegacyDevice | C::SerialConsole | C::ClockSource => "exits --by reason,port,gpa",
            C::TimerTicks | C::IpiStorm | C::TlbShootdown => "exits --by reason,msr",
            C::ExitStorm | C::PauseLoop | C::PageFault => "exits --by reason,vcpu",
            C::HaltWakeup | C::HaltPollBurn => "exits --by vcpu,reason",
            C::HostIrq => "irqs",
            C::NestedExits => "nested",
            C::None => "report",
        }
    }
}

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    pub fact: Fact,
    /// From when to when, on the host's clock; none for sums.
    pub span_ns: Option<(u64, u64)>,
}

/// A cause of a VM's slowness.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    pub id: CauseId,
    pub vm: String,
    /// The vCPU, if the cause concerns only one of several.
    pub vcpu: Option<u32>,
    /// The time that it cost the VM's vCPUs.
    pub cost_ns: u64,
    /// `cost_ns` as a share of the vCPUs' time, 0 to 1.
    pub share: f64,
    /// Probability that this is the cause, 0 to 1; see docs/why.md for how it was calibrated.
    pub confidence: f64,
    /// What was measured, the strongest first.
    pub evidence: Vec<Evidence>,
    /// What the recording cannot exclude.
    pub open: Option<&'static str>,
}

impl Cause {
    /// Adds a sum that was measured.
    pub(super) fn fact(mut self, what: impl Into<String>, amount: Amount) -> Self {
        self.evidence.push(Evidence { fact: Fact::new(what, amount), span_ns: None });
        self
    }

    /// Adds an instance, if there is one, with its time.
    pub(super) fn instance(mut self, what: impl Into<String>, longest: LongestSpan) -> Self {
        let span_ns = longest.span_ns();
        if let Some((from_ns, to_ns)) = span_ns {
            let fact = Fact::new(what, Amount::Time(to_ns.saturating_sub(from_ns)));
            self.evidence.push(Evidence { fact, span_ns });
        }
        self
    }

    /// Says what the recording cannot exclude.
    pub(super) fn open(mut self, open: &'static str) -> Self {
        self.open = Some(open);
        self
    }
}
