//! States of all vCPUs, which a loss makes unknown. Only those that were known are visited then: a recording may have as
//! many vCPUs, and as many losses, as lines.

/// By the places of vCPUs among those of all machines.
#[derive(Debug)]
pub(super) struct VcpuStates<S> {
    /// Each with whether it may be known.
    all: Vec<(bool, S)>,
    /// Those that may be known.
    known: Vec<usize>,
}

impl<S: Default> VcpuStates<S> {
    /// Unknown states of this number of vCPUs.
    pub(super) fn new(vcpus: usize) -> Self {
        let all = (0..vcpus).map(|_| (false, S::default())).collect();
        Self { all, known: Vec::new() }
    }

    pub(super) fn get(&self, at: usize) -> Option<&S> {
        self.all.get(at).map(|(_, state)| state)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut S> {
        let (is_known, state) = self.all.get_mut(at)?;
        if !*is_known {
            *is_known = true;
            self.known.push(at);
        }
        Some(state)
    }

    /// Those that may be known.
    pub(super) fn iter(&self) -> impl Iterator<Item = &S> {
        self.known.iter().filter_map(|&at| self.get(at))
    }

    /// Makes all of them unknown.
    pub(super) fn clear(&mut self) {
        for at in self.known.drain(..) {
            if let Some(place) = self.all.get_mut(at) {
                *place = (false, S::default());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_makes_all_unknown_and_looks_at_none_that_is() {
        let mut states = VcpuStates::<u32>::new(3);
        for at in [2, 0, 2] {
            *states.get_mut(at).unwrap() = 7;
        }
        assert!(states.get_mut(3).is_none());
        assert_eq!(states.iter().count(), 2);
        states.clear();
        assert_eq!(states.iter().count(), 0);
        assert!((0..3).all(|at| *states.get(at).unwrap() == 0));
    }
}
