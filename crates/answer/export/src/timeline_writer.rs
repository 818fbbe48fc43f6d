//! What a format has to be able to write.

use std::io;

use crate::raw_events::RawEvent;
use crate::{Flow, Scene};

/// A value of a slice or an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg<'a> {
    Number(u64),
    /// A number that may be negative.
    Signed(i64),
    /// A text that comes again and again.
    Name(&'a str),
    /// A text of its own.
    Text(&'a str),
    /// A truth value.
    Bool(bool),
}

/// Values with their names, in order.
pub type Args<'a> = [(&'a str, Arg<'a>)];

/// A stretch of time on a track.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    /// Its beginning.
    pub from_ns: u64,
    /// Its end, after its beginning.
    pub to_ns: u64,
    /// What it is called on the track.
    pub name: &'a str,
    /// What kind it is: the state of a vCPU, or `running`.
    pub category: &'static str,
    /// More about it.
    pub args: &'a Args<'a>,
}

/// A moment on a track.
#[derive(Clone, Copy, Debug)]
pub struct Instant<'a> {
    pub stamp_ns: u64,
    /// What it is called.
    pub name: &'a str,
    /// What kind it is: the event's system, or `loss`.
    pub category: &'a str,
    /// More about it.
    pub args: &'a Args<'a>,
}

/// Writes one format. Slices of a track come in the order of their times and don't overlap; only
/// those of calls lie within each other, and come in the order of their ends. Those of different
/// tracks, and instants, come in any order.
pub trait TimelineWriter: Send {
    /// Whether the format shows the scheduling of one host by [`scheduling`](Self::scheduling); else
    /// its CPUs and threads are tracks as any other.
    const OWN_SCHEDULING: bool;

    /// Whether the format shows slices within slices, and so calls of functions.
    const CALLS: bool;

    /// Whether the format shows what leads from track to track.
    const FLOWS: bool;

    /// Gives all tracks, which are numbered by their place in [`Scene::tracks`].
    ///
    /// # Errors
    /// When it can't be written.
    fn begin(&mut self, scene: &Scene) -> io::Result<()>;

    /// A stretch of time.
    ///
    /// # Errors
    /// When it can't be written.
    fn slice(&mut self, track: usize, slice: &Slice<'_>) -> io::Result<()>;

    /// A moment.
    ///
    /// # Errors
    /// When it can't be written.
    fn instant(&mut self, track: usize, instant: &Instant<'_>) -> io::Result<()>;

    /// What leads from track to track.
    ///
    /// # Errors
    /// When it can't be written.
    fn flow(&mut self, _flow: &Flow<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Exits a second of a vCPU from this moment on.
    ///
    /// # Errors
    /// When it can't be written.
    fn exit_rate(&mut self, _track: usize, _stamp_ns: u64, _exits: u64) -> io::Result<()> {
        Ok(())
    }

    /// `sched_switch` or `sched_waking` of [`Scene::scheduled`], in order per CPU.
    ///
    /// # Errors
    /// When it can't be written.
    fn scheduling(&mut self, _event: &RawEvent<'_>) -> io::Result<()> {
        Ok(())
    }

    /// All has been written.
    ///
    /// # Errors
    /// When it can't be written.
    fn end(&mut self, scene: &Scene) -> io::Result<()>;
}
