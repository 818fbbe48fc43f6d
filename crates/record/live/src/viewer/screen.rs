//! The state of the screen, and its keys, without a terminal.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::Interval;
use crate::guest_views::SeenGuest;

use crate::viewer::guests::of_process;
use crate::viewer::tree::{Line, Place, Sort, lines};

/// Max intervals in a sparkline.
const HISTORY: usize = 120;
/// Max length of a filter.
const MAX_FILTER: usize = 64;

/// A key, independent of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// To the line above.
    Up,
    /// To the line below.
    Down,
    /// Expands the line.
    Right,
    /// Collapses it, or goes to its parent.
    Left,
    /// Toggles the line; ends a filter's text.
    Enter,
    /// Removes a character.
    Backspace,
    /// Clears the filter, or ends the program.
    Escape,
}

/// The selected VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenVm {
    pub name: String,
    pub process: u32,
}

/// The screen of `hyperscope top`.
#[derive(Debug, Default)]
pub struct Screen {
    interval: Option<Interval>,
    /// The guests' views of that interval.
    guests: Vec<SeenGuest>,
    sort: Sort,
    filter: String,
    /// The filter is being typed.
    is_typing: bool,
    is_paused: bool,
    shows_help: bool,
    /// Shows the tasks of the selected VM's guest instead of the lines.
    shows_tasks: bool,
    has_ended: bool,
    /// The record key was pressed, and no recording has started yet.
    asks_to_record: bool,
    /// A message above the keys.
    notice: Option<String>,
    open: BTreeSet<Place>,
    selected: Option<Place>,
    /// Costs of VMs and vCPUs in earlier intervals, newest last, in thousandths of a CPU.
    history: BTreeMap<Place, VecDeque<u64>>,
}

impl Screen {
    /// Adds an interval, whose rows are by vCPU, and the guests' views. While paused, it only extends the sparklines.
    pub fn take(&mut self, interval: Interval, guests: Vec<SeenGuest>) {
        let span_ns = interval.interval_ns().max(1);
        let all = lines(&interval, Sort::Name, "", |place| place.vcpu.is_none());
        let mut now: BTreeMap<Place, u64> = BTreeMap::new();
        for line in all {
            let thousandths = u128::from(line.cost_ns) * 1000 / u128::from(span_ns);
            now.insert(line.place, u64::try_from(thousandths).unwrap_or(u64::MAX));
        }
        // VMs and vCPUs that are gone are removed from the history, too.
        self.history.retain(|place, _| now.contains_key(place));
        for (place, cost) in now {
            let costs = self.history.entry(place).or_default();
            costs.push_back(cost);
            if costs.len() > HISTORY {
                costs.pop_front();
            }
        }
        if !self.is_paused || self.interval.is_none() {
            (self.interval, self.guests) = (Some(interval), guests);
        }
    }

    /// Handles a key.
    pub fn key(&mut self, key: Key) {
        if self.is_typing {
            self.type_filter(key);
            return;
        }
        match key {
            Key::Char('q') => self.has_ended = true,
            Key::Escape if self.filter.is_empty() => self.has_ended = true,
            Key::Escape => self.filter.clear(),
            Key::Char('?' | 'h') => self.shows_help = !self.shows_help,
            Key::Char(' ') => self.is_paused = !self.is_paused,
            Key::Char('/') => self.is_typing = true,
            Key::Char('c') => self.sort = Sort::Cost,
            Key::Char('e') => self.sort = Sort::Exits,
            Key::Char('w') => self.sort = Sort::RunQueue,
            Key::Char('p') => self.sort = Sort::P99,
            Key::Char('n') => self.sort = Sort::Name,
            Key::Char('g') => self.shows_tasks = !self.shows_tasks,
            Key::Char('r') => self.asks_to_record = true,
            Key::Up | Key::Char('k') => self.step(-1),
            Key::Down | Key::Char('j') => self.step(1),
            Key::Right | Key::Char('l') => self.open(true),
            Key::Left => self.open(false),
            Key::Enter => {
                let is_open = self.selected.as_ref().is_some_and(|at| self.open.contains(at));
                self.open(!is_open);
            }
            Key::Char(_) | Key::Backspace => {}
        }
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Enter => self.is_typing = false,
            Key::Escape => {
                self.is_typing = false;
                self.filter.clear();
            }
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Char(char) if self.filter.len() < MAX_FILTER => self.filter.push(char),
            _ => {}
        }
    }

    fn step(&mut self, by: isize) {
        let lines = self.lines();
        let at = self.selected_at(&lines).unwrap_or(0);
        let to = at.saturating_add_signed(by).min(lines.len().saturating_sub(1));
        self.selected = lines.get(to).map(|line| line.place.clone());
    }

    fn open(&mut self, is_open: bool) {
        let lines = self.lines();
        let Some(at) = self.selected_at(&lines) else { return };
        let Some(line) = lines.get(at) else { return };
        self.selected = Some(line.place.clone());
        if is_open {
            self.open.insert(line.place.clone());
        } else if !self.open.remove(&line.place) {
            let depth = line.depth();
            let above = lines.iter().take(at).rev().find(|line| line.depth() < depth);
            self.selected = above.or(Some(line)).map(|line| line.place.clone());
        }
    }

    /// Whether the record key was pressed since the last call.
    pub fn take_record_key(&mut self) -> bool {
        std::mem::take(&mut self.asks_to_record)
    }

    /// The VM of the selected line; `None` without a selection, and for the row of the rest.
    #[must_use]
    pub fn vm_under_cursor(&self) -> Option<ChosenVm> {
        let lines = self.lines();
        let place = &lines.get(self.selected_at(&lines)?)?.place;
        let vcpu = self.interval.as_ref()?.vcpus.iter().find(|vcpu| vcpu.vm == place.vm)?;
        Some(ChosenVm { name: vcpu.vm.clone(), process: vcpu.process })
    }

    /// Sets the message above the keys. Returns whether it differs from the last one.
    pub fn set_notice(&mut self, notice: Option<String>) -> bool {
        let is_new = self.notice != notice;
        self.notice = notice;
        is_new
    }

    pub(crate) fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Ends the screen, whatever is being typed.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// Whether the user has ended the screen.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The shown interval.
    #[must_use]
    pub(crate) fn interval(&self) -> Option<&Interval> {
        self.interval.as_ref()
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        let Some(interval) = &self.interval else { return Vec::new() };
        lines(interval, self.sort, &self.filter, |place| self.is_open(place))
    }

    /// With a filter, all matches are expanded.
    pub(crate) fn is_open(&self, place: &Place) -> bool {
        !self.filter.is_empty() || self.open.contains(place)
    }

    /// The index of the selected line; the first one if the line is gone.
    pub(crate) fn selected_at(&self, lines: &[Line]) -> Option<usize> {
        let chosen = self.selected.as_ref();
        let at = lines.iter().position(|line| Some(&line.place) == chosen);
        at.or((!lines.is_empty()).then_some(0))
    }

    /// Costs of a line in earlier intervals.
    pub(crate) fn history(&self, place: &Place) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.history.get(place).into_iter().flatten().copied()
    }

    pub(crate) fn sort(&self) -> Sort {
        self.sort
    }

    pub(crate) fn filter(&self) -> (&str, bool) {
        (&self.filter, self.is_typing)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused
    }

    pub(crate) fn shows_help(&self) -> bool {
        self.shows_help
    }

    /// The view of the selected line's guest, if it was queried.
    pub(crate) fn guest_under_cursor(&self) -> Option<&SeenGuest> {
        of_process(&self.guests, self.vm_under_cursor()?.process)
    }

    /// The user's name for that guest.
    #[must_use]
    pub fn asked_under_cursor(&self) -> Option<String> {
        Some(self.guest_under_cursor()?.requested_name.clone())
    }

    /// Whether guests are queried.
    pub(crate) fn has_guests(&self) -> bool {
        !self.guests.is_empty()
    }

    pub(crate) fn shows_tasks(&self) -> bool {
        self.shows_tasks
    }
}
