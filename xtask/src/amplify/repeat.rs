//! Reads pages over and over, each time with later stamps.

use std::io::{self, Read};

use super::Plan;
use super::pages::Page;

/// The pages of a CPU, repeated as planned.
#[derive(Debug)]
pub(super) struct Repeat<'a> {
    pages: &'a [Page],
    plan: Plan,
    repetition: u64,
    next: usize,
    /// The current page, and how much of it has been read.
    bytes: Vec<u8>,
    offset: usize,
}

impl<'a> Repeat<'a> {
    pub(super) fn new(pages: &'a [Page], plan: Plan) -> Self {
        Self { pages, plan, repetition: 0, next: 0, bytes: Vec::new(), offset: 0 }
    }

    /// Prepares the next page; `false` at the end.
    fn advance(&mut self) -> bool {
        if self.next == self.pages.len() {
            self.next = 0;
            self.repetition += 1;
        }
        let Some(page) = self.pages.get(self.next) else { return false };
        if self.repetition >= self.plan.repetitions {
            return false;
        }
        let seam = self.plan.mark_seams && self.repetition > 0 && self.next == 0;
        page.copy_later(self.repetition * self.plan.period, seam, &mut self.bytes);
        self.next += 1;
        self.offset = 0;
        true
    }
}

impl Read for Repeat<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.offset == self.bytes.len() && !self.advance() {
            return Ok(0);
        }
        let len = out.len().min(self.bytes.len() - self.offset);
        out[..len].copy_from_slice(&self.bytes[self.offset..self.offset + len]);
        self.offset += len;
        Ok(len)
    }
}
