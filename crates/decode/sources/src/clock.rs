//! Converts the time stamps of a recording's buffers to times on one clock.

use tracedat::{ClockPieces, Correction, TimeUnit};

static IDENTITY: Correction = Correction::identity();

/// The corrections of a recording, one per buffer.
#[derive(Clone, Debug)]
pub struct Clock {
    corrections: Vec<Correction>,
}

impl Clock {
    pub(crate) fn new(corrections: Vec<Correction>) -> Self {
        Self { corrections }
    }

    /// The correction of a buffer.
    pub(crate) fn correction(&self, buffer: usize) -> &Correction {
        self.corrections.get(buffer).unwrap_or(&IDENTITY)
    }

    pub(crate) fn set_pieces(&mut self, pieces: &ClockPieces) {
        for correction in &mut self.corrections {
            *correction = correction.by(pieces);
        }
    }

    pub(crate) fn set_own(&mut self) {
        for correction in &mut self.corrections {
            *correction = correction.on_own_clock();
        }
    }

    pub(crate) fn is_nanoseconds(&self) -> bool {
        self.corrections.iter().all(|correction| correction.unit() == TimeUnit::Nanoseconds)
    }

    pub(crate) fn peer(&self) -> Option<u64> {
        self.corrections.iter().find_map(Correction::peer)
    }
}
