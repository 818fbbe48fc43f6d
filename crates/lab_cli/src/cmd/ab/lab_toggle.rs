//! The settings that `ab --lab` can switch, by name.

use lab::{Description, Net};

/// A difference of a configuration from the default lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LabToggle {
    /// The kernel's vhost-net handles guests' packets, instead of QEMU.
    Vhost,
    /// Guests' doorbells return to QEMU.
    NoIoeventfd,
    /// Max halt polling time of the guests' hosts.
    HaltPollNs(u64),
    /// Guests access the local APIC through memory, not through MSRs.
    NoX2apic,
    /// Level 1 backs its guest's memory only with small pages.
    NoHugePages,
    /// The workload runs in a guest at this level.
    Levels(u8),
    /// vCPUs of a guest.
    GuestCpus(u32),
    /// An extra CPU feature of the emulated processor, or a removed one (`-npt`).
    Processor(String),
    /// An extra kernel command line argument of level 1.
    Append(String),
    GuestAppend(String),
}

/// The syntax of toggles.
pub(crate) const WORDS: &str = "vhost, no-ioeventfd, halt-poll=NS, no-x2apic, no-huge-pages, levels=N, guest-cpus=N, \
                                processor=NAME, append=WORD, guest-append=WORD";

impl LabToggle {
    /// Parses the toggles of a configuration, separated by commas; an empty text has none.
    ///
    /// # Errors
    /// Names the unknown word, and lists the valid ones.
    pub(crate) fn read(text: &str) -> Result<Vec<Self>, String> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let read = |word: &str| {
            Self::of_word(word)
                .ok_or_else(|| format!("{word:?} can't be switched in a lab; use {WORDS}"))
        };
        words.map(read).collect()
    }

    fn of_word(word: &str) -> Option<Self> {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let text = || Some(value.to_owned()).filter(|value| !value.is_empty());
        let toggle = match name {
            "halt-poll" => Self::HaltPollNs(value.parse().ok()?),
            "levels" => Self::Levels(value.parse().ok().filter(|levels| (2..=3).contains(levels))?),
            "guest-cpus" => Self::GuestCpus(value.parse().ok().filter(|&cpus| cpus > 0)?),
            "processor" => Self::Processor(text()?),
            "append" => Self::Append(text()?),
            "guest-append" => Self::GuestAppend(text()?),
            _ if !value.is_empty() => return None,
            "vhost" => Self::Vhost,
            "no-ioeventfd" => Self::NoIoeventfd,
            "no-x2apic" => Self::NoX2apic,
            "no-huge-pages" => Self::NoHugePages,
            _ => return None,
        };
        Some(toggle)
    }

    /// Applies it to a lab's description.
    pub(crate) fn apply(&self, lab: &mut Description) {
        match self {
            Self::Vhost => lab.guest.net = Some(Net::Vhost),
            Self::NoIoeventfd => add(&mut lab.guest.qemu, " ", "-global virtio-mmio.ioeventfd=off"),
            // The parameter is read when the module is loaded, in level 1 and in guests that have guests.
            Self::HaltPollNs(ns) => {
                let word = format!("kvm.halt_poll_ns={ns}");
                add(&mut lab.append, " ", &word);
                add(&mut lab.guest.append, " ", &word);
            }
            Self::NoX2apic => add(&mut lab.guest.append, " ", "nox2apic"),
            Self::NoHugePages => add(&mut lab.append, " ", "transparent_hugepage=never"),
            Self::Levels(levels) => {
                let usual = Description::new(lab.arch, *levels);
                (lab.levels, lab.started) = (*levels, *levels);
                lab.memory_mib = usual.memory_mib;
                lab.guest.memory_mib = usual.guest.memory_mib;
            }
            Self::GuestCpus(cpus) => lab.guest.cpus = *cpus,
            Self::Processor(name) => add(&mut lab.processor, ",", name),
            Self::Append(word) => add(&mut lab.append, " ", word),
            Self::GuestAppend(word) => add(&mut lab.guest.append, " ", word),
        }
    }
}

fn add(to: &mut String, between: &str, text: &str) {
    if !to.is_empty() {
        to.push_str(between);
    }
    to.push_str(text);
}

#[cfg(test)]
mod tests {
    use lab::Arch;

    use super::*;

    fn description(words: &str) -> Description {
        let mut lab = Description::new(Arch::X86_64, 2);
        LabToggle::read(words).unwrap().iter().for_each(|toggle| toggle.apply(&mut lab));
        lab
    }

    #[test]
    fn words_change_what_comes_up() {
        assert_eq!(description(""), Description::new(Arch::X86_64, 2));
        let lab = description("vhost, halt-poll=0,no-huge-pages,processor=vgif,processor=-npt");
        assert_eq!(lab.guest.net, Some(Net::Vhost));
        assert_eq!(lab.append, "kvm.halt_poll_ns=0 transparent_hugepage=never");
        assert_eq!((&*lab.guest.append, &*lab.processor), ("kvm.halt_poll_ns=0", "vgif,-npt"));
        let deeper = description("levels=3");
        assert_eq!((deeper.levels, deeper.started, deeper.memory_mib), (3, 3, 4096));
    }

    #[test]
    fn other_words_are_refused_with_a_list() {
        for word in ["vhosts", "vhost=1", "levels=1", "levels=9", "halt-poll", "processor="] {
            let error = LabToggle::read(word).unwrap_err();
            assert!(error.contains(word) && error.contains("no-ioeventfd"), "{error}");
        }
    }
}
