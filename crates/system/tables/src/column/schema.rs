//! JSON schemas of rows, derived from the definitions of their columns.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::described::Described;
use super::export::RowWith;
use super::{Column, Exported, Rows, RowsWith, Unit};

/// The JSON type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    Text,
    /// A non-negative integer.
    Number,
    /// An integer.
    Signed,
    /// A number with a fraction.
    Ratio,
    /// True or false.
    Flag,
    /// A non-negative integer, or a string.
    NumberOrText,
}

impl Kind {
    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Text => &["string"],
            Self::Number | Self::Signed => &["integer"],
            Self::Ratio => &["number"],
            Self::Flag => &["boolean"],
            Self::NumberOrText => &["integer", "string"],
        }
    }

    const fn is_signed(self) -> bool {
        !matches!(self, Self::Number | Self::NumberOrText)
    }
}

impl<R: Described> JsonSchema for Rows<R> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Rows".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": row_schema::<R>() })
    }
}

impl<R: Described> JsonSchema for Exported<'_, R> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Row".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::try_from(row_schema::<R>()).unwrap_or_default()
    }
}

impl<R: Described, M: JsonSchema> JsonSchema for RowsWith<R, M> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "RowsWith".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "items": RowWith::<R, M>::json_schema(generator),
        })
    }
}

fn row_schema<R: Described>() -> Value {
    let columns = R::all_columns();
    let columns: Vec<&Column<R>> = columns.iter().filter(|column| column.is_in_json()).collect();
    let mut row = ObjectSchema::default();
    for group in columns
        .chunk_by(|previous, right| previous.object.is_some() && previous.object == right.object)
    {
        let Some(first) = group.first() else { continue };
        let Some(object) = first.object else {
            row.add(first);
            continue;
        };
        let mut inner = ObjectSchema::default();
        group.iter().for_each(|column| inner.add(column));
        row.set(object, inner.done(R::about(object)), true);
    }
    row.done(R::ABOUT)
}

/// Builder of an object's schema.
#[derive(Default)]
struct ObjectSchema {
    properties: Map<String, Value>,
    required: Vec<Value>,
    /// Names of times that can be ticks, without their unit.
    in_ticks: Vec<String>,
    is_signed: bool,
}

impl ObjectSchema {
    fn set(&mut self, name: &str, schema: Value, is_always_there: bool) {
        self.properties.insert(name.to_owned(), schema);
        if is_always_there {
            self.required.push(json!(name));
        }
    }

    fn add<R: Described>(&mut self, column: &Column<R>) {
        let is_time = column.unit == Unit::Time;
        let name = if is_time { format!("{}_ns", column.name) } else { column.name.clone() };
        if is_time && R::MAY_COUNT_TICKS {
            self.in_ticks.push(column.name.clone());
            self.is_signed |= column.kind.is_signed();
        }
        self.set(&name, column.schema(is_time && R::MAY_COUNT_TICKS), !column.is_optional);
    }

    fn done(self, about: Option<&str>) -> Value {
        let mut schema = Map::new();
        if let Some(about) = about {
            schema.insert("description".to_owned(), json!(about));
        }
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(self.properties));
        if !self.in_ticks.is_empty() {
            let names: Vec<&str> = self.in_ticks.iter().map(String::as_str).collect();
            let ticks = ticks(&names, self.is_signed);
            schema.insert("patternProperties".to_owned(), ticks);
        }
        schema.insert("required".to_owned(), Value::Array(self.required));
        Value::Object(schema)
    }
}

/// The pattern of times in ticks, which replace those in nanoseconds; the latter are then null.
#[must_use]
pub fn ticks(names: &[&str], is_signed: bool) -> Value {
    let pattern = match names {
        [name] => format!("^{name}_cycles$"),
        names => format!("^({})_cycles$", names.join("|")),
    };
    let mut time = json!({
        "description": "The field of the same name in ticks of the recording's clock, if they cannot be \
         converted to nanoseconds; the field with _ns is then null.",
        "type": ["integer", "null"],
    });
    if let Some(time) = time.as_object_mut().filter(|_| !is_signed) {
        time.insert("minimum".to_owned(), json!(0));
    }
    json!({ pattern: time })
}

impl<R> Column<R> {
    /// The schema of its value in JSON.
    fn schema(&self, may_be_in_ticks: bool) -> Value {
        let is_nullable = self.null.is_some()
            || may_be_in_ticks
            || self
                .help
                .to_lowercase()
                .split(|letter: char| !letter.is_alphabetic())
                .any(|word| word == "null");
        let null = self.null.map_or_else(String::new, null_text);
        let unit = if self.unit == Unit::Time { " Nanoseconds." } else { "" };
        let mut schema = Map::new();
        let mut set = |key: &str, value: Value| schema.insert(key.to_owned(), value);
        set("description", json!(format!("{}{null}{unit}", self.help)));
        let mut types = self.kind.names().to_vec();
        if is_nullable {
            types.push("null");
        }
        set("type", if let [name] = types[..] { json!(name) } else { json!(types) });
        if !self.values.is_empty() {
            let mut values: Vec<Value> = self.values.iter().map(|value| json!(value)).collect();
            if is_nullable {
                values.push(Value::Null);
            }
            set("enum", Value::Array(values));
        }
        if let Some(pattern) = self.pattern {
            set("pattern", json!(pattern));
        }
        if let Some(min) = self.least {
            set("minimum", json!(min));
        }
        if let Some(max) = self.most {
            set("maximum", json!(max));
        }
        Value::Object(schema)
    }
}

/// The meaning of null, as a sentence that follows others.
fn null_text(meaning: &str) -> String {
    let meaning = meaning.trim_end_matches('.');
    let mut letters = meaning.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_lowercase).collect();
    let is_word = letters.clone().next().is_none_or(|second| !second.is_uppercase());
    let meaning = if is_word { first + letters.as_str() } else { meaning.to_owned() };
    format!(" Null: {meaning}.")
}
