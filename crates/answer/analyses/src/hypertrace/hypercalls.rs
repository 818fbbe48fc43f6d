//! Hypercalls in the collectors' files, merged by time.

use std::fmt;
use std::iter::Peekable;

use ::hypertrace::collected::Hypercall;
use sources::{Collected, Recording};

use super::VcpuThread;

type OfOneCollector<'c> = Peekable<Box<dyn Iterator<Item = (Option<u64>, Hypercall)> + Send + 'c>>;

pub(super) struct Hypercalls<'c>(Vec<(u16, OfOneCollector<'c>)>);

impl<'c> Hypercalls<'c> {
    /// Opens the collectors' files of `recordings`.
    pub(super) fn new(recordings: &'c [Recording], collected: &'c [Option<Collected>]) -> Self {
        let all = (0_u16..).zip(recordings).zip(collected);
        let of_collector =
            |((at, recording), collected): ((u16, &'c Recording), &'c Option<Collected>)| {
                let hypercalls: Box<dyn Iterator<Item = _> + Send + 'c> =
                    Box::new(collected.as_ref()?.hypercalls(recording));
                Some((at, hypercalls.peekable()))
            };
        Self(all.filter_map(of_collector).collect())
    }

    /// Whether a recording has a collector's file.
    pub(super) fn has(&self, recording: u16) -> bool {
        self.0.iter().any(|(at, _)| *at == recording)
    }

    /// The earliest hypercall up to `now_ns`; hypercalls without a time come immediately.
    pub(super) fn next_until(
        &mut self,
        now_ns: u64,
    ) -> Option<(VcpuThread, Option<u64>, Hypercall)> {
        let next = |(at, collector): (usize, &mut (u16, OfOneCollector<'c>))| {
            Some((collector.1.peek()?.0.unwrap_or(0), at))
        };
        let (stamp_ns, at) = self.0.iter_mut().enumerate().filter_map(next).min()?;
        if stamp_ns > now_ns {
            return None;
        }
        let (recording, hypercalls) = self.0.get_mut(at)?;
        let (stamp_ns, hypercall) = hypercalls.next()?;
        let from = VcpuThread { recording: *recording, thread: hypercall.thread };
        Some((from, stamp_ns, hypercall))
    }
}

impl fmt::Debug for Hypercalls<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(at, _)| at)).finish()
    }
}
