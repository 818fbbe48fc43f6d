//! The two control streams: ordered bytes, each way, for messages between agent and host.
//!
//! A stream belongs to one start of its writer and one of its reader. When either restarts, the writer begins a new
//! stream, and the reader skips bytes of other streams: nobody gets half of a message that was meant for an earlier
//! peer. This module does not know the messages' format.

use std::io;
use std::sync::Arc;

use sys::SharedMap;

use crate::layout::control;

/// One direction: the position of its ring and of both sides' start counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteRing {
    pub(crate) ring_at: usize,
    pub(crate) len_bytes: usize,
    /// Header word that counts the starts of the peer.
    pub(crate) peer: usize,
}

impl ByteRing {
    fn word(&self, offset: usize) -> usize {
        self.ring_at + offset
    }

    /// The two pieces of the ring for `len` bytes from a position: offset and length of each.
    fn pieces(&self, position: u64, len: usize) -> [(usize, usize); 2] {
        // The ring's length is a power of two, so positions may wrap at 2^64.
        let index = (position % self.len_bytes as u64) as usize;
        let first = len.min(self.len_bytes - index);
        let data = self.word(control::DATA);
        [(data + index, first), (data, len - first)]
    }
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Number of bytes written: fewer than all, or none, if the ring is full.
    Bytes(usize),
    /// Nothing was written: the peer has (re)started, and a new stream was begun for it. Any state that the new peer
    /// needs has to be sent first.
    NewPeer,
}

/// The writing end of a stream.
#[derive(Debug)]
pub struct ByteProducer {
    map: Arc<SharedMap>,
    ring: ByteRing,
    head: u64,
    stream: u64,
    peer: u64,
}

impl ByteProducer {
    /// Begins a new stream.
    pub(crate) fn new(map: Arc<SharedMap>, ring: ByteRing) -> Self {
        let tail = map.load(ring.word(control::TAIL));
        let mut head = map.load(ring.word(control::HEAD));
        if head.wrapping_sub(tail) > ring.len_bytes as u64 {
            // No ring can have these two positions.
            head = tail;
            map.store(ring.word(control::HEAD), head);
        }
        let (stream, peer) = (map.load(ring.word(control::STREAM)), map.load(ring.peer));
        let mut producer = Self { map, ring, head, stream, peer };
        producer.begin(peer);
        producer
    }

    fn begin(&mut self, peer: u64) {
        self.peer = peer;
        self.stream = self.stream.wrapping_add(1).max(1);
        self.map.store(self.ring.word(control::START), self.head);
        self.map.store(self.ring.word(control::PEER), peer);
        SharedMap::publish();
        self.map.store(self.ring.word(control::STREAM), self.stream);
        SharedMap::publish();
    }

    /// Whether the memory still reaches the peer.
    ///
    /// # Errors
    /// When its file was truncated while it was mapped.
    pub fn check(&self) -> io::Result<()> {
        self.map.check()
    }

    /// Writes as many bytes as fit. Never waits.
    pub fn write(&mut self, bytes: &[u8]) -> Sent {
        let peer = self.map.load(self.ring.peer);
        if peer != self.peer {
            self.begin(peer);
            return Sent::NewPeer;
        }
        let tail = self.map.load(self.ring.word(control::TAIL));
        let used = self.head.wrapping_sub(tail);
        // A reader can't be that far behind: there is no room until its position is valid.
        let room = (self.ring.len_bytes as u64).saturating_sub(used);
        let len = bytes.len().min(usize::try_from(room).unwrap_or(0));
        let [(at, first), (again_at, _)] = self.ring.pieces(self.head, len);
        let bytes = bytes.get(..len).unwrap_or_default();
        let (front, other) = bytes.split_at_checked(first).unwrap_or_default();
        self.map.bytes_in(at, front);
        self.map.bytes_in(again_at, other);
        SharedMap::publish();
        self.head = self.head.wrapping_add(len as u64);
        self.map.store(self.ring.word(control::HEAD), self.head);
        Sent::Bytes(len)
    }
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Number of bytes read; 0 if there are none.
    Bytes(usize),
    /// The stream ended, and a new one begins with the next byte.
    NewStream,
    /// The writer's position is impossible: the rest of the stream is lost.
    Damage,
}

/// The streams that a reader accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    /// Streams for this start of the reader.
    To(u64),
    /// All, from the oldest byte on: for a region whose writer is gone.
    Any,
}

/// The reading end of a stream.
#[derive(Debug)]
pub struct ByteConsumer {
    map: Arc<SharedMap>,
    ring: ByteRing,
    listen: Listen,
    tail: u64,
    stream: u64,
    /// Whether the current stream is meant for this reader.
    is_ours: bool,
}

impl ByteConsumer {
    pub(crate) fn new(map: Arc<SharedMap>, ring: ByteRing, listen: Listen) -> Self {
        let tail = map.load(ring.word(control::TAIL));
        Self { map, ring, listen, tail, stream: 0, is_ours: false }
    }

    /// Whether the memory still reaches the peer.
    ///
    /// # Errors
    /// When its file was truncated while it was mapped.
    pub fn check(&self) -> io::Result<()> {
        self.map.check()
    }

    /// Reads available bytes, as many as fit in `into`. Never waits.
    pub fn read(&mut self, into: &mut [u8]) -> Received {
        // The position comes first: all bytes before it then belong to this stream or an earlier one.
        let head = self.map.load(self.ring.word(control::HEAD));
        let stream = self.map.load(self.ring.word(control::STREAM));
        let end = if stream == self.stream {
            head
        } else {
            let start = self.map.load(self.ring.word(control::START));
            let remaining = start.wrapping_sub(self.tail);
            // The rest of our stream ends where the next one begins. If a whole stream was missed, the end of ours is
            // unknown.
            let is_next = stream == self.stream.wrapping_add(1);
            if !(self.is_ours && is_next && (1..=self.ring.len_bytes as u64).contains(&remaining)) {
                return self.change(stream);
            }
            start
        };
        if !self.is_ours {
            self.go_to(head);
            return Received::Bytes(0);
        }
        let have = end.wrapping_sub(self.tail);
        if have > self.ring.len_bytes as u64 {
            self.is_ours = false;
            self.go_to(head);
            return Received::Damage;
        }
        let len = into.len().min(usize::try_from(have).unwrap_or(0));
        let [(at, first), (again_at, _)] = self.ring.pieces(self.tail, len);
        let into = into.get_mut(..len).unwrap_or_default();
        let (front, other) = into.split_at_mut_checked(first).unwrap_or_default();
        self.map.bytes_out(at, front);
        self.map.bytes_out(again_at, other);
        SharedMap::settle();
        self.go_to(self.tail.wrapping_add(len as u64));
        Received::Bytes(len)
    }

    /// Changes to a new stream, if its words are consistent.
    fn change(&mut self, stream: u64) -> Received {
        let start = self.map.load(self.ring.word(control::START));
        let peer = self.map.load(self.ring.word(control::PEER));
        SharedMap::settle();
        if self.map.load(self.ring.word(control::STREAM)) != stream {
            return Received::Bytes(0);
        }
        self.stream = stream;
        self.is_ours = match self.listen {
            Listen::To(us) => peer == us,
            Listen::Any => true,
        };
        if !self.is_ours {
            return Received::Bytes(0);
        }
        let head = self.map.load(self.ring.word(control::HEAD));
        let len = self.ring.len_bytes as u64;
        match (head.wrapping_sub(start) <= len, self.listen) {
            (true, _) => self.go_to(start),
            // An earlier reader has consumed the overwritten bytes: begin at the oldest byte.
            (false, Listen::Any) => self.go_to(head.wrapping_sub(len)),
            (false, Listen::To(_)) => {
                self.is_ours = false;
                return Received::Damage;
            }
        }
        Received::NewStream
    }

    fn go_to(&mut self, position: u64) {
        if self.tail != position {
            self.tail = position;
            self.map.store(self.ring.word(control::TAIL), position);
        }
    }
}
