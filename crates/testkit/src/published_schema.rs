//! Compares the schemas in `docs/formats` with the types of the documents that they describe.

use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use crate::assert_golden;

/// Longest line of a schema; an object or a list that fits is written on a single line.
const WIDTH: usize = 110;
/// Order of the keys in a schema, most important first.
const KEYS: [&str; 18] = [
    "$schema",
    "title",
    "description",
    "type",
    "const",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "minItems",
    "maxItems",
    "items",
    "properties",
    "patternProperties",
    "additionalProperties",
    "required",
    "$defs",
];

/// A schema in `docs/formats`, with properties that its type does not express.
#[derive(Clone, Copy, Debug)]
pub struct PublishedSchema<'s> {
    file: &'s str,
    title: Option<&'s str>,
    is_closed: bool,
}

impl<'s> PublishedSchema<'s> {
    /// `docs/formats/FILE.schema.json` of a document whose key `schema` is `hyperscope.FILE/1`.
    /// Published schemas are open, so that later versions can add fields.
    #[must_use]
    pub fn new(file: &'s str) -> Self {
        Self { file, title: None, is_closed: false }
    }

    /// Sets a title; the default is the document's name.
    #[must_use]
    pub fn titled(mut self, title: &'s str) -> Self {
        self.title = Some(title);
        self
    }

    /// Forbids fields that the schema does not describe.
    #[must_use]
    pub fn closed(mut self) -> Self {
        self.is_closed = true;
        self
    }

    fn text<D: JsonSchema>(&self) -> String {
        let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
            settings.inline_subschemas = true;
        });
        let mut schema = settings.into_generator().into_root_schema_for::<D>();
        let name = format!("hyperscope.{}/1", self.file);
        schema.insert("title".to_owned(), json!(self.title.unwrap_or(&name)));
        let Some(property) = schema.pointer_mut("/properties/schema") else {
            panic!("{name} has no key `schema`");
        };
        *property = json!({ "const": name });
        Readable { is_closed: self.is_closed }.transform(&mut schema);
        let mut text = String::new();
        write(&Value::from(schema), 0, &mut text);
        text + "\n"
    }
}

/// Panics unless the published schema is that of `D`. `HYPERSCOPE_BLESS=1` writes the file instead.
pub fn assert_published<D: JsonSchema>(schema: &PublishedSchema<'_>) {
    let formats = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats"));
    assert_golden(formats.join(format!("{}.schema.json", schema.file)), &schema.text::<D>());
}

/// Removes facts about Rust types that JSON does not have, joins comment lines, and sorts keys.
struct Readable {
    is_closed: bool,
}

impl Transform for Readable {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        // Defaults are for readers of documents of earlier versions; every new document has the
        // field.
        object.remove("default");
        if object.remove("format").is_some_and(|format| format == "uint8") {
            object.remove("maximum");
        }
        if let Some(Value::String(text)) = object.get_mut("description") {
            *text = text
                .split("\n\n")
                .map(|part| part.replace('\n', " "))
                .collect::<Vec<_>>()
                .join("\n\n");
        }
        if self.is_closed && object.contains_key("properties") {
            object.insert("additionalProperties".to_owned(), json!(false));
        }
        let rank = |key: &String| KEYS.iter().position(|known| known == key).unwrap_or(KEYS.len());
        let mut entries: Vec<(String, Value)> = std::mem::take(object).into_iter().collect();
        entries.sort_by_key(|(key, _)| rank(key));
        object.extend(entries);
    }
}

/// Writes a value on a single line if it fits, otherwise over several indented lines.
fn write(value: &Value, indent: usize, text: &mut String) {
    let line = on_one_line(value);
    let is_branch =
        |inner: &Value| matches!(inner, Value::Object(map) if map.contains_key("description"));
    let holds_schemas = value.as_object().is_some_and(|map| map.values().any(is_branch));
    let (open, close) = match value {
        _ if indent + line.len() <= WIDTH && !holds_schemas => return text.push_str(&line),
        Value::Object(_) => ('{', '}'),
        Value::Array(_) => ('[', ']'),
        _ => return text.push_str(&line),
    };
    text.push(open);
    for (at, (key, inner)) in entries(value).into_iter().enumerate() {
        text.push_str(if at == 0 { "\n" } else { ",\n" });
        text.push_str(&" ".repeat(indent + 2));
        if let Some(key) = key {
            text.push_str(&format!("{}: ", json!(key)));
        }
        write(inner, indent + 2, text);
    }
    text.push('\n');
    text.push_str(&" ".repeat(indent));
    text.push(close);
}

fn entries(value: &Value) -> Vec<(Option<&String>, &Value)> {
    match value {
        Value::Object(map) => map.iter().map(|(key, inner)| (Some(key), inner)).collect(),
        Value::Array(list) => list.iter().map(|inner| (None, inner)).collect(),
        _ => Vec::new(),
    }
}

fn on_one_line(value: &Value) -> String {
    let parts = entries(value).into_iter().map(|(key, inner)| match key {
        Some(key) => format!("{}: {}", json!(key), on_one_line(inner)),
        None => on_one_line(inner),
    });
    let parts: Vec<String> = parts.collect();
    match value {
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(_) => format!("{{ {} }}", parts.join(", ")),
        Value::Array(_) => format!("[{}]", parts.join(", ")),
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A document.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "its schema is all that is wanted")]
    struct Document {
        schema: String,
        /// How many, on
        /// two lines.
        count: Option<u8>,
        rows: Vec<Row>,
    }

    /// A row.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "its schema is all that is wanted")]
    struct Row {
        /// Its name.
        name: String,
    }

    #[test]
    fn a_schema_has_a_name_descriptions_and_what_json_knows() {
        let text = PublishedSchema::new("test").text::<Document>();
        let schema: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(schema["properties"]["schema"], json!({ "const": "hyperscope.test/1" }));
        let count = json!({ "description": "How many, on two lines.", "type": ["integer", "null"], "minimum": 0 });
        assert_eq!(schema["properties"]["count"], count);
        let row = &schema["properties"]["rows"]["items"];
        assert_eq!(row["description"], "A row.");
        assert_eq!(row["required"], json!(["name"]));
        assert!(
            text.contains("\n    \"schema\": { \"const\": \"hyperscope.test/1\" },\n"),
            "{text}"
        );
        assert_eq!(schema["required"], json!(["schema", "count", "rows"]));
    }
}
