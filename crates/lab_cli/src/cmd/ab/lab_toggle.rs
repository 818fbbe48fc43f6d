//! What `ab --lab` switches, by name.

use lab::{Description, Net};

/// One thing that a configuration has otherwise than the usual lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LabToggle {
    /// The kernel's vhost-net takes the packets of guests, and not QEMU.
    Vhost,
    /// Guests' doorbells come back to QEMU.
    NoIoeventfd,
    /// How long the hosts of guests poll once one has halted.
    HaltPollNs(u64),
    /// Guests use the local APIC by its memory, and not by registers.
    NoX2apic,
    /// Level 1 backs its guest's memory by small pages alone.
    NoHugePages,
    /// The workload is in a guest this deep.
    Levels(u8),
    /// vCPUs of a guest.
    GuestCpus(u32),
    /// The emulated processor has this, too, or lacks it (`-npt`).
    Processor(String),
    /// On level 1's kernel's command line.
    Append(String),
    GuestAppend(String),
}

/// How toggles are written.
pub(crate) const WORDS: &str = "vhost, no-ioeventfd, halt-poll=NS, no-x2apic, no-huge-pages, levels=N, guest-cpus=N, \
                                processor=NAME, append=WORD, guest-append=WORD";

impl LabToggle {
    /// Reads those of a configuration, with commas between them; none of an empty text.
    ///
    /// # Errors
    /// Names the word that is none, and lists those that are.
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

    /// Has a lab come up so.
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
