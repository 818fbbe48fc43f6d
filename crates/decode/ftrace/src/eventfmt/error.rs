//! Errors in a format text, a print fmt or a record.

/// A format text that does not describe an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A line that every format must have is missing.
    #[error("no `{0}` line")]
    Missing(&'static str),
    /// A number that cannot be read or is out of range.
    #[error("`{key}` is `{text}`")]
    Number {
        /// The property that the number describes.
        key: &'static str,
        /// The text found instead.
        text: String,
    },
    /// A field line without a usable name.
    #[error("no field name in `{0}`")]
    Declaration(String),
    /// More fields than any event has.
    #[error("more than {0} fields")]
    TooManyFields(usize),
}

/// A print fmt that cannot be compiled; the raw fields can still be printed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrintError {
    /// A syntax error.
    #[error("expected `{wanted}` at byte {at} of the print fmt, found `{found}`")]
    Syntax {
        /// Byte offset in the print fmt.
        at: usize,
        /// The expected token.
        wanted: &'static str,
        /// The text found instead.
        found: String,
    },
    /// A construct that cannot be evaluated from a record.
    #[error("{what} `{name}` is not supported")]
    Unsupported {
        /// The kind of construct: a function, a constant, a type, a conversion.
        what: &'static str,
        /// Its text in the print fmt.
        name: String,
    },
    /// A field that the event does not have.
    #[error("the event has no field `{0}`")]
    UnknownField(String),
    /// More conversions than arguments.
    #[error("no argument for `{0}`")]
    MissingArgument(String),
    /// Nested deeper than any kernel's print fmt.
    #[error("nested too deeply")]
    TooDeep,
    /// More conversions than any kernel's print fmt has.
    #[error("more than {0} conversions")]
    TooManyConversions(usize),
    /// Longer than any kernel's print fmt.
    #[error("longer than {0} bytes")]
    TooLong(usize),
}

impl PrintError {
    pub(crate) fn unsupported(what: &'static str, name: impl Into<String>) -> Self {
        Self::Unsupported { what, name: name.into() }
    }
}

/// A record that cannot be printed; its raw fields can be printed up to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// A field, or the data that it points at, lies past the end of the record.
    #[error("the record ends before its fields do")]
    Short,
    /// The print fmt divides by a number that is zero in this record.
    #[error("division by zero")]
    DivisionByZero,
}
