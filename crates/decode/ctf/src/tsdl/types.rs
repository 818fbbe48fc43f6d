//! Parses types: structures, variants, enumerations, type names, and fields.

use super::parser::Parser;
use crate::CtfError;
use crate::field::{
    Array, Choice, Field, FieldType, Integer, Label, Length, Source, Struct, Variant,
};
use crate::tokens::Token;

/// First words of types other than names.
const BEGINNINGS: [&str; 6] = ["struct", "variant", "enum", "integer", "floating_point", "string"];

impl Parser {
    /// Parses `typealias`, `typedef`, or the declaration of a named type; returns whether there was
    /// one.
    pub(super) fn declaration(&mut self) -> Result<bool, CtfError> {
        if self.take_word("typealias") {
            let field_type = self.type_alone()?;
            self.sign(":=")?;
            let name = self.type_name()?;
            self.sign(";")?;
            self.name(name, field_type)?;
            return Ok(true);
        }
        if self.take_word("typedef") {
            for (name, field_type) in self.declared()? {
                self.name(name, field_type)?;
            }
            return Ok(true);
        }
        let is_named = ["struct", "variant", "enum"].iter().any(|word| self.is_word(word));
        if is_named {
            self.type_alone()?;
            self.sign(";")?;
        }
        Ok(is_named)
    }

    /// Consecutive words and asterisks: a type name, or a type name and a field name.
    fn words(&mut self) -> Result<Vec<String>, CtfError> {
        let mut words = Vec::new();
        loop {
            match self.peek() {
                Some(Token::Word(_)) => words.push(self.word("a type")?),
                Some(Token::Sign("*")) => {
                    self.next();
                    words.push("*".to_owned());
                }
                _ => return Ok(words),
            }
        }
    }

    /// Words of a type name: `unsigned long`, `int *`, `struct x`.
    fn type_name(&mut self) -> Result<String, CtfError> {
        let words = self.words()?;
        if words.is_empty() {
            return self.fail("a type is missing");
        }
        Ok(name_of(&words))
    }

    /// A type without a field name.
    pub(super) fn type_alone(&mut self) -> Result<FieldType, CtfError> {
        match self.special()? {
            Some(field_type) => Ok(field_type),
            None => {
                let name = self.type_name()?;
                self.named(&name)
            }
        }
    }

    /// A type that starts with a keyword; `None` if it is a type name.
    fn special(&mut self) -> Result<Option<FieldType>, CtfError> {
        self.take_word("const");
        let Some(Token::Word(word)) = self.peek() else { return Ok(None) };
        let Some(word) = BEGINNINGS.into_iter().find(|beginning| beginning == word) else {
            return Ok(None);
        };
        self.next();
        self.open_scope()?;
        let result = match word {
            "struct" => self.structure(),
            "variant" => self.variant(),
            "enum" => self.enumeration(),
            "integer" => self.integer(),
            "floating_point" => self.floating_point(),
            _ => self.string(),
        };
        self.close_scope();
        let (name, field_type) = match result? {
            Named::No(field_type) => (None, field_type),
            Named::Yes(name, field_type) => (Some(name), field_type),
        };
        self.count(&field_type)?;
        if let Some(name) = name {
            self.name(format!("{word} {name}"), field_type.clone())?;
        }
        Ok(Some(field_type))
    }
}

/// A type with or without a name of its own.
pub(super) enum Named {
    No(FieldType),
    Yes(String, FieldType),
}

impl Named {
    fn new(name: Option<String>, field_type: FieldType) -> Self {
        match name {
            Some(name) => Self::Yes(name, field_type),
            None => Self::No(field_type),
        }
    }
}

/// Joins the words of a type name.
fn name_of(words: &[String]) -> String {
    let words: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| *word != "const").collect();
    words.join(" ")
}

/// Removes the underscore that tracers add to avoid keywords.
fn without_mark(name: &str) -> &str {
    name.strip_prefix('_').filter(|rest| !rest.is_empty()).unwrap_or(name)
}

/// Parses a path, without these underscores.
fn source(path: &str) -> Source {
    Source::Named(path.split('.').map(|part| without_mark(part).to_owned()).collect())
}

impl Parser {
    fn optional_word(&mut self) -> Result<Option<String>, CtfError> {
        match self.peek() {
            Some(Token::Word(_)) => self.word("a name").map(Some),
            _ => Ok(None),
        }
    }

    fn structure(&mut self) -> Result<Named, CtfError> {
        let name = self.optional_word()?;
        if !self.take_sign("{") {
            let Some(name) = name else { return self.fail("a struct has no fields") };
            return self.named(&format!("struct {name}")).map(Named::No);
        }
        let mut fields = Vec::new();
        while !self.take_sign("}") {
            if self.take_sign(";") || self.declared_type()? {
                continue;
            }
            let declared = self.declared()?;
            fields.extend(declared.into_iter().map(|(name, field_type)| {
                let name = without_mark(&name).to_owned();
                Field { name, field_type }
            }));
        }
        let mut align = 1;
        if self.take_word("align") {
            self.sign("(")?;
            let bits = u32::try_from(self.number()?).unwrap_or(0);
            if !bits.is_power_of_two() || bits > 1 << 16 {
                return self.fail("an alignment is not a power of two");
            }
            align = bits;
            self.sign(")")?;
        }
        Ok(Named::new(name, FieldType::Struct(Struct::new(fields, align))))
    }

    /// Skips a `typealias` or `typedef` between fields.
    fn declared_type(&mut self) -> Result<bool, CtfError> {
        let is_one = self.is_word("typealias") || self.is_word("typedef");
        if is_one { self.declaration() } else { Ok(false) }
    }

    fn variant(&mut self) -> Result<Named, CtfError> {
        let name = self.optional_word()?;
        let mut tag = None;
        if self.take_sign("<") {
            tag = Some(source(&self.path()?));
            self.sign(">")?;
        }
        if !self.take_sign("{") {
            let Some(name) = name else { return self.fail("a variant has no choices") };
            let mut field_type = self.named(&format!("variant {name}"))?;
            if let (FieldType::Variant(variant), Some(tag)) = (&mut field_type, tag) {
                variant.tag = tag;
            }
            return Ok(Named::No(field_type));
        }
        let mut choices = Vec::new();
        while !self.take_sign("}") {
            if self.take_sign(";") || self.declared_type()? {
                continue;
            }
            choices.extend(self.declared()?.into_iter().map(|(label, field_type)| {
                let name = without_mark(&label).to_owned();
                Choice { name, label, ranges: Vec::new(), field_type }
            }));
        }
        let tag = tag.unwrap_or(Source::Named(Vec::new()));
        let variant = Variant { tag, choices, is_optional: false };
        Ok(Named::new(name, FieldType::Variant(variant)))
    }

    fn enumeration(&mut self) -> Result<Named, CtfError> {
        let name = self.optional_word()?;
        let container = if self.take_sign(":") { Some(self.type_alone()?) } else { None };
        if !self.take_sign("{") {
            let Some(name) = name else { return self.fail("an enum has no values") };
            return self.named(&format!("enum {name}")).map(Named::No);
        }
        let container = match container {
            Some(container) => container,
            None => self.named("int")?,
        };
        let FieldType::Integer(integer) = container else {
            return self.fail("the type of an enum is not an integer");
        };
        let labels = self.labels()?;
        let integer = Integer { labels: Some(labels.into()), ..integer };
        Ok(Named::new(name, FieldType::Integer(integer)))
    }

    fn labels(&mut self) -> Result<Vec<Label>, CtfError> {
        let (mut labels, mut next) = (Vec::new(), 0_i128);
        while !self.take_sign("}") {
            let name = match self.next() {
                Some(Token::Word(word)) => word,
                Some(Token::Text(text)) => text,
                _ => return self.fail("the name of an enum value is missing"),
            };
            let (mut from, mut to) = (next, next);
            if self.take_sign("=") {
                from = self.number()?;
                to = if self.take_sign("...") { self.number()? } else { from };
            }
            labels.push(Label { name, from, to });
            next = to.saturating_add(1);
            if !self.take_sign(",") {
                self.sign("}")?;
                break;
            }
        }
        Ok(labels)
    }

    /// A type and the field names that follow it: `uint32_t a, b[4];`.
    fn declared(&mut self) -> Result<Vec<(String, FieldType)>, CtfError> {
        let (field_type, mut name) = match self.special()? {
            Some(field_type) => (field_type, self.word("a field's name")?),
            None => self.words_and_name()?,
        };
        let mut all = Vec::new();
        loop {
            let full_type = self.arrays(field_type.clone())?;
            self.count(&full_type)?;
            all.push((name, full_type));
            if !self.take_sign(",") {
                break;
            }
            name = self.word("a field's name")?;
        }
        self.sign(";")?;
        Ok(all)
    }

    /// The last word is the field's name, the others are its type name.
    fn words_and_name(&mut self) -> Result<(FieldType, String), CtfError> {
        let mut words = self.words()?;
        let Some(name) = words.pop().filter(|_| !words.is_empty()) else {
            return self.fail("a field has no type, or no name");
        };
        Ok((self.named(&name_of(&words))?, name))
    }

    /// Array lengths in brackets after a name: the first is that of the outermost array.
    fn arrays(&mut self, mut field_type: FieldType) -> Result<FieldType, CtfError> {
        let mut lengths = Vec::new();
        while self.take_sign("[") {
            let length = if matches!(self.peek(), Some(Token::Word(_))) {
                Length::Of(source(&self.path()?))
            } else {
                match u64::try_from(self.number()?) {
                    Ok(len) => Length::Fixed(len),
                    Err(_) => return self.fail("an array has a negative length"),
                }
            };
            self.sign("]")?;
            lengths.push(length);
            if lengths.len() > 8 {
                return self.fail("an array has too many dimensions");
            }
        }
        for length in lengths.into_iter().rev() {
            field_type = FieldType::Array(Array::new(length, field_type));
        }
        Ok(field_type)
    }
}
