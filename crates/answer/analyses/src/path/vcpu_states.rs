//! States of all vCPUs, which a loss resets. Only changed states are reset, because a recording can have as many
//! vCPUs and as many losses as lines.

/// States by vCPU index in `Machines`.
#[derive(Debug)]
pub(super) struct VcpuStates<S> {
    /// Each with a flag: it may differ from the default.
    all: Vec<(bool, S)>,
    /// Indexes of the flagged states.
    known: Vec<usize>,
}

impl<S: Default> VcpuStates<S> {
    /// Default states of `vcpus` vCPUs.
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

    /// States that may differ from the default.
    pub(super) fn iter(&self) -> impl Iterator<Item = &S> {
        self.known.iter().filter_map(|&at| self.get(at))
    }

    /// Resets all states.
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
