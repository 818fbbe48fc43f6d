//! The finished lines of one block, before they are merged with those of other streams.

use ftrace::eventfmt::OftenText;
use sources::Damage;
use timeline::rounds::Batch;
use timeline::stamps::BlockStamps;

use super::names::BlockNames;

/// One finished line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) stamp_ns: u64,
    /// Its end in the batch's text; it begins where the previous line ends.
    pub(super) end: usize,
}

/// Time, CPU and thread of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventStart {
    pub(super) stamp_ns: u64,
    pub(super) cpu: u32,
    pub(super) pid: u32,
}

/// The lines of one block.
#[derive(Debug, Default)]
pub(super) struct LineBatch {
    pub(super) text: Vec<u8>,
    pub(super) lines: Vec<Line>,
    /// Indices of requested lines, if lines are printed with others near them.
    pub(super) wanted: Vec<usize>,
    pub(super) start: LineStart,
    /// Names learned, if a line lacks one.
    pub(super) names: Option<Box<BlockNames>>,
    pub(super) events: u64,
    pub(super) last_ns: Option<u64>,
    pub(super) damaged: u64,
    pub(super) stamps: BlockStamps,
}

impl LineBatch {
    /// Records the end of a line in the text.
    pub(super) fn end_line(&mut self, stamp_ns: u64) {
        self.lines.push(Line { stamp_ns, end: self.text.len() });
    }
}

impl Batch for LineBatch {
    fn clear(&mut self) {
        self.text.clear();
        self.lines.clear();
        self.wanted.clear();
        self.start.clear();
        self.names = None;
        self.events = 0;
        self.last_ns = None;
        self.damaged = 0;
        self.stamps = BlockStamps::default();
    }

    fn last_stamp_ns(&self) -> Option<u64> {
        self.last_ns
    }

    fn set_unreadable(&mut self, _: Damage) {
        self.damaged += 1;
    }
}

/// The beginning of the previous line, up to the decimal point of its time: the next line of its
/// stream mostly has the same.
#[derive(Debug, Default)]
pub(super) struct LineStart {
    /// Thread, CPU, and seconds if the clock has seconds.
    pub(super) key: Option<(u32, u32, Option<u64>)>,
    pub(super) text: Vec<u8>,
    /// The same, for text lines.
    pub(super) often: OftenText,
}

impl LineStart {
    /// Clears it, because the next line may come from another recording, or name the thread
    /// differently.
    pub(super) fn clear(&mut self) {
        self.key = None;
    }

    /// Whether it is the beginning for this thread, CPU and second.
    #[inline]
    pub(super) fn is_of(&self, key: (u32, u32, Option<u64>)) -> bool {
        self.key == Some(key)
    }

    /// An empty text to be [`set`](Self::set).
    pub(super) fn restart(&mut self) -> Vec<u8> {
        self.key = None;
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        text
    }

    /// Sets the beginning of lines of this thread, CPU and second.
    pub(super) fn set(&mut self, key: (u32, u32, Option<u64>), text: Vec<u8>) {
        (self.key, self.text) = (Some(key), text);
    }

    /// The beginning of lines.
    #[inline]
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }
}
