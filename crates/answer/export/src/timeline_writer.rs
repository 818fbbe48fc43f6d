//! The interface of a format's writer.

use std::io;

use crate::raw_events::RawEvent;
use crate::{Flow, Scene};

/// A value of a slice or an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg<'a> {
    Number(u64),
    /// A number that may be negative.
    Signed(i64),
    /// A text that is repeated often.
    Name(&'a str),
    /// A text that is rarely repeated.
    Text(&'a str),
    /// A truth value.
    Bool(bool),
}

/// Values with their names, in order.
pub type Args<'a> = [(&'a str, Arg<'a>)];

/// An interval on a track.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    /// Its beginning.
    pub from_ns: u64,
    /// Its end, after its beginning.
    pub to_ns: u64,
    /// Its name on the track.
    pub name: &'a str,
    /// Its kind: the state of a vCPU, or `running`.
    pub category: &'static str,
    /// Its values.
    pub args: &'a Args<'a>,
}

/// A moment on a track.
#[derive(Clone, Copy, Debug)]
pub struct Instant<'a> {
    pub stamp_ns: u64,
    /// Its name.
    pub name: &'a str,
    /// Its kind: the event's system, or `loss`.
    pub category: &'a str,
    /// Its values.
    pub args: &'a Args<'a>,
}

/// Writes one format. Slices of a track come in order of time and don't overlap. Exception: slices
/// of calls are nested, and come in the order of their ends. Slices of different tracks, and
/// instants, come in any order.
pub trait TimelineWriter: Send {
    /// Whether the format displays the scheduling of one host through
    /// [`scheduling`](Self::scheduling); otherwise its CPUs and threads are ordinary tracks.
    const OWN_SCHEDULING: bool;

    /// Whether the format supports nested slices, and thus calls of functions.
    const CALLS: bool;

    /// Whether the format supports arrows between tracks.
    const FLOWS: bool;

    /// Receives all tracks; their numbers are their positions in [`Scene::tracks`].
    ///
    /// # Errors
    /// When it can't be written.
    fn begin(&mut self, scene: &Scene) -> io::Result<()>;

    /// Writes an interval.
    ///
    /// # Errors
    /// When it can't be written.
    fn slice(&mut self, track: usize, slice: &Slice<'_>) -> io::Result<()>;

    /// Writes an instant.
    ///
    /// # Errors
    /// When it can't be written.
    fn instant(&mut self, track: usize, instant: &Instant<'_>) -> io::Result<()>;

    /// Writes an arrow between tracks.
    ///
    /// # Errors
    /// When it can't be written.
    fn flow(&mut self, _flow: &Flow<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Writes a vCPU's exits per second from this time on.
    ///
    /// # Errors
    /// When it can't be written.
    fn exit_rate(&mut self, _track: usize, _stamp_ns: u64, _exits: u64) -> io::Result<()> {
        Ok(())
    }

    /// Writes a `sched_switch` or `sched_waking` of [`Scene::scheduled`]; those of a CPU come in
    /// order.
    ///
    /// # Errors
    /// When it can't be written.
    fn scheduling(&mut self, _event: &RawEvent<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Finishes the file.
    ///
    /// # Errors
    /// When it can't be written.
    fn end(&mut self, scene: &Scene) -> io::Result<()>;
}
