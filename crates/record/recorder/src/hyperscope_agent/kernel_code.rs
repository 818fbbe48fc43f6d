//! The kernel code around a guest's samples, sent by its agent in pieces of memory and saved as an ELF file next to its
//! recording.
//!
//! The pieces are untrusted. They are accepted if they match the request: in order, none missing, and within the
//! limits. The reader of the file checks their content.

use std::io::Write;

use channel::wire::{CodePiece, CodeRequest, GuestHello, Message};
use os::folder::{Folder, OutFile};
use raw_bytes::ByteOrder;
use sampler::KeptCode;
use session_json::CodeSummary;

use crate::error::{RecordError, Result};
use crate::guest::GuestFiles;

/// Max bytes of a guest's code.
const MAX_BYTES: u32 = 4 << 20;
/// Max pieces: as many as the max bytes have pages, if none are adjacent.
const MAX_PIECES: u32 = MAX_BYTES / 4096;

/// Pieces received so far.
#[derive(Debug)]
pub(crate) struct GuestCode {
    name: String,
    file: OutFile,
    code: Option<KeptCode>,
    pieces: u32,
    /// Set once no more pieces are accepted: all have arrived, or the error.
    over: Option<std::result::Result<(), String>>,
}

impl GuestCode {
    /// Makes the file for a guest in a session; `None` for an architecture without an instruction decoder.
    pub(crate) fn new(session: &Folder, guest: &str, hello: &GuestHello) -> Result<Option<Self>> {
        if hello.big_endian || hello.long_bytes != 8 {
            return Ok(None);
        }
        let name = name(guest);
        let file = session.create_new(&name);
        let file = file.map_err(RecordError::io("make", &session.path().join(&name)))?;
        Ok(Some(Self { name, file, code: None, pieces: 0, over: None }))
    }

    /// The request.
    pub(crate) fn request() -> Message {
        Message::KeepCode(CodeRequest { pieces: MAX_PIECES, bytes: MAX_BYTES })
    }

    /// Adds a piece, and reserves quota for it.
    pub(crate) fn take(&mut self, piece: &CodePiece, files: &GuestFiles) {
        if self.over.is_none() {
            self.over = match self.took(piece, files) {
                Ok(()) => piece.bytes.is_empty().then_some(Ok(())),
                Err(why) => Some(Err(why)),
            };
        }
    }

    fn took(&mut self, piece: &CodePiece, files: &GuestFiles) -> std::result::Result<(), String> {
        if piece.before != self.pieces {
            return Err("a piece is missing".into());
        }
        if piece.bytes.is_empty() {
            return Ok(());
        }
        let code = self.code.get_or_insert(KeptCode::new(piece.elf_machine, ByteOrder::Little));
        let bytes = piece.bytes.len() as u64;
        if self.pieces >= MAX_PIECES || code.bytes().saturating_add(bytes) > MAX_BYTES.into() {
            return Err("it sends more than requested".into());
        }
        if code.elf_machine() != piece.elf_machine {
            return Err("the pieces come from different kinds of processors".into());
        }
        if !files.take_quota(bytes) {
            return Err("it exceeds the guest's quota (--guest-quota)".into());
        }
        code.push(piece.address, &piece.bytes).map_err(|error| error.to_string())?;
        self.pieces = self.pieces.saturating_add(1);
        Ok(())
    }

    /// Writes the file after the last piece; `ended`: the guest has finished sampling. Returns what was written, `None`
    /// if nothing arrived, and an error.
    pub(crate) fn finish(mut self, ended: bool) -> (Option<CodeSummary>, Option<String>) {
        let cut = || Err("it ends early".to_owned());
        let began = self.code.is_some();
        let over = self.over.unwrap_or_else(|| if began && ended { cut() } else { Ok(()) });
        let code = self.code.filter(|code| !code.is_empty());
        let elf = code.map(|code| code.to_elf());
        let written = elf.as_ref().map_or(Ok(()), |elf| self.file.write_all(elf));
        let why = over.err().or(written.as_ref().err().map(ToString::to_string));
        let fault = why.map(|why| format!("the code of its kernel: {why}"));
        let summary = elf.filter(|_| written.is_ok());
        let summary = summary.map(|elf| CodeSummary { file: self.name, bytes: elf.len() as u64 });
        (summary, fault)
    }
}

pub(crate) fn name(guest: &str) -> String {
    format!("guest-{guest}.kcore")
}
