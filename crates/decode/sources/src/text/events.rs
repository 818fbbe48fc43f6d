//! The events of a text, by what lines call them.

use std::collections::HashMap;

use super::known;
use super::layout::Event;
use super::line::{EventLine, Form};

/// Different events, at most.
const MAX_EVENTS: usize = 4096;

/// Events by what lines call them.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) list: Vec<Event>,
    /// Those that some line calls by their name alone, and all by system and name.
    places: HashMap<Form, HashMap<String, usize>>,
    with_system: HashMap<String, HashMap<Form, HashMap<String, usize>>>,
}

impl Events {
    /// Whether some event is of that system.
    pub(super) fn has(&self, system: &str) -> bool {
        self.list.iter().any(|event| event.system() == system)
    }

    fn place(&self, line: &EventLine<'_>) -> Option<usize> {
        let places = match line.system {
            None => &self.places,
            Some(system) => self.with_system.get(system)?,
        };
        places.get(&line.form)?.get(line.name).copied()
    }

    pub(super) fn get(&self, line: &EventLine<'_>) -> Option<&Event> {
        self.list.get(self.place(line)?)
    }

    /// The event of a line, which may be a new one; `None`: there are too many.
    pub(super) fn get_or_add(&mut self, line: &EventLine<'_>) -> Option<&mut Event> {
        let place = match self.place(line) {
            Some(place) => place,
            None => self.add(line)?,
        };
        self.list.get_mut(place)
    }

    /// The place of an event that no line called so before; `None`: there are too many.
    fn add(&mut self, line: &EventLine<'_>) -> Option<usize> {
        let of_form = || match line.form {
            Form::Plain => known::system_of(line.name),
            Form::SyscallEnter | Form::SyscallExit => known::SYSCALLS,
        };
        let system = line.system.unwrap_or_else(of_form);
        // Lines that name the system and lines that don't are of one event.
        let places = self.with_system.get(system).and_then(|places| places.get(&line.form));
        let known = places.and_then(|places| places.get(line.name)).copied();
        let place = known.unwrap_or(self.list.len());
        if known.is_none() {
            let id = u16::try_from(place + 1).ok().filter(|_| place < MAX_EVENTS)?;
            self.list.push(Event::new(id, system, line.form, line.name));
            let places = self.with_system.entry(system.to_owned()).or_default();
            places.entry(line.form).or_default().insert(line.name.to_owned(), place);
        }
        if line.system.is_none() {
            let places = self.places.entry(line.form).or_default();
            places.insert(line.name.to_owned(), place);
        }
        Some(place)
    }
}
