//! Marks in a separate instance: readings of the trace clock that the kernel makes.
//!
//! Programs can't read some trace clocks (`local`, `global`). The kernel timestamps a mark like any event, with any
//! trace clock.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use ftrace::ringbuf::{Page, PageLayout};
use raw_bytes::{ByteOrder, LongSize};

use crate::error::{Result, TracefsError};
use crate::instance::Instance;
use crate::mounted::{self, Tracefs};
use crate::raw_pages::RawPages;
use crate::texts::page_size;

/// Offset of the mark's number in its record: `struct raw_data_entry`, after the common fields.
const NUMBER_AT: usize = 8;
/// Size of each CPU's buffer: a thousand marks need a fifth of it.
const BUFFER_KIB: &str = "256";

/// A mark that was read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its number.
    pub number: u32,
    /// Its time on the trace clock.
    pub time: u64,
}

/// An instance that contains only marks.
#[derive(Debug)]
pub struct Marks {
    file: File,
    pages: Vec<RawPages>,
    event: u16,
    layout: PageLayout,
    // Last: the kernel can't remove it while its files are open.
    _instance: Instance,
}

impl Marks {
    /// Makes an instance with this clock.
    ///
    /// # Errors
    /// When the user has no permission, or there is no such clock.
    pub fn make(tracefs: &Tracefs, clock: &str) -> Result<Self> {
        let instance = Instance::make_another(tracefs)?;
        instance.set("trace_clock", clock)?;
        instance.set("buffer_size_kb", BUFFER_KIB)?;
        let format = tracefs.root().join("events/ftrace/raw_data/format");
        let event = number_of(&mounted::read(&format)?).ok_or_else(|| {
            let text = "its event has no ID line";
            TracefsError::io("use", &format)(io::Error::new(io::ErrorKind::InvalidData, text))
        })?;
        let page_size = page_size(&mounted::read(&tracefs.root().join("events/header_page"))?);
        let page_size = page_size as usize;
        let open = |cpu: u32| RawPages::open(&instance, cpu, page_size);
        let pages = instance.cpus()?.into_iter().map(open).collect::<Result<_>>()?;
        let path = instance.file("trace_marker_raw");
        let file = OpenOptions::new().write(true).open(&path);
        let file = file.map_err(TracefsError::io("open", &path))?;
        instance.set("tracing_on", "1")?;
        let big = cfg!(target_endian = "big");
        let layout = PageLayout {
            order: if big { ByteOrder::Big } else { ByteOrder::Little },
            commit: LongSize::from_bytes(size_of::<usize>() as u64).unwrap_or(LongSize::Eight),
            page_size,
        };
        Ok(Self { file, pages, event, layout, _instance: instance })
    }

    /// Writes a mark.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn make_mark(&self, number: u32) -> io::Result<()> {
        (&self.file).write_all(&number.to_ne_bytes())
    }

    /// Reads and removes all marks since the last call.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn take(&mut self) -> io::Result<Vec<Mark>> {
        let mut marks = Vec::new();
        let mut page = vec![0; self.layout.page_size];
        let Self { pages, event, layout, .. } = self;
        for raw in pages {
            while raw.read_page(&mut page)? {
                let Ok(page) = Page::parse(&page, layout) else { continue };
                // The marks before a damaged record stay.
                let _ = page.for_each(|record| {
                    let number = layout.order.u32_at(record.payload, NUMBER_AT);
                    let is_mark = layout.order.u16_at(record.payload, 0) == Some(*event);
                    if let Some(number) = number.filter(|_| is_mark) {
                        marks.push(Mark { number, time: record.stamp });
                    }
                });
            }
        }
        marks.sort_by_key(|mark| mark.time);
        Ok(marks)
    }
}

/// The event's id in a `format` text.
fn number_of(format: &str) -> Option<u16> {
    format.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_back_in_order_with_times() {
        let made = Tracefs::find().and_then(|tracefs| {
            let marks = Marks::make(&tracefs, "local")?;
            Ok((marks, tracefs))
        });
        let (mut marks, tracefs) = match made {
            Ok(made) => made,
            Err(error) => return testkit::skip!("{error}"),
        };
        assert!(Marks::make(&tracefs, "no such clock").is_err());
        for number in [7, 5, u32::MAX] {
            marks.make_mark(number).unwrap();
        }
        let batch = marks.take().unwrap();
        let numbers: Vec<u32> = batch.iter().map(|mark| mark.number).collect();
        assert_eq!(numbers, [7, 5, u32::MAX]);
        assert!(batch.iter().all(|mark| mark.time > 0));
        assert!(batch.is_sorted_by(|a, b| a.time < b.time), "{batch:?}");
        assert_eq!(marks.take().unwrap(), []);
        (0..1000).for_each(|number| marks.make_mark(number).unwrap());
        assert_eq!(marks.take().unwrap().len(), 1000);
        let marker = marks._instance.file("trace_marker");
        assert!(marker.exists());
        drop(marks);
        assert!(!marker.exists(), "{} is left", marker.display());
    }
}
