//! The cost of an event in the guest that records it, measured by its agent.

use crate::wire::fields::{Fields, Malformed, Payload};

/// Max rounds in a message.
pub const MAX_COST_ROUNDS: usize = 64;

/// Measurements of an event, alternately recorded and not recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventCost {
    /// The event, as `SYSTEM:NAME`.
    pub event: String,
    /// Number of events in each measured stretch.
    pub repeats: u32,
    /// The rounds, in order.
    pub rounds: Vec<CostRound>,
}

/// Median time of a stretch of events, in each half of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostRound {
    /// With the event off.
    pub off_ns: u64,
    /// With the event on.
    pub on_ns: u64,
}

pub(crate) fn write(cost: &EventCost, to: &mut Payload) {
    let fits = cost.rounds.get(..MAX_COST_ROUNDS).unwrap_or(&cost.rounds);
    to.text(&cost.event).u32(cost.repeats).list(fits, |to, round| {
        to.u64(round.off_ns).u64(round.on_ns);
    });
}

pub(crate) fn read(from: &mut Fields<'_>) -> Result<EventCost, Malformed> {
    let (event, repeats) = (from.text()?, from.u32()?);
    let rounds = from.list(|from| Ok(CostRound { off_ns: from.u64()?, on_ns: from.u64()? }))?;
    if repeats == 0 || rounds.len() > MAX_COST_ROUNDS {
        return Err(Malformed);
    }
    Ok(EventCost { event, repeats, rounds })
}
