//! Interned names of steps.

use rustc_hash::FxHashMap;

/// Index of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Label(u32);

/// Max distinct names: a guest can access any address, and each address is a name.
const MAX_LABELS: usize = 1 << 14;

/// The name of all steps beyond [`MAX_LABELS`].
const OTHER: &str = "other";

#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    texts: Vec<String>,
    by_text: FxHashMap<String, Label>,
}

impl Labels {
    pub(super) fn intern(&mut self, text: &str) -> Label {
        if let Some(&label) = self.by_text.get(text) {
            return label;
        }
        let text = if self.texts.len() < MAX_LABELS { text } else { OTHER };
        if let Some(&label) = self.by_text.get(text) {
            return label;
        }
        let label = Label(self.texts.len() as u32);
        self.texts.push(text.to_owned());
        self.by_text.insert(text.to_owned(), label);
        label
    }

    pub(crate) fn text(&self, label: Label) -> &str {
        self.texts.get(label.0 as usize).map_or(OTHER, String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_once_and_not_without_end() {
        let mut labels = Labels::default();
        let first = labels.intern("kvm_mmio");
        assert_eq!(labels.intern("kvm_mmio"), first);
        (0..2 * MAX_LABELS).for_each(|at| {
            labels.intern(&at.to_string());
        });
        assert!(labels.texts.len() <= MAX_LABELS + 1);
        assert_eq!(labels.intern("one more"), labels.intern("and another"));
        assert_eq!(labels.text(first), "kvm_mmio");
    }
}
