//! Time synchronisation by protocol `kvm`: the host's KVM knows the offset and scaling of the guest's TSC.
//!
//! The guest sends a time on its clock, the host answers with offset and scaling. All numbers are in the sender's byte
//! order (`struct kvm_clock_offset_msg` of trace-timesync-kvm.c).

use super::time_sync::TimeSync;

pub const NAME: &str = "kvm";
const REQUEST: u32 = 1;
const RESPONSE: u32 = 2;

/// Relation of the guest's clock to the host's at one time: `host = (guest * scaling >> fraction) + offset`. A scaling
/// of 1 means that it is not scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relation {
    /// The time, on the guest's clock.
    pub guest_time: i64,
    /// Offset that is added to the guest's times.
    pub offset: i64,
    /// Factor that the times are multiplied by first.
    pub scaling: i64,
    /// Right shift after the multiplication.
    pub fraction: i64,
}

impl Relation {
    /// The guest's message, which has only its time.
    #[must_use]
    pub fn request(guest_time: i64) -> TimeSync {
        Self { guest_time, ..Self::default() }.message(REQUEST)
    }

    /// The host's answer.
    #[must_use]
    pub fn response(&self) -> TimeSync {
        self.message(RESPONSE)
    }

    /// The guest's time in its request.
    #[must_use]
    pub fn requested(message: &TimeSync) -> Option<i64> {
        Self::parse(message, REQUEST).map(|relation| relation.guest_time)
    }

    /// The relation in the host's answer.
    #[must_use]
    pub fn responded(message: &TimeSync) -> Option<Self> {
        Self::parse(message, RESPONSE)
    }

    fn message(&self, number: u32) -> TimeSync {
        let fields = [self.guest_time, self.offset, self.scaling, self.fraction];
        let payload = fields.into_iter().flat_map(i64::to_ne_bytes).collect();
        TimeSync { protocol: NAME.into(), number, payload }
    }

    fn parse(message: &TimeSync, number: u32) -> Option<Self> {
        let mut fields = message.payload_of(NAME, number)?;
        let mut next = || fields.array().map(i64::from_ne_bytes);
        Some(Self { guest_time: next()?, offset: next()?, scaling: next()?, fraction: next()? })
    }
}
