//! Time synchronisation by protocol `ptp`: many short round trips, of which the fastest counts.
//!
//! ```text
//! agent (server)                    host (client)
//! START series, flags             ▶
//!                                 ◀ START
//! stamps, PROBE n                 ▶ stamps
//! stamps                          ◀ PROBE n                      ROUND_TRIPS times
//! END                             ▶
//!                                 ◀ PROBES its stamps
//! OFFSET time, offset             ▶
//! ```
//!
//! Numbers are big endian; see trace-timesync-ptp.c of trace-cmd.

use super::fields::{Fields, put_count, put_u32};
use super::time_sync::TimeSync;

/// The protocol's name.
pub const NAME: &str = "ptp";
/// Round trips of a round (`PTP_SYNC_LOOP`).
pub const ROUND_TRIPS: u32 = 339;
/// Flag: only the fastest round trip counts.
pub const FASTEST: u32 = 1;
/// Flag: times are those of marks in the trace.
pub const MARKS: u32 = 2;

const START: u32 = 1;
const PROBE: u32 = 2;
const PROBES: u32 = 3;
const OFFSET: u32 = 4;
const END: u32 = 5;
/// Room for stamps in a message of them, whose size is always the same.
const SAMPLES: usize = 2 * ROUND_TRIPS as usize;
/// Bytes of a stamp: a time and a round trip's number.
const SAMPLE_BYTES: usize = 12;

/// What a round begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Number of the round.
    pub series: u32,
    /// [`FASTEST`], [`MARKS`].
    pub flags: u32,
}

/// The stamp of a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub time: i64,
    /// Which round trip, from 1 on.
    pub number: u32,
}

/// What came of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// A time on the agent's clock.
    pub guest_time: i64,
    /// What the host's clock was ahead of the agent's then.
    pub offset: i64,
}

impl Start {
    /// The message, which goes both ways.
    #[must_use]
    pub fn message(self) -> TimeSync {
        let mut payload = Vec::new();
        put_u32(self.series, &mut payload);
        put_u32(self.flags, &mut payload);
        message(START, payload)
    }

    /// Reads it.
    #[must_use]
    pub fn parse(message: &TimeSync) -> Option<Self> {
        let mut fields = message.payload_of(NAME, START)?;
        Some(Self { series: fields.u32()?, flags: fields.u32()? })
    }
}

/// A round trip, forth or back.
#[must_use]
pub fn probe(number: u32) -> TimeSync {
    message(PROBE, number.to_be_bytes().to_vec())
}

/// Number of the round trip.
#[must_use]
pub fn probed(message: &TimeSync) -> Option<u32> {
    message.payload_of(NAME, PROBE)?.u32()
}

/// There are no more round trips.
#[must_use]
pub fn end() -> TimeSync {
    message(END, Vec::new())
}

#[must_use]
pub fn is_end(message: &TimeSync) -> bool {
    message.payload_of(NAME, END).is_some()
}

/// The host's stamps of a round. Those past the room for them are left out.
#[must_use]
pub fn samples(series: u32, samples: &[Sample]) -> TimeSync {
    let samples = samples.get(..SAMPLES.min(samples.len())).unwrap_or_default();
    let mut payload = Vec::new();
    put_u32(series, &mut payload);
    put_count(samples.len(), &mut payload);
    for sample in samples {
        payload.extend_from_slice(&sample.time.to_be_bytes());
        put_u32(sample.number, &mut payload);
    }
    payload.resize(8 + SAMPLES * SAMPLE_BYTES, 0);
    message(PROBES, payload)
}

/// Number of the round, and the host's stamps.
#[must_use]
pub fn sampled(message: &TimeSync) -> Option<(u32, Vec<Sample>)> {
    let mut fields = message.payload_of(NAME, PROBES)?;
    let (series, count) = (fields.u32()?, fields.u32()?);
    // No more than there are bytes for, whatever the count says.
    let mut all = (0..count).map_while(|_| sample(&mut fields)).collect::<Vec<_>>();
    all.retain(|sample| sample.number != 0);
    Some((series, all))
}

fn sample(fields: &mut Fields<'_>) -> Option<Sample> {
    Some(Sample { time: fields.i64()?, number: fields.u32()? })
}

impl Offset {
    #[must_use]
    pub fn message(self) -> TimeSync {
        let fields = [self.guest_time, self.offset];
        message(OFFSET, fields.into_iter().flat_map(i64::to_be_bytes).collect())
    }

    /// Reads it.
    #[must_use]
    pub fn parse(message: &TimeSync) -> Option<Self> {
        let mut fields = message.payload_of(NAME, OFFSET)?;
        Some(Self { guest_time: fields.i64()?, offset: fields.i64()? })
    }
}

fn message(number: u32, payload: Vec<u8>) -> TimeSync {
    TimeSync { protocol: NAME.into(), number, payload }
}
