//! The guest's end of a page stream: moves pages from the kernel's buffers into the stream, with a head before each
//! batch, or without heads as in trace-cmd's protocol.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::wire::PageHead;
use parking_lot::Mutex;
use tracefs::RawPages;

use crate::batch::Batch;
use crate::memory::PageRing;
use crate::sent::Sent;
use crate::stream::Stream;
use os::waits::Wait;

/// Reopens a stream that has failed: a port may be unplugged and plugged in again.
type Reopen = Box<dyn FnMut() -> io::Result<Stream> + Send>;

/// Where a CPU's pages go.
#[derive(Debug)]
pub enum PageSink {
    /// A stream, which several CPUs may share.
    Stream(Box<StreamSink>),
    /// A ring in shared memory, for one CPU. It outlives a recording.
    Ring(Arc<Mutex<PageRing>>),
}

impl PageSink {
    /// Sends a batch of a CPU's full pages; false if there are none now. Waits until the peer accepts them: meanwhile
    /// the kernel records into the remaining room of its buffer.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] if the peer accepted nothing within `wait`; otherwise the channel's error, unless it
    /// can be reopened.
    pub fn send(
        &mut self,
        cpu: u32,
        from: &RawPages,
        sent: &mut Sent,
        wait: Wait<'_>,
    ) -> io::Result<bool> {
        match self {
            Self::Stream(sink) => sink.send(cpu, from, sent, wait),
            Self::Ring(ring) => ring.lock().send(from, sent, wait),
        }
    }

    /// Whether pages can be sent now: false while a failed stream can't be reopened. Until then the pages stay in the
    /// kernel's buffer.
    pub fn is_open(&mut self, wait: Wait<'_>) -> bool {
        match self {
            Self::Stream(sink) => sink.is_open(wait),
            Self::Ring(_) => true,
        }
    }

    /// Sends a partial page, which a splice leaves in the buffer; an empty slice means that there is no partial page.
    ///
    /// # Errors
    /// As [`PageSink::send`], and [`io::ErrorKind::NotConnected`] unless [`PageSink::is_open`]: the page is lost then.
    pub fn send_copy(
        &mut self,
        cpu: u32,
        page: &[u8],
        sent: &mut Sent,
        wait: Wait<'_>,
    ) -> io::Result<()> {
        match self {
            Self::Stream(sink) => sink.send_copy(cpu, page, sent, wait),
            Self::Ring(ring) => ring.lock().send_copy(page, sent, wait),
        }
    }
}

/// The guest's end of a page stream.
pub struct StreamSink {
    stream: Option<Stream>,
    reopen: Option<Reopen>,
    batch: Batch,
    /// `None`: pages have no heads.
    session: Option<u64>,
}

impl std::fmt::Debug for StreamSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamSink").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl StreamSink {
    /// A page stream of a session, with pages of `page_size` bytes.
    ///
    /// # Errors
    /// When the process has no free descriptors.
    pub fn new(stream: Stream, session: u64, page_size: usize) -> io::Result<Self> {
        Ok(Self {
            stream: Some(stream),
            reopen: None,
            batch: Batch::new(page_size)?,
            session: Some(session),
        })
    }

    /// A stream that carries only one CPU's pages, without heads. It can't be reopened.
    ///
    /// # Errors
    /// As [`StreamSink::new`].
    pub fn bare(stream: Stream, page_size: usize) -> io::Result<Self> {
        let batch = Batch::new(page_size)?;
        Ok(Self { stream: Some(stream), reopen: None, batch, session: None })
    }

    /// Allows reopening the stream after a failure.
    #[must_use]
    pub fn reopened_by(mut self, reopen: Reopen) -> Self {
        self.reopen = Some(reopen);
        self
    }

    fn send(
        &mut self,
        cpu: u32,
        from: &RawPages,
        sent: &mut Sent,
        wait: Wait<'_>,
    ) -> io::Result<bool> {
        if !self.is_open(wait) {
            return Ok(false);
        }
        let bytes = self.batch.take(from)?;
        if bytes == 0 {
            return Ok(false);
        }
        self.batch.lead(&self.head(cpu, sent, bytes), bytes)?;
        sent.bytes += bytes as u64;
        let result = self.send_batch(wait);
        self.conclude(result, bytes, sent)?;
        Ok(true)
    }

    fn send_copy(
        &mut self,
        cpu: u32,
        page: &[u8],
        sent: &mut Sent,
        wait: Wait<'_>,
    ) -> io::Result<()> {
        if !self.is_open(wait) {
            sent.bytes += page.len() as u64;
            sent.lost_bytes += page.len() as u64;
            return Err(io::ErrorKind::NotConnected.into());
        }
        let head = self.head(cpu, sent, page.len());
        let Some(stream) = &self.stream else { return Ok(()) };
        sent.bytes += page.len() as u64;
        let result = stream.write_all(&head, wait).and_then(|()| stream.write_all(page, wait));
        self.conclude(result, page.len(), sent)
    }

    /// The head of a batch of pages.
    fn head(&self, cpu: u32, sent: &Sent, bytes: usize) -> Vec<u8> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let head = |session| PageHead { cpu, session, offset: sent.bytes, bytes }.encode();
        self.session.map_or_else(Vec::new, |session| head(session).to_vec())
    }

    fn send_batch(&mut self, wait: Wait<'_>) -> io::Result<()> {
        let Self { stream: Some(stream), batch, .. } = self else { return Ok(()) };
        while batch.remaining() > 0 {
            if stream.write_by(wait, |to| batch.send_to(to))? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// Counts unsent bytes as lost. The stream continues with a new head, or fails.
    fn conclude(
        &mut self,
        result: io::Result<()>,
        bytes: usize,
        sent: &mut Sent,
    ) -> io::Result<()> {
        let Err(error) = result else { return Ok(()) };
        self.batch.drop_rest();
        sent.lost_bytes += bytes as u64;
        let is_gone = !matches!(error.kind(), io::ErrorKind::TimedOut);
        if is_gone && self.reopen.is_some() {
            self.stream = None;
            return Ok(());
        }
        Err(error)
    }

    /// Whether there is a stream; tries to reopen a failed one.
    fn is_open(&mut self, wait: Wait<'_>) -> bool {
        if self.stream.is_none()
            && let Some(reopen) = &mut self.reopen
        {
            self.stream = reopen().ok();
            if self.stream.is_none() {
                std::thread::sleep(BEFORE_NEXT_TRY.min(wait.remaining()));
            }
        }
        self.stream.is_some()
    }
}

/// Time between a failure to reopen a stream and the next attempt.
const BEFORE_NEXT_TRY: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_stream_that_has_failed_is_open_again_once_it_is_back() {
        let (here, there) = UnixStream::pair().unwrap();
        let back = Arc::new(Mutex::new(None::<UnixStream>));
        let of_sink = Arc::clone(&back);
        let reopen = move || match of_sink.lock().take() {
            Some(socket) => Stream::new(socket),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        let sink = StreamSink::new(Stream::new(here).unwrap(), 7, 4096).unwrap();
        let mut sink = PageSink::Stream(Box::new(sink.reopened_by(Box::new(reopen))));
        let (mut sent, wait) = (Sent::default(), Wait::at_most(Duration::from_secs(10)));
        let page = [1; 4096];
        sink.send_copy(0, &page, &mut sent, wait).unwrap();
        drop(there);
        // The page in transit is lost; later pages stay in the buffer.
        sink.send_copy(0, &page, &mut sent, wait).unwrap();
        assert!(!sink.is_open(wait));
        let error = sink.send_copy(0, &page, &mut sent, wait).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotConnected);
        assert_eq!(sent, Sent { bytes: 3 * 4096, lost_bytes: 2 * 4096 });
        let (again, _there) = UnixStream::pair().unwrap();
        *back.lock() = Some(again);
        assert!(sink.is_open(wait));
        sink.send_copy(0, &page, &mut sent, wait).unwrap();
        assert_eq!(sent, Sent { bytes: 4 * 4096, lost_bytes: 2 * 4096 });
    }
}
