//! A session: recordings that were opened together, and the facts about all of them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::slice::from_ref;
use std::sync::OnceLock;

use analyses::align::{GuestAlignment, Method, align};
use analyses::view::View;
use report::{RecorderCost, SelectionRead, align_summary};
use sources::{Clock, Recording, TimeRange};

use crate::alignment::{apply, refuse_strangers};
use crate::files::{self, open_all};
use crate::reported::{Reported, reported};
use crate::{VmNames, losses, say};

/// Recordings that were opened together. They use their own clocks until something is selected on their host's.
#[derive(Debug)]
pub struct Session {
    pub(crate) recordings: Vec<Recording>,
    /// The names of their VMs.
    names: VmNames,
    /// The relation of guests to hosts; empty unless guests were aligned to their hosts' clocks.
    pub(crate) guests: Vec<GuestAlignment>,
    /// By recording, both of its clocks, if guests were aligned to their hosts' clocks.
    pub(crate) clocks: Vec<Clocks>,
    pub(crate) part: SelectionRead,
    /// By recording, what its recorder reported; read at first use.
    reported: OnceLock<Vec<Reported>>,
}

/// The clocks of a recording.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    of_recording: Clock,
    of_host: Clock,
}

impl Session {
    /// Opens all files, in their order; those of a session's folder in the order host, guests. `names` renames VMs.
    ///
    /// # Errors
    /// At the first file that is no recording, is unreadable throughout, or is named twice.
    pub fn open(paths: &[PathBuf], names: &VmNames) -> anyhow::Result<Self> {
        Ok(Self {
            recordings: open_all(paths, names)?,
            names: names.clone(),
            guests: Vec::new(),
            clocks: Vec::new(),
            part: SelectionRead::default(),
            reported: OnceLock::new(),
        })
    }

    /// Opens a run for a comparison: its host's recording comes first.
    ///
    /// # Errors
    /// As those of [`Session::open`].
    pub fn open_run(path: &PathBuf, names: &VmNames) -> anyhow::Result<Self> {
        let mut session = Self::open(from_ref(path), names)?;
        let recordings = &mut session.recordings;
        let hosts =
            recordings.iter().position(|recording| !files::is_of_guest(recording, recordings));
        if let Some(host) = hosts {
            recordings.swap(0, host);
        }
        Ok(session)
    }

    /// Aligns guests to their hosts' clocks by `method`, or by the best one.
    ///
    /// # Errors
    /// When the requested method can't be used, or a guest belongs to another host.
    pub fn align(&mut self, method: Option<Method>) -> anyhow::Result<()> {
        let own_clocks: Vec<Clock> = self.recordings.iter().map(Recording::clock).collect();
        self.guests = apply(&mut self.recordings, method)?;
        let clocks = own_clocks.into_iter().zip(self.recordings.iter().map(Recording::clock));
        self.clocks =
            clocks.map(|(of_recording, of_host)| Clocks { of_recording, of_host }).collect();
        Ok(())
    }

    /// The relation of guests' clocks to their hosts'; no times are corrected.
    ///
    /// # Errors
    /// When a guest belongs to another host.
    pub fn alignments(
        &self,
        method: Option<Method>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> anyhow::Result<Vec<GuestAlignment>> {
        let guests = align(&self.recordings, method, progress);
        refuse_strangers(&guests, &self.recordings)?;
        Ok(guests)
    }

    /// Drops a recording, and its alignment if it is a guest's.
    pub(crate) fn drop_recording(&mut self, at: usize) {
        let dropped = self.recordings.remove(at);
        say(&format!("{}: left out: it belongs to another guest", dropped.path().display()));
        if at < self.clocks.len() {
            self.clocks.remove(at);
        }
        self.reported = OnceLock::new();
        self.guests.retain(|guest| guest.guest != at && guest.host != at);
        for guest in &mut self.guests {
            guest.guest -= usize::from(guest.guest > at);
            guest.host -= usize::from(guest.host > at);
        }
    }
}

/// Views.
impl Session {
    /// The recordings with their current clocks and selection.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View::new(&self.recordings, &self.guests)
    }

    /// The recordings with guests on their hosts' clocks, if they were aligned.
    pub fn on_host_clock(&mut self) -> View<'_> {
        for (recording, clocks) in self.recordings.iter_mut().zip(&self.clocks) {
            recording.set_clock(clocks.of_host.clone());
        }
        self.view()
    }

    /// The recordings, each on its own clock: durations are those that its machine measured.
    pub fn on_own_clocks(&mut self) -> View<'_> {
        self.use_own_clocks();
        View::on_own_clocks(&self.recordings)
    }

    pub(crate) fn use_own_clocks(&mut self) {
        for (recording, clocks) in self.recordings.iter_mut().zip(&self.clocks) {
            recording.set_clock(clocks.of_recording.clone());
        }
    }

    /// Opens the files again, with guests on the aligned clocks, and limited to a range of time: blocks that were
    /// skipped are no longer in memory.
    ///
    /// # Errors
    /// As those of [`Session::open`].
    pub fn opened_again(&self, paths: &[PathBuf], range: TimeRange) -> anyhow::Result<Self> {
        let mut session = Self::open(paths, &self.names)?;
        let known = self.recordings.iter().zip(&self.clocks);
        for recording in &mut session.recordings {
            let found = known.clone().find(|(known, _)| known.path() == recording.path());
            if let Some((_, clocks)) = found {
                recording.set_clock(clocks.of_host.clone());
            }
        }
        session.guests.clone_from(&self.guests);
        session.keep_times(range);
        Ok(session)
    }
}

impl Session {
    #[must_use]
    pub fn recordings(&self) -> &[Recording] {
        &self.recordings
    }

    /// Gives the recordings away.
    #[must_use]
    pub fn into_recordings(self) -> Vec<Recording> {
        self.recordings
    }

    /// The relation of guests to hosts.
    #[must_use]
    pub fn guests(&self) -> &[GuestAlignment] {
        &self.guests
    }

    /// The part of the recordings that is read.
    #[must_use]
    pub const fn part(&self) -> &SelectionRead {
        &self.part
    }

    /// The recordings' paths, as reports name them.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        self.view().paths()
    }

    /// The method that aligned each guest, in a sentence.
    #[must_use]
    pub fn alignment(&self) -> Vec<String> {
        self.guests.iter().map(align_summary).collect()
    }

    /// Whether a recording was made in a guest: another recording names it so, or it does itself.
    #[must_use]
    pub fn is_of_guest(&self, recording: &Recording) -> bool {
        files::is_of_guest(recording, &self.recordings)
    }

    /// By recording, what its recorder reported.
    #[must_use]
    pub fn reported(&self) -> &[Reported] {
        self.reported.get_or_init(|| {
            self.recordings.iter().map(|recording| reported(recording.path())).collect()
        })
    }

    /// The cost of recording, if a recorder reported it.
    #[must_use]
    pub fn recorder_cost(&self) -> Option<RecorderCost> {
        self.reported().iter().find_map(|reported| reported.cost.clone())
    }

    /// By recording, processes of VMs by their vCPUs' threads, if a recorder reported them.
    #[must_use]
    pub fn processes(&self) -> Vec<HashMap<u32, u32>> {
        self.reported().iter().map(|reported| reported.processes.clone()).collect()
    }

    /// Gives each host's recording the symbols of the guest recorded with it.
    ///
    /// # Errors
    /// When a host was recorded with several guests: an exit's address doesn't identify its guest.
    pub fn name_guest_functions(&mut self) -> anyhow::Result<()> {
        files::name_guest_functions(&mut self.recordings)
    }
}

/// Messages on standard error.
impl Session {
    /// Prints which guests keep the times of their own clock.
    pub fn say_unaligned(&self) {
        for guest in self.guests.iter().filter(|guest| guest.chosen.is_none()) {
            say(&format!("{}; hyperscope align shows the reason", align_summary(guest)));
        }
    }

    /// Prints how guests were aligned, for output that has no place for it.
    pub fn say_alignment(&self) {
        self.alignment().iter().for_each(|guest| say(guest));
    }

    /// Prints the losses of the recordings, once they have been read.
    pub fn say_losses(&self) {
        losses::say_losses(&self.recordings);
    }

    /// Prints a note if only recordings of guests were given to an analysis of hosts.
    pub fn say_guests_alone(&self) {
        files::note_guests_alone(&self.recordings);
    }
}
