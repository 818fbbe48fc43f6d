//! Resolves references in metadata: from events to their streams, from lengths and tags to their
//! fields.

use crate::field::{Choice, FieldType, Integer, Label, Length, Role, Source, Struct};
use crate::header::HeaderPlan;
use crate::layout::{EventClass, Layout, StreamClass};
use crate::skim::Skim;
use crate::{CtfError, steps};

/// Maximum number of stored values that other fields depend on.
const MAX_SLOTS: usize = 1 << 16;

/// Names of the scopes in order of recording.
const SCOPES: [&[&str]; 6] = [
    &["trace", "packet", "header"],
    &["stream", "packet", "context"],
    &["stream", "event", "header"],
    &["stream", "event", "context"],
    &["event", "context"],
    &["event", "fields"],
];

fn broken<T>(what: String) -> Result<T, CtfError> {
    Err(CtfError::Reference { what })
}

/// Assigns events to their stream classes.
pub(crate) fn put_events(layout: &mut Layout, events: Vec<EventClass>) -> Result<(), CtfError> {
    layout.streams.sort_by_key(|stream| stream.id);
    if layout.streams.windows(2).any(|two| matches!(two, [a, b] if a.id == b.id)) {
        return broken("two stream classes have the same id".to_owned());
    }
    if layout.streams.is_empty() {
        layout.streams.push(StreamClass::default());
    }
    for event in events {
        let found = layout.streams.binary_search_by_key(&event.stream_id, |stream| stream.id);
        match found.ok().and_then(|at| layout.streams.get_mut(at)) {
            Some(stream) => stream.events.push(event),
            None => return broken(format!("event {:?} belongs to no stream", event.name)),
        }
    }
    Ok(())
}

impl Layout {
    /// Resolves all references; called after parsing.
    pub(crate) fn finish(mut self) -> Result<Self, CtfError> {
        if self.version == "1.8" {
            roles_by_name(&mut self);
        }
        let mut streams = std::mem::take(&mut self.streams);
        let mut slots = 0;
        let mut header = self.packet_header.take();
        for stream in &mut streams {
            stream.events.sort_by_key(|event| event.id);
            if stream.events.windows(2).any(|two| matches!(two, [a, b] if a.id == b.id)) {
                return broken("two events of one stream have the same id".to_owned());
            }
            let mut events = std::mem::take(&mut stream.events);
            connect(&mut [header.as_mut(), stream.packet_context.as_mut()], 0, &mut slots)?;
            connect_shared(&mut header, stream, &mut slots)?;
            for event in &mut events {
                connect_event(&mut header, stream, event, &mut slots)?;
            }
            stream.clock = clock_of(&self, stream)?;
            stream.header = HeaderPlan::new(stream.event_header.as_ref());
            for event in &mut events {
                event.steps = steps::of_event(stream, event);
            }
            stream.skim = Skim::new(&stream.header, &events);
            stream.events = events;
        }
        (self.packet_header, self.streams, self.slots) = (header, streams, slots);
        Ok(self)
    }
}

fn connect_shared(
    header: &mut Option<Struct>,
    stream: &mut StreamClass,
    slots: &mut usize,
) -> Result<(), CtfError> {
    let StreamClass { packet_context, event_header, event_context, .. } = stream;
    let mut scopes =
        [header.as_mut(), packet_context.as_mut(), event_header.as_mut(), event_context.as_mut()];
    (2..4).try_for_each(|from| connect(&mut scopes, from, slots))
}

fn connect_event(
    header: &mut Option<Struct>,
    stream: &mut StreamClass,
    event: &mut EventClass,
    slots: &mut usize,
) -> Result<(), CtfError> {
    let StreamClass { packet_context, event_header, event_context, .. } = stream;
    let mut scopes = [
        header.as_mut(),
        packet_context.as_mut(),
        event_header.as_mut(),
        event_context.as_mut(),
        event.context.as_mut(),
        event.payload.as_mut(),
    ];
    (4..6).try_for_each(|from| connect(&mut scopes, from, slots))
}

/// A field's reference to another field.
struct Need {
    /// Path of the field in its scope.
    user: Vec<usize>,
    names: Vec<String>,
}

/// Resolves the references of each field in the scope `at`. A scope with resolved references
/// remains unchanged.
fn connect(
    scopes: &mut [Option<&mut Struct>],
    at: usize,
    slots: &mut usize,
) -> Result<(), CtfError> {
    // The scopes of the packet are processed together.
    let all = if at == 0 { 0..scopes.len() } else { at..at + 1 };
    for at in all {
        let mut needs = Vec::new();
        if let Some(Some(scope)) = scopes.get(at) {
            of_struct(scope, &mut Vec::new(), &mut needs);
        }
        for Need { user, names } in needs {
            let found = find(scopes, at, &user, &names);
            let Some((scope, path)) = found else {
                return broken(format!(
                    "a field refers to {}, which does not come before it",
                    names.join(".")
                ));
            };
            let target = scopes.get_mut(scope).and_then(Option::as_deref_mut);
            let target = target.and_then(|scope| node_mut(scope, &path));
            let Some((slot, labels)) = target.and_then(|target| keep(target, slots)) else {
                return broken(format!("{} is not an integer", names.join(".")));
            };
            if *slots > MAX_SLOTS {
                return Err(CtfError::TooMany { most: MAX_SLOTS });
            }
            let scope = scopes.get_mut(at).and_then(Option::as_deref_mut);
            if let Some(user) = scope.and_then(|scope| node_mut(scope, &user)) {
                set(user, slot, &labels);
            }
        }
    }
    Ok(())
}

fn of_struct(structure: &Struct, path: &mut Vec<usize>, needs: &mut Vec<Need>) {
    for (at, field) in structure.fields.iter().enumerate() {
        path.push(at);
        of_type(&field.field_type, path, needs);
        path.pop();
    }
}

fn of_type(field_type: &FieldType, path: &mut Vec<usize>, needs: &mut Vec<Need>) {
    match field_type {
        FieldType::Struct(structure) => of_struct(structure, path, needs),
        FieldType::Array(array) => {
            if let Length::Of(Source::Named(names)) = &array.length {
                needs.push(Need { user: path.clone(), names: names.clone() });
            }
            path.push(0);
            of_type(&array.element, path, needs);
            path.pop();
        }
        FieldType::Variant(variant) => {
            if let Source::Named(names) = &variant.tag {
                needs.push(Need { user: path.clone(), names: names.clone() });
            }
            for (at, choice) in variant.choices.iter().enumerate() {
                path.push(at);
                of_type(&choice.field_type, path, needs);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Finds a field by name as seen from the field at path `user` of scope `at`: first among its
/// enclosing structures before it, then by scope name, then in earlier scopes.
fn find(
    scopes: &[Option<&mut Struct>],
    at: usize,
    user: &[usize],
    names: &[String],
) -> Option<(usize, Vec<usize>)> {
    let own_scope = scopes.get(at)?.as_deref()?;
    for depth in (0..user.len()).rev() {
        let (around, before) = (user.get(..depth)?, *user.get(depth)?);
        let Some(parent) = struct_at(own_scope, around) else { continue };
        if let Some(path) = below(parent, names, before) {
            return Some((at, [around, &path].concat()));
        }
    }
    for (scope, prefix) in SCOPES.iter().enumerate().take(at + 1) {
        let rest = names.get(prefix.len()..).unwrap_or(&[]);
        let begins = names.iter().zip(*prefix).all(|(name, part)| name == part);
        if !begins || names.len() <= prefix.len() {
            continue;
        }
        let before = if scope == at { *user.first()? } else { usize::MAX };
        let found =
            scopes.get(scope)?.as_deref().and_then(|structure| below(structure, rest, before));
        if let Some(path) = found {
            return Some((scope, path));
        }
    }
    (0..at).rev().find_map(|scope| {
        let path = below(scopes.get(scope)?.as_deref()?, names, usize::MAX)?;
        Some((scope, path))
    })
}

/// The structure at a path; `None` if there is another type.
fn struct_at<'s>(scope: &'s Struct, path: &[usize]) -> Option<&'s Struct> {
    let Some((&first, rest)) = path.split_first() else { return Some(scope) };
    let mut field_type = &scope.fields.get(first)?.field_type;
    for &step in rest {
        field_type = match field_type {
            FieldType::Struct(structure) => &structure.fields.get(step)?.field_type,
            FieldType::Array(array) => &array.element,
            FieldType::Variant(variant) => &variant.choices.get(step)?.field_type,
            _ => return None,
        };
    }
    match field_type {
        FieldType::Struct(structure) => Some(structure),
        _ => None,
    }
}

/// The path of a name below a structure; its first part is a field before `before`.
fn below(parent: &Struct, names: &[String], before: usize) -> Option<Vec<usize>> {
    let (first, rest) = names.split_first()?;
    let at = parent.fields.iter().take(before).rposition(|field| field.name == *first)?;
    let mut path = vec![at];
    let mut field_type = &parent.fields.get(at)?.field_type;
    for name in rest {
        let (at, next) = match field_type {
            FieldType::Struct(structure) => {
                let at = structure.fields.iter().position(|field| field.name == *name)?;
                (at, &structure.fields.get(at)?.field_type)
            }
            FieldType::Variant(variant) => {
                let at = variant.choices.iter().position(|choice| choice.name == *name)?;
                (at, &variant.choices.get(at)?.field_type)
            }
            _ => return None,
        };
        path.push(at);
        field_type = next;
    }
    Some(path)
}

fn node_mut<'s>(scope: &'s mut Struct, path: &[usize]) -> Option<&'s mut FieldType> {
    let (&first, rest) = path.split_first()?;
    let mut field_type = &mut scope.fields.get_mut(first)?.field_type;
    for &step in rest {
        field_type = match field_type {
            FieldType::Struct(structure) => &mut structure.fields.get_mut(step)?.field_type,
            FieldType::Array(array) => &mut array.element,
            FieldType::Variant(variant) => &mut variant.choices.get_mut(step)?.field_type,
            _ => return None,
        };
    }
    Some(field_type)
}

/// Assigns a slot to a field's value; returns the slot, and the names of values.
fn keep(target: &mut FieldType, slots: &mut usize) -> Option<(u16, Vec<Label>)> {
    let (slot, labels) = match target {
        FieldType::Integer(integer) => (&mut integer.slot, &integer.labels),
        FieldType::VarInteger(integer) => (&mut integer.slot, &integer.labels),
        _ => return None,
    };
    let labels = labels.as_ref().map(|labels| labels.to_vec()).unwrap_or_default();
    if let Some(slot) = *slot {
        return Some((slot, labels));
    }
    let new = u16::try_from(*slots).ok()?;
    *slots += 1;
    *slot = Some(new);
    Some((new, labels))
}

fn set(user: &mut FieldType, slot: u16, labels: &[Label]) {
    match user {
        FieldType::Array(array) => array.length = Length::Of(Source::Slot(slot)),
        FieldType::Variant(variant) => {
            variant.tag = Source::Slot(slot);
            variant.choices.iter_mut().for_each(|choice| choice.by_label(labels));
        }
        _ => {}
    }
}

impl Choice {
    /// Sets the tag values of the choice from the tag's labels; in CTF 2 the choice has them
    /// itself.
    fn by_label(&mut self, labels: &[Label]) {
        if self.ranges.is_empty() {
            let mine = labels.iter().filter(|label| label.name == self.label);
            self.ranges = mine.map(|label| (label.from, label.to)).collect();
        }
    }
}

/// Derives the roles of header fields from their names, which is the only way in CTF 1.8.
fn roles_by_name(layout: &mut Layout) {
    let in_header = |name: &str| match name {
        "magic" => Some(Role::Magic),
        "stream_id" => Some(Role::StreamId),
        "stream_instance_id" => Some(Role::StreamInstance),
        _ => None,
    };
    let in_context = |name: &str| match name {
        "packet_size" => Some(Role::PacketSize),
        "content_size" => Some(Role::ContentSize),
        "timestamp_begin" => Some(Role::Begin),
        "timestamp_end" => Some(Role::End),
        "events_discarded" => Some(Role::Discarded),
        "packet_seq_num" => Some(Role::Sequence),
        "cpu_id" => Some(Role::Cpu),
        _ => None,
    };
    let in_event = |name: &str| match name {
        "id" => Some(Role::EventId),
        "timestamp" => Some(Role::Timestamp),
        _ => None,
    };
    if let Some(header) = &mut layout.packet_header {
        give_roles(header, &in_header);
    }
    for stream in &mut layout.streams {
        if let Some(context) = &mut stream.packet_context {
            give_roles(context, &in_context);
        }
        if let Some(header) = &mut stream.event_header {
            give_roles(header, &in_event);
        }
    }
}

fn give_roles(structure: &mut Struct, role: &dyn Fn(&str) -> Option<Role>) {
    for field in &mut structure.fields {
        match &mut field.field_type {
            FieldType::Integer(integer) => integer.role = role(&field.name),
            FieldType::Variant(variant) => {
                for choice in &mut variant.choices {
                    if let FieldType::Struct(inner) = &mut choice.field_type {
                        give_roles(inner, role);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The clock of a stream: the clock that its headers read.
fn clock_of(layout: &Layout, stream: &StreamClass) -> Result<Option<usize>, CtfError> {
    let heads = [&stream.event_header, &stream.packet_context];
    let mut read = None;
    for head in heads.into_iter().flatten() {
        first_clock(head, &mut read);
    }
    let name = stream.clock_name.as_deref().or(read);
    let Some(name) = name else { return Ok(None) };
    match layout.clocks.iter().position(|clock| clock.name == name) {
        Some(at) => Ok(Some(at)),
        None => broken(format!("there is no clock {name}")),
    }
}

fn first_clock<'s>(structure: &'s Struct, found: &mut Option<&'s str>) {
    for field in &structure.fields {
        match &field.field_type {
            FieldType::Integer(Integer { clock: Some(name), .. }) => {
                found.get_or_insert(name);
            }
            FieldType::Variant(variant) => {
                for choice in &variant.choices {
                    if let FieldType::Struct(inner) = &choice.field_type {
                        first_clock(inner, found);
                    }
                }
            }
            _ => {}
        }
    }
}
