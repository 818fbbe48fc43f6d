//! The code of a guest's kernel that its agent sends, where samples saw it run: pieces of memory, which become an ELF
//! file next to its recording.
//!
//! The guest may send anything. Pieces are taken as far as they are what was asked for: in order, none missing, no more
//! of them than a recording needs. What they are is for the reader of the file to find out.

use std::io::Write;

use channel::wire::{CodePiece, CodeRequest, GuestHello, Message};
use os::folder::{Folder, OutFile};
use raw_bytes::ByteOrder;
use sampler::KeptCode;
use session_json::CodeSummary;

use crate::error::{RecordError, Result};
use crate::guest::GuestFiles;

/// Bytes that a guest may send.
const MAX_BYTES: u32 = 4 << 20;
/// Pieces of a guest's code: as many as that has pages, each apart from the others.
const MAX_PIECES: u32 = MAX_BYTES / 4096;

/// Pieces that come.
#[derive(Debug)]
pub(crate) struct GuestCode {
    name: String,
    file: OutFile,
    code: Option<KeptCode>,
    pieces: u32,
    /// Nothing more is taken: all came, or why not.
    over: Option<std::result::Result<(), String>>,
}

impl GuestCode {
    /// Makes the file in a session, for the guest of this name; none for an architecture that has
    /// no instruction decoder.
    pub(crate) fn new(session: &Folder, guest: &str, hello: &GuestHello) -> Result<Option<Self>> {
        if hello.big_endian || hello.long_bytes != 8 {
            return Ok(None);
        }
        let name = name(guest);
        let file = session.create_new(&name);
        let file = file.map_err(RecordError::io("make", &session.path().join(&name)))?;
        Ok(Some(Self { name, file, code: None, pieces: 0, over: None }))
    }

    /// What asks for it.
    pub(crate) fn request() -> Message {
        Message::KeepCode(CodeRequest { pieces: MAX_PIECES, bytes: MAX_BYTES })
    }

    /// Takes a piece, and room for it among the guest's files.
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

    /// Writes the file, when nothing more comes; `ended`: the guest has said that it sampled to the end. What was
    /// written, none: nothing came; and what is wrong with it.
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

/// The file's name.
pub(crate) fn name(guest: &str) -> String {
    format!("guest-{guest}.kcore")
}
