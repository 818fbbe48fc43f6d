//! Cuts pages to a time window.
//!
//! Only pages at the two ends are read, and only pages that a cut goes through are rewritten; all others stay as the
//! kernel made them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use ftrace::ringbuf::{Missed, Page, PageLayout, PageWriter};

/// The interval to keep, in page timestamps, both ends included. `None`: no end is known, and nothing is cut there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) begin: Option<u64>,
    pub(crate) end: Option<u64>,
}

/// Pages of a CPU, cut to a window.
#[derive(Debug, Default)]
pub(crate) struct CutPages {
    pieces: VecDeque<Piece>,
    /// Number of events cut off.
    pub(crate) events_cut: u64,
    /// Size of the pages.
    pub(crate) bytes: u64,
}

/// A run of consecutive pages.
#[derive(Debug)]
enum Piece {
    Written(VecDeque<u8>),
    Of { file: File, at: u64, end: u64 },
}

/// The part of a page inside a window.
enum PageCut {
    All,
    Nothing(u64),
    Some { page: Vec<u8>, cut: u64 },
}

impl CutPages {
    /// Cuts the pages of consecutive files, each with its size.
    ///
    /// # Errors
    /// When a file can't be read.
    pub(crate) fn new(
        files: Vec<(File, u64)>,
        layout: &PageLayout,
        window: Window,
    ) -> io::Result<Self> {
        let page_bytes = layout.page_size.max(1) as u64;
        let whole_pages = |bytes: u64| bytes - bytes % page_bytes;
        let to_piece =
            |(file, bytes): (File, u64)| Piece::Of { file, at: 0, end: whole_pages(bytes) };
        let mut cut = Self { pieces: files.into_iter().map(to_piece).collect(), ..Self::default() };
        cut.shorten(layout, window, End::First)?;
        cut.shorten(layout, window, End::Last)?;
        cut.bytes = cut.pieces.iter().map(Piece::bytes).sum();
        Ok(cut)
    }

    /// Cuts pages at one end, up to the first page that needs no cut.
    fn shorten(&mut self, layout: &PageLayout, window: Window, at: End) -> io::Result<()> {
        let mut page = vec![0; layout.page_size];
        while let Some(piece) = at.piece(&mut self.pieces) {
            let Piece::Of { file, at: from, end } = piece else { break };
            if *from >= *end {
                at.drop_piece(&mut self.pieces);
                continue;
            }
            let page_bytes = page.len() as u64;
            let begin = if at == End::First { *from } else { *end - page_bytes };
            file.read_exact_at(&mut page, begin)?;
            let remainder = left_of(&page, layout, window);
            if matches!(remainder, PageCut::All) {
                break;
            }
            match at {
                End::First => *from += page_bytes,
                End::Last => *end -= page_bytes,
            }
            match remainder {
                PageCut::All => break,
                PageCut::Nothing(events) => self.events_cut += events,
                PageCut::Some { page, cut } => {
                    self.events_cut += cut;
                    at.add_piece(&mut self.pieces, Piece::Written(page.into()));
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Piece {
    fn bytes(&self) -> u64 {
        match self {
            Self::Written(bytes) => bytes.len() as u64,
            Self::Of { at, end, .. } => end - at,
        }
    }
}

/// An end of the window.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    First,
    Last,
}

impl End {
    fn piece(self, pieces: &mut VecDeque<Piece>) -> Option<&mut Piece> {
        match self {
            Self::First => pieces.front_mut(),
            Self::Last => pieces.back_mut(),
        }
    }

    fn drop_piece(self, pieces: &mut VecDeque<Piece>) {
        match self {
            Self::First => pieces.pop_front(),
            Self::Last => pieces.pop_back(),
        };
    }

    fn add_piece(self, pieces: &mut VecDeque<Piece>, piece: Piece) {
        match self {
            Self::First => pieces.push_front(piece),
            Self::Last => pieces.push_back(piece),
        }
    }
}

/// An unreadable page stays: readers of the session report the damage.
fn left_of(bytes: &[u8], layout: &PageLayout, window: Window) -> PageCut {
    let Ok(page) = Page::parse(bytes, layout) else { return PageCut::All };
    let (mut early, mut late, mut inside) = (0, 0, 0_u64);
    let mut written = Vec::new();
    let mut writer = PageWriter::new(*layout);
    let read = page.for_each(|record| {
        if window.begin.is_some_and(|begin| record.stamp < begin) {
            early += 1;
        } else if window.end.is_some_and(|end| record.stamp > end) {
            late += 1;
        } else {
            if inside == 0 && early == 0 && page.missed != Missed::Nothing {
                writer.missed(page.missed);
            }
            inside += 1;
            // A subset of a page's records fits in a page.
            let _ = writer.push(record.stamp, record.payload, &mut written);
        }
    });
    match (read, early + late, inside) {
        (Err(_), ..) | (Ok(()), 0, 1..) => PageCut::All,
        (Ok(()), cut, 0) => PageCut::Nothing(cut),
        (Ok(()), cut, _) => {
            writer.flush(&mut written);
            PageCut::Some { page: written, cut }
        }
    }
}

impl Read for CutPages {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(piece) = self.pieces.front_mut() {
            let read = match piece {
                Piece::Written(bytes) => bytes.read(buffer)?,
                Piece::Of { file, at, end } => {
                    let max = usize::try_from(*end - *at).unwrap_or(usize::MAX).min(buffer.len());
                    let read = file.read_at(buffer.get_mut(..max).unwrap_or_default(), *at)?;
                    *at += read as u64;
                    if read == 0 && max > 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    read
                }
            };
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.pieces.pop_front();
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;
    use raw_bytes::{ByteOrder, LongSize};

    use super::*;

    const LAYOUT: PageLayout =
        PageLayout { order: ByteOrder::Little, commit: LongSize::Eight, page_size: 128 };

    /// Pages of numbered events at these times, in files that end at `ends`.
    fn files(stamps: &[u64], ends: &[usize]) -> Vec<(File, u64)> {
        let (mut writer, mut pages) = (PageWriter::new(LAYOUT), Vec::new());
        for (number, stamp) in stamps.iter().enumerate() {
            writer.push(*stamp, &(number as u32).to_le_bytes(), &mut pages).unwrap();
        }
        writer.flush(&mut pages);
        let pages: Vec<&[u8]> = pages.chunks(LAYOUT.page_size).collect();
        let mut ends: Vec<usize> = ends.iter().map(|end| (*end).min(pages.len())).collect();
        ends.sort_unstable();
        let begins = std::iter::once(0).chain(ends.clone());
        let file = |(begin, end): (usize, usize)| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&pages[begin..end].concat()).unwrap();
            let bytes = file.metadata().unwrap().len();
            (file, bytes)
        };
        begins.zip(ends.iter().copied().chain([pages.len()])).map(file).collect()
    }

    fn read(cut: &mut CutPages) -> Vec<(u64, u32)> {
        let mut bytes = Vec::new();
        let claimed = cut.bytes;
        cut.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, claimed);
        let mut events = Vec::new();
        for page in bytes.chunks(LAYOUT.page_size) {
            let page = Page::parse(page, &LAYOUT).unwrap();
            page.for_each(|record| {
                let number = LAYOUT.order.u32_at(record.payload, 0).unwrap();
                events.push((record.stamp, number));
            })
            .unwrap();
        }
        events
    }

    proptest! {
        #[test]
        fn what_is_inside_stays_and_all_else_is_counted(
            steps in proptest::collection::vec(0_u64..300_000_000, 0..60),
            ends in proptest::collection::vec(0_usize..12, 0..4),
            begin in proptest::option::of(0_u64..6_000_000_000),
            end in proptest::option::of(0_u64..6_000_000_000),
        ) {
            let stamps: Vec<u64> = steps.iter().scan(1000, |now, step| {
                *now += step;
                Some(*now)
            }).collect();
            let window = Window { begin, end };
            let mut cut = CutPages::new(files(&stamps, &ends), &LAYOUT, window).unwrap();
            let inside: Vec<(u64, u32)> = stamps.iter().zip(0..)
                .filter(|(stamp, _)| begin.is_none_or(|begin| **stamp >= begin))
                .filter(|(stamp, _)| end.is_none_or(|end| **stamp <= end))
                .map(|(stamp, number)| (*stamp, number))
                .collect();
            prop_assert_eq!(cut.events_cut, (stamps.len() - inside.len()) as u64);
            prop_assert_eq!(read(&mut cut), inside);
        }
    }

    #[test]
    fn a_loss_before_what_is_kept_stays_and_one_before_what_is_cut_goes() {
        let page = |missed| {
            let (mut writer, mut page) = (PageWriter::new(LAYOUT), Vec::new());
            writer.missed(missed);
            (0..4).for_each(|at| writer.push(100 + at, &[1; 4], &mut page).unwrap());
            writer.flush(&mut page);
            page
        };
        let lossy = page(Missed::Events(7));
        let missed = |window: Window| match left_of(&lossy, &LAYOUT, window) {
            PageCut::Some { page, cut } => (Page::parse(&page, &LAYOUT).unwrap().missed, cut),
            _ => panic!("nothing was cut, or all"),
        };
        let late = Window { begin: None, end: Some(101) };
        assert_eq!(missed(late), (Missed::Events(7), 2));
        let early = Window { begin: Some(103), end: None };
        assert_eq!(missed(early), (Missed::Nothing, 3));
    }

    #[test]
    fn what_is_no_page_stays() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[0xff; 128]).unwrap();
        let window = Window { begin: Some(5), end: Some(6) };
        let mut cut = CutPages::new(vec![(file, 128)], &LAYOUT, window).unwrap();
        let mut bytes = Vec::new();
        cut.read_to_end(&mut bytes).unwrap();
        assert_eq!((bytes, cut.events_cut), (vec![0xff; 128], 0));
    }
}
