//! Simulates a lake: hosts whose exits resemble those of a real recording, longer and more frequent on some hosts
//! than on others, with known differences. For trying queries, and for testing the comparisons.

mod effect;
mod session;
mod template;

use std::io;

use crate::lake::store::{Addition, Storage};
use crate::lake::{Files, Ids, TableWriter, name_of};
use printable::calendar::date_of;
use stats::Chance;

pub use effect::Effect;
pub use template::Template;

use self::session::{Host, SessionWriter};

/// Variation of hosts, as the deviation of logarithms: in the time of exits, by host and by host and day, and in
/// their number.
const HOST_TIME: f64 = 0.35;
const DAY_TIME: f64 = 0.08;
const HOST_COUNT: f64 = 0.3;
const DAY_COUNT: f64 = 0.08;

/// Nanoseconds of a day.
const DAY_NS: i64 = 86_400_000_000_000;

/// A fleet to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Simulation<'s> {
    /// Number of hosts.
    pub hosts: u32,
    /// Number of days.
    pub days: u32,
    /// Start of the first day in Unix time.
    pub from_day_ns: i64,
    /// Length of a session, in slices of 10 s.
    pub slices: u32,
    /// The differences to simulate.
    pub effects: &'s [Effect],
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Simulation<'_> {
    /// Writes one session per day and host.
    ///
    /// # Errors
    /// When the lake can't be written.
    pub fn write<S: Storage>(&self, template: &Template, storage: &S) -> io::Result<u64> {
        let mut sessions = 0;
        for host in 0..self.hosts {
            let mut chance = Chance::of_part(self.seed, u64::from(host));
            let of_host = Host {
                name: format!("simulated-{host:03}"),
                number: host,
                model: host % 2,
                time: (HOST_TIME * normal(&mut chance)).exp(),
                count: (HOST_COUNT * normal(&mut chance)).exp(),
            };
            for day in 0..self.days {
                let factors = Host {
                    time: of_host.time * (DAY_TIME * normal(&mut chance)).exp(),
                    count: of_host.count * (DAY_COUNT * normal(&mut chance)).exp(),
                    ..of_host.clone()
                };
                self.write_session(template, storage, (&factors, day), &mut chance)?;
                sessions += 1;
            }
        }
        Ok(sessions)
    }

    fn write_session<S: Storage>(
        &self,
        template: &Template,
        storage: &S,
        (host, day): (&Host, u32),
        chance: &mut Chance,
    ) -> io::Result<()> {
        // Noon, so that a session stays within one day.
        let begun_ns = self.from_day_ns.saturating_add(DAY_NS * i64::from(day) + DAY_NS / 2);
        let seed = self.seed.to_le_bytes();
        let parts: [&[u8]; 4] =
            [b"simulated", host.name.as_bytes(), &begun_ns.to_le_bytes(), &seed];
        let session = name_of(&parts);
        let ids = Ids {
            ingest: name_of(&[b"rows", session.as_bytes()]),
            session,
            begun_ns,
            is_dated: true,
        };
        debug_assert_eq!(date_of(begun_ns), date_of(begun_ns + DAY_NS / 4));
        let mut addition = Addition::new(storage, ids.clone())?;
        let writer = SessionWriter {
            template,
            ids: &ids,
            host,
            day,
            slices: i64::from(self.slices.max(1)),
            effects: self.effects,
        };
        writer.write(chance, &mut |table, fill| {
            let mut rows = TableWriter::new(table, addition.begin(&ids, table)?)?;
            fill(&mut rows)?;
            for (key, value) in addition.metadata(table) {
                rows.set_metadata(key, value);
            }
            let count = rows.rows();
            addition.end(table, rows.finish()?, count)
        })
    }
}

/// A number of the normal distribution, by Box and Muller.
pub(crate) fn normal(chance: &mut Chance) -> f64 {
    // 53 bits, and never 0.
    let mut even = || ((chance.number() >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
    let (first, other) = (even(), even());
    (-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}
