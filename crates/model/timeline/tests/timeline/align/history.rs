//! Histories of a vCPU and its guest with a known relation of their clocks.

use testkit::Random;
use timeline::align::Away;

/// Begins with numbers that seeds next to each other don't share.
pub(crate) fn random(seed: u64) -> Random {
    Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
}

/// Mostly short, sometimes long.
fn about(random: &mut Random, mean: u64) -> u64 {
    let part = (random.below(1 << 20) + 1) as f64 / (1 << 20) as f64;
    (-part.ln() * mean as f64) as u64 + 1
}

/// What the clocks and the guest do.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) seed: u64,
    /// Host time of the recording.
    pub(crate) length_ns: u64,
    /// Mean time in the guest, and out of it.
    pub(crate) inside_ns: u64,
    pub(crate) away_ns: u64,
    /// One in this many exits waits, for milliseconds.
    pub(crate) idle_one_in: u64,
    /// Mean time of the guest between two events.
    pub(crate) event_ns: u64,
    /// Host's clock less guest's at the start.
    pub(crate) offset_ns: i64,
    pub(crate) drift_ppb: i64,
    /// Where the guest's clock jumps, in thousandths of the recording, and by how much.
    pub(crate) jumps: Vec<(u64, i64)>,
    /// Part of the exits, in thousandths, that were lost.
    pub(crate) lost: u64,
    /// Part of the recording the guest was recorded in, in thousandths.
    pub(crate) guest_recorded: (u64, u64),
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            seed: 1,
            length_ns: 2_000_000_000,
            inside_ns: 300_000,
            away_ns: 60_000,
            idle_one_in: 40,
            event_ns: 150_000,
            offset_ns: 0,
            drift_ppb: 0,
            jumps: Vec::new(),
            lost: 0,
            guest_recorded: (0, 1000),
        }
    }
}

/// A vCPU's recorded history and its guest's, and how they really relate.
pub(crate) struct History {
    pub(crate) away: Away,
    pub(crate) stamps: Vec<i64>,
    /// By event: host's clock less guest's.
    pub(crate) truth: Vec<i64>,
}

const BEGIN_NS: u64 = 50_000_000_000;

impl Spec {
    fn offset_at(&self, host_ns: u64) -> i64 {
        let time = host_ns - BEGIN_NS;
        let jumped: i64 = self
            .jumps
            .iter()
            .filter(|(at, _)| time >= self.length_ns / 1000 * at)
            .map(|(_, by)| by)
            .sum();
        let drift = i128::from(self.drift_ppb) * i128::from(time) / 1_000_000_000;
        self.offset_ns + jumped + drift as i64
    }

    pub(crate) fn history(&self) -> History {
        let mut random = random(self.seed);
        let (mut away, mut stamps, mut truth) = (Away::default(), Vec::new(), Vec::new());
        let mut now_ns = BEGIN_NS;
        let part = |thousandth: u64| BEGIN_NS + self.length_ns / 1000 * thousandth;
        let recorded = part(self.guest_recorded.0)..part(self.guest_recorded.1);
        while now_ns < BEGIN_NS + self.length_ns {
            let exit_ns = now_ns + about(&mut random, self.inside_ns);
            now_ns += about(&mut random, self.event_ns);
            while now_ns < exit_ns {
                let offset_ns = self.offset_at(now_ns);
                let stamp = now_ns as i64 - offset_ns;
                if recorded.contains(&now_ns) && stamps.last().is_none_or(|&last| last < stamp) {
                    stamps.push(stamp);
                    truth.push(offset_ns);
                }
                now_ns += about(&mut random, self.event_ns);
            }
            let idle = self.idle_one_in > 0 && random.below(self.idle_one_in) == 0;
            let entry_ns =
                exit_ns + about(&mut random, if idle { 4_000_000 } else { self.away_ns });
            if random.below(1000) >= self.lost {
                away.push(exit_ns, entry_ns);
            }
            now_ns = entry_ns;
        }
        History { away, stamps, truth }
    }
}
