//! A guest's samples, in files next to its recording: a perf.data, its clock readings, and the kernel code around the
//! samples.
//!
//! The content is not checked here. A part that does not follow the previous one ends its file: bytes after a gap would
//! look like damage.

use std::io::Write;

use channel::wire::{
    CodePiece, GuestHello, Message, SampleEvent, SampleFile, SamplePart, SampleRequest, SamplesEnd,
};
use os::folder::{Folder, OutFile};
use sampler::SampledEvent;
use session_json::SamplerSummary;

use crate::error::{RecordError, Result};
use crate::guest::GuestFiles;
use crate::hyperscope_agent::kernel_code::{self, GuestCode};
use crate::samples::Sampling;

/// Valid event names in a guest's message.
const EVENTS: [&str; 2] = [SampledEvent::Cycles.name(), SampledEvent::CpuClock.name()];

/// A file that arrives in parts.
#[derive(Debug)]
struct Arriving {
    name: String,
    file: OutFile,
    written: u64,
    /// Why nothing more is written to it.
    ended: Option<String>,
    /// Bytes dropped since, or never received.
    missing: u64,
}

/// The sample files of a guest.
#[derive(Debug)]
pub(crate) struct GuestSamples {
    sampling: Sampling,
    samples: Arriving,
    clocks: Arriving,
    code: Option<GuestCode>,
    end: Option<SamplesEnd>,
}

/// The result of sampling a guest.
#[derive(Debug)]
pub(crate) struct GuestSampled {
    pub(crate) summary: SamplerSummary,
    pub(crate) faults: Vec<String>,
}

impl GuestSamples {
    /// Makes the files of a guest in a session.
    pub(crate) fn new(
        sampling: Sampling,
        session: &Folder,
        guest: &str,
        hello: &GuestHello,
    ) -> Result<Self> {
        let [samples, clocks] = names(guest);
        Ok(Self {
            sampling,
            samples: Arriving::new(session, samples)?,
            clocks: Arriving::new(session, clocks)?,
            code: GuestCode::new(session, guest, hello)?,
            end: None,
        })
    }

    /// The requests for samples and code.
    pub(crate) fn requests(&self) -> Vec<Message> {
        let event = match self.sampling.event {
            None => SampleEvent::Best,
            Some(SampledEvent::Cycles) => SampleEvent::Cycles,
            Some(SampledEvent::CpuClock) => SampleEvent::CpuClock,
        };
        let samples = Message::Sample(SampleRequest { hz: self.sampling.hz, event });
        [samples].into_iter().chain(self.code.as_ref().map(|_| GuestCode::request())).collect()
    }

    /// Adds a part, and reserves quota for it.
    pub(crate) fn take(&mut self, part: &SamplePart, files: &GuestFiles) {
        let to = match part.file {
            SampleFile::Samples => &mut self.samples,
            SampleFile::Clocks => &mut self.clocks,
        };
        to.take(part, files);
    }

    /// Adds a piece of kernel code.
    pub(crate) fn take_code(&mut self, piece: &CodePiece, files: &GuestFiles) {
        if let Some(code) = &mut self.code {
            code.take(piece, files);
        }
    }

    pub(crate) fn end(&mut self, end: SamplesEnd) {
        self.end.get_or_insert(end);
    }

    /// The result, after the last part.
    pub(crate) fn finish(mut self) -> GuestSampled {
        let mut faults = Vec::new();
        let silent = self.end.is_none() && self.samples.written == 0;
        let is_cut = self.end.is_none() && !silent;
        let samples = self.end.as_ref().map(|end| end.samples);
        let ended = self.end.is_some();
        let (code, fault) = self.code.map_or((None, None), |code| code.finish(ended));
        faults.extend(fault);
        let end = self.end.unwrap_or_default();
        self.samples.expect(end.sample_bytes);
        if silent {
            faults.push("it sends no samples: its agent is too old".to_owned());
        }
        if is_cut {
            faults.push("its samples end early".to_owned());
        }
        faults.extend(end.fault.map(|why| format!("its samples: {why}")));
        for file in [&self.samples, &self.clocks] {
            let why = file.ended.as_deref().unwrap_or("they are missing");
            let missing = || format!("{} bytes of {} are missing: {why}", file.missing, file.name);
            faults.extend((file.missing > 0).then(missing));
        }
        let summary = SamplerSummary {
            bytes: self.samples.written.saturating_add(self.clocks.written),
            file: self.samples.name,
            clock_file: self.clocks.name,
            code,
            event: EVENTS.into_iter().find(|name| *name == end.event).map(str::to_owned),
            hz: self.sampling.hz,
            samples,
            // The guest's count does not include samples that did not arrive.
            lost: end.lost.filter(|_| !is_cut && self.samples.missing == 0),
            throttled: end.throttled,
            earlier: None,
        };
        GuestSampled { summary, faults }
    }
}

impl Arriving {
    fn new(session: &Folder, name: String) -> Result<Self> {
        let file = session.create_new(&name);
        let file = file.map_err(RecordError::io("make", &session.path().join(&name)))?;
        Ok(Self { name, file, written: 0, ended: None, missing: 0 })
    }

    fn take(&mut self, part: &SamplePart, files: &GuestFiles) {
        let bytes = part.bytes.len() as u64;
        if self.ended.is_none() && part.offset != self.written {
            self.ended = Some("a part is missing".into());
            self.missing = part.offset.saturating_sub(self.written);
        }
        if self.ended.is_none() && !files.take_quota(bytes) {
            self.ended = Some("they exceed the guest's quota (--guest-quota)".into());
        }
        if self.ended.is_none()
            && let Err(error) = self.file.write_all(&part.bytes)
        {
            self.ended = Some(error.to_string());
        }
        match self.ended {
            None => self.written = self.written.saturating_add(bytes),
            Some(_) => self.missing = self.missing.saturating_add(bytes),
        }
    }

    /// Notes the total number of bytes that the guest sent.
    fn expect(&mut self, bytes: u64) {
        self.missing = self.missing.max(bytes.saturating_sub(self.written));
    }
}

/// Removes the files of a guest whose recording did not begin.
pub(crate) fn forget(session: &Folder, guest: &str) {
    for name in names(guest) {
        let _ = session.remove(&name);
    }
    forget_code(session, guest);
}

/// Removes the code file, which is empty if no code arrived.
pub(crate) fn forget_code(session: &Folder, guest: &str) {
    let _ = session.remove(&kernel_code::name(guest));
}

fn names(guest: &str) -> [String; 2] {
    ["data", "clock"].map(|kind| format!("guest-{guest}.{kind}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use os::confine::Unconfined;
    use os::folder::Modes;

    use super::*;
    use crate::guest::PageShape;

    struct Setup {
        at: tempfile::TempDir,
        files: GuestFiles,
        samples: GuestSamples,
    }

    fn hello() -> GuestHello {
        GuestHello { long_bytes: 8, ..GuestHello::default() }
    }

    fn setup(quota: u64) -> Setup {
        let at = tempfile::tempdir().unwrap();
        let to = Folder::open(at.path(), Modes::default()).unwrap();
        let shape = PageShape { bytes: 4096, long_bytes: 8, big_endian: false };
        let opener = Unconfined::start("opens").unwrap();
        let files = GuestFiles::new((to.clone(), opener), 1, shape, quota);
        let sampling = Sampling { hz: 397, event: None };
        let samples = GuestSamples::new(sampling, &to, "web", &hello()).unwrap();
        Setup { at, files, samples }
    }

    fn part(offset: u64, bytes: &[u8]) -> SamplePart {
        SamplePart { file: SampleFile::Samples, offset, bytes: bytes.to_vec() }
    }

    fn end(sample_bytes: u64) -> SamplesEnd {
        SamplesEnd { samples: 2, lost: Some(0), sample_bytes, ..SamplesEnd::default() }
    }

    #[test]
    fn parts_become_files() {
        let Setup { at, files, mut samples } = setup(1 << 20);
        let clock = SamplePart { file: SampleFile::Clocks, ..part(0, b"clock") };
        [part(0, b"one"), clock, part(3, b"two")]
            .iter()
            .for_each(|part| samples.take(part, &files));
        samples.end(end(6));
        let GuestSampled { summary, faults } = samples.finish();
        assert_eq!((summary.bytes, summary.lost, faults.len()), (11, Some(0), 0), "{faults:?}");
        assert_eq!(fs::read(at.path().join("guest-web.data")).unwrap(), b"onetwo");
        assert_eq!(fs::read(at.path().join("guest-web.clock")).unwrap(), b"clock");
    }

    #[test]
    fn a_part_that_does_not_come_ends_the_file_and_is_reported() {
        let Setup { at, files, mut samples } = setup(1 << 20);
        [part(0, b"one"), part(6, b"three")].iter().for_each(|part| samples.take(part, &files));
        samples.end(end(11));
        let GuestSampled { summary, faults } = samples.finish();
        assert_eq!(fs::read(at.path().join("guest-web.data")).unwrap(), b"one");
        assert_eq!(summary.lost, None);
        assert!(
            faults.iter().any(|fault| fault.contains("8 bytes of guest-web.data")),
            "{faults:?}"
        );
    }

    #[test]
    fn a_guest_gets_no_more_than_its_quota() {
        let Setup { at, files, mut samples } = setup(4);
        [part(0, b"one"), part(3, b"two"), part(6, b"x")]
            .iter()
            .for_each(|part| samples.take(part, &files));
        let GuestSampled { faults, .. } = samples.finish();
        assert_eq!(fs::read(at.path().join("guest-web.data")).unwrap(), b"one");
        assert!(faults.iter().any(|fault| fault.contains("--guest-quota")), "{faults:?}");
    }

    fn piece(before: u32, address: u64, bytes: &[u8]) -> CodePiece {
        CodePiece { before, elf_machine: 62, address, bytes: bytes.to_vec() }
    }

    /// The content of the code file after these pieces, and its description.
    fn store_pieces(quota: u64, pieces: &[CodePiece]) -> (Vec<u8>, Option<u64>, Vec<String>) {
        let Setup { at, files, mut samples } = setup(quota);
        pieces.iter().for_each(|piece| samples.take_code(piece, &files));
        samples.end(end(0));
        let GuestSampled { summary, faults } = samples.finish();
        let file = fs::read(at.path().join("guest-web.kcore")).unwrap();
        (file, summary.code.map(|code| code.bytes), faults)
    }

    fn elf(runs: &[(u64, &[u8])]) -> Vec<u8> {
        let mut code = sampler::KeptCode::new(62, raw_bytes::ByteOrder::Little);
        runs.iter().for_each(|(address, bytes)| code.push(*address, bytes).unwrap());
        code.to_elf()
    }

    #[test]
    fn pieces_of_code_become_a_file() {
        let pieces =
            [piece(0, 16, b"ab"), piece(1, 18, b"c"), piece(2, 64, b"d"), piece(3, 0, b"")];
        let (file, bytes, faults) = store_pieces(1 << 20, &pieces);
        assert_eq!(file, elf(&[(16, b"abc"), (64, b"d")]));
        assert_eq!((bytes, faults), (Some(file.len() as u64), vec![]));
        // An agent that sends no code.
        assert_eq!(store_pieces(1 << 20, &[]), (vec![], None, vec![]));
    }

    #[test]
    fn pieces_that_were_not_asked_for_end_the_code_and_are_reported() {
        let long = vec![7; channel::wire::MAX_CODE_BYTES];
        let many: Vec<_> = (0..1025).map(|at| piece(at, u64::from(at) * 2, b"x")).collect();
        let large = (0..200).map(|at| piece(at, u64::from(at) << 16, &long)).collect();
        let other = CodePiece { elf_machine: 183, ..piece(1, 32, b"b") };
        let cases = [
            (vec![piece(0, 16, b"a"), piece(2, 32, b"b")], 1, "is missing"),
            (vec![piece(0, 16, b"a"), piece(1, 16, b"b")], 1, "overlap"),
            (vec![piece(0, 16, b"a"), piece(1, u64::MAX, b"b")], 1, "last address"),
            (vec![piece(0, 16, b"a"), other], 1, "different kinds"),
            (vec![piece(0, 16, b"a")], 1, "ends early"),
            (many, 1024, "more than requested"),
            (large, (4 << 20) / channel::wire::MAX_CODE_BYTES, "more than requested"),
        ];
        for (pieces, count, why) in cases {
            let (file, _, faults) = store_pieces(64 << 20, &pieces);
            let runs: Vec<_> =
                pieces[..count].iter().map(|piece| (piece.address, &piece.bytes[..])).collect();
            assert_eq!(file, elf(&runs), "{why}");
            assert!(faults.len() == 1 && faults[0].contains(why), "{why}: {faults:?}");
        }
    }

    #[test]
    fn code_counts_as_what_a_guest_may_send() {
        let (file, _, faults) = store_pieces(3, &[piece(0, 16, b"ab"), piece(1, 32, b"cd")]);
        assert_eq!(file, elf(&[(16, b"ab")]));
        assert!(faults.iter().any(|fault| fault.contains("--guest-quota")), "{faults:?}");
    }

    #[test]
    fn code_that_nobody_reads_is_not_asked_for() {
        let at = tempfile::tempdir().unwrap();
        let to = Folder::open(at.path(), Modes::default()).unwrap();
        let sampling = Sampling { hz: 397, event: None };
        let request_count =
            |name, hello| GuestSamples::new(sampling, &to, name, &hello).unwrap().requests().len();
        assert_eq!(request_count("a", hello()), 2);
        assert_eq!(request_count("b", GuestHello { big_endian: true, ..hello() }), 1);
        assert_eq!(request_count("c", GuestHello { long_bytes: 4, ..hello() }), 1);
    }

    #[test]
    fn an_agent_that_knows_no_samples_is_reported() {
        let Setup { samples, .. } = setup(1 << 20);
        let faults = samples.finish().faults;
        assert!(faults.iter().any(|fault| fault.contains("too old")), "{faults:?}");
    }
}
