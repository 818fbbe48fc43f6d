//! What is known of all vCPUs, which a loss makes unknown: of those alone that something was known of, as both may be as
//! many as a recording has lines.

use super::vcpus::VcpuState;

/// By the places of vCPUs among those of all machines.
#[derive(Debug)]
pub(super) struct VcpuStates {
    /// Whether something may be known, and what.
    all: Vec<(bool, VcpuState)>,
    /// Of which something may be known.
    known: Vec<usize>,
}

impl VcpuStates {
    /// Nothing is known of so many.
    pub(super) fn new(vcpus: usize) -> Self {
        let all = (0..vcpus).map(|_| (false, VcpuState::default())).collect();
        Self { all, known: Vec::new() }
    }

    pub(super) fn get(&self, at: usize) -> Option<&VcpuState> {
        self.all.get(at).map(|(_, state)| state)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut VcpuState> {
        let (is_known, state) = self.all.get_mut(at)?;
        if !*is_known {
            *is_known = true;
            self.known.push(at);
        }
        Some(state)
    }

    /// Those of which something may be known.
    pub(super) fn iter(&self) -> impl Iterator<Item = &VcpuState> {
        self.known.iter().filter_map(|&at| self.get(at))
    }

    /// Nothing is known any more.
    pub(super) fn clear(&mut self) {
        for at in self.known.drain(..) {
            if let Some(place) = self.all.get_mut(at) {
                *place = (false, VcpuState::default());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_makes_all_unknown_and_looks_at_none_that_is() {
        let mut states = VcpuStates::new(3);
        for at in [2, 0, 2] {
            states.get_mut(at).unwrap().in_guest = true;
        }
        assert!(states.get_mut(3).is_none());
        assert_eq!(states.iter().count(), 2);
        states.clear();
        assert_eq!(states.iter().count(), 0);
        assert!((0..3).all(|at| !states.get(at).unwrap().in_guest));
    }
}
