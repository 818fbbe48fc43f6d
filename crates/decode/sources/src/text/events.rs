//! The events of a text, by their names in lines.

use std::collections::HashMap;

use super::known;
use super::layout::Event;
use super::line::{EventLine, Form};

/// Maximum number of different events.
const MAX_EVENTS: usize = 4096;

/// Events by their names in lines.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) list: Vec<Event>,
    /// Events by name alone as some lines have them, and all events by system and name.
    places: HashMap<Form, HashMap<String, usize>>,
    with_system: HashMap<String, HashMap<Form, HashMap<String, usize>>>,
}

impl Events {
    /// Whether some event belongs to this system.
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

    /// The event of a line, which may be new; `None` if there are too many.
    pub(super) fn get_or_add(&mut self, line: &EventLine<'_>) -> Option<&mut Event> {
        let place = match self.place(line) {
            Some(place) => place,
            None => self.add(line)?,
        };
        self.list.get_mut(place)
    }

    /// Index of an event whose name no earlier line had in this form; `None` if there are too many.
    fn add(&mut self, line: &EventLine<'_>) -> Option<usize> {
        let of_form = || match line.form {
            Form::Plain => known::system_of(line.name),
            Form::SyscallEnter | Form::SyscallExit => known::SYSCALLS,
        };
        let system = line.system.unwrap_or_else(of_form);
        // Lines with and without the system belong to the same event.
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
