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
/// Number of round trips in a round (`PTP_SYNC_LOOP`).
pub const ROUND_TRIPS: u32 = 339;
/// Flag: only the fastest round trip counts.
pub const FASTEST: u32 = 1;
/// Flag: times are those of trace marks.
pub const MARKS: u32 = 2;

const START: u32 = 1;
const PROBE: u32 = 2;
const PROBES: u32 = 3;
const OFFSET: u32 = 4;
const END: u32 = 5;
/// Number of stamps in a message of stamps, whose size is fixed.
const SAMPLES: usize = 2 * ROUND_TRIPS as usize;
/// Size of a stamp: a time and the number of its round trip.
const SAMPLE_BYTES: usize = 12;

/// First message of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The round's number.
    pub series: u32,
    /// [`FASTEST`], [`MARKS`].
    pub flags: u32,
}

/// A stamp of a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub time: i64,
    /// Number of the round trip, from 1.
    pub number: u32,
}

/// Result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// A time on the agent's clock.
    pub guest_time: i64,
    /// Host's clock minus the agent's clock at that time.
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

    #[must_use]
    pub fn parse(message: &TimeSync) -> Option<Self> {
        let mut fields = message.payload_of(NAME, START)?;
        Some(Self { series: fields.u32()?, flags: fields.u32()? })
    }
}

/// A probe, in either direction.
#[must_use]
pub fn probe(number: u32) -> TimeSync {
    message(PROBE, number.to_be_bytes().to_vec())
}

/// The probe's round trip number.
#[must_use]
pub fn probed(message: &TimeSync) -> Option<u32> {
    message.payload_of(NAME, PROBE)?.u32()
}

/// The end of the round trips.
#[must_use]
pub fn end() -> TimeSync {
    message(END, Vec::new())
}

#[must_use]
pub fn is_end(message: &TimeSync) -> bool {
    message.payload_of(NAME, END).is_some()
}

/// The host's stamps of a round, cut off at the message's fixed number.
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

/// The round's number, and the host's stamps.
#[must_use]
pub fn sampled(message: &TimeSync) -> Option<(u32, Vec<Sample>)> {
    let mut fields = message.payload_of(NAME, PROBES)?;
    let (series, count) = (fields.u32()?, fields.u32()?);
    // The available bytes bound the count.
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

    #[must_use]
    pub fn parse(message: &TimeSync) -> Option<Self> {
        let mut fields = message.payload_of(NAME, OFFSET)?;
        Some(Self { guest_time: fields.i64()?, offset: fields.i64()? })
    }
}

fn message(number: u32, payload: Vec<u8>) -> TimeSync {
    TimeSync { protocol: NAME.into(), number, payload }
}
