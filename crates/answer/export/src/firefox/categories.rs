//! Categories: the meaning of colours.

/// Categories with their colours; the first is for everything without a category.
pub(super) const CATEGORIES: [(&str, &str); 10] = [
    ("Other", "grey"),
    ("In the guest", "green"),
    ("Host's kernel", "orange"),
    ("VMM", "yellow"),
    ("Wants a CPU", "red"),
    ("Nothing to do", "lightblue"),
    ("Not known", "darkgray"),
    ("Exit, not split", "brown"),
    ("Event", "blue"),
    ("Loss", "magenta"),
];

/// The place in [`CATEGORIES`] of a state or of an event's system.
pub(super) fn index_of(category: &str) -> u8 {
    match category {
        "running" | "guest_user" | "guest_kernel" | "guest_irq" | "guest_idle" | "guest" => 1,
        "before_exit" | "exit_kernel" => 2,
        "exit_user" => 3,
        "waiting" | "preempted" => 4,
        "halted" | "halt_poll" | "blocked" => 5,
        "unknown" => 6,
        "not_split" => 7,
        "loss" => 9,
        _ => 8,
    }
}

/// Whether the thread has a CPU in a state.
pub(super) fn has_cpu(category: u8) -> bool {
    matches!(category, 1..=3)
}

#[cfg(test)]
mod tests {
    use analyses::states::VcpuState;

    use super::*;

    #[test]
    fn every_state_has_a_category() {
        for state in VcpuState::ALL {
            assert!(index_of(state.name()) < 8, "{state:?}");
        }
        assert!(CATEGORIES.len() > index_of("kvm").into());
    }
}
