//! Looks for the highest rate of events at which a variant loses none.

use crate::error::Result;
use crate::outcome::Sustained;
use crate::run::{Manner, Run, float};

/// Steps at most; each makes twice as many events as the one before.
const STEPS: u32 = 8;

/// Doubles the rate until events are lost, or the load can't make more.
pub(crate) fn search(
    manner: Manner,
    run: &mut dyn FnMut(Manner) -> Result<Run>,
) -> Result<Sustained> {
    let mut found = Sustained { events_per_s: None, lost_at: None };
    for step in 0..STEPS {
        let switches = manner.switches << step;
        if !found.take_in(&run(Manner { switches, ..manner })?) {
            break;
        }
    }
    Ok(found)
}

impl Sustained {
    /// Takes a step in; whether another one makes sense.
    fn take_in(&mut self, run: &Run) -> bool {
        if !run.is_whole() {
            // What was lost was made, too.
            let made = run.arrived.events + run.arrived.events_lost.max(run.missing());
            self.lost_at = Some(float(made) / run.seconds);
            return false;
        }
        let rate = float(run.arrived.events) / run.seconds;
        self.events_per_s = Some(self.events_per_s.map_or(rate, |best| best.max(rate)));
        run.kept_up()
    }
}
