//! Demangles symbol names.

use std::borrow::Cow;
use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// Maximum bytes of a mangled and of a demangled name: template names can expand to a multiple of
/// their size.
const MAX_BYTES: usize = 4096;

/// Maximum nesting depth of names: the parser is recursive.
const MAX_DEPTH: u32 = 64;

/// The name of a Rust or C++ function as in its source, without hash, parameters and return type;
/// other names are not changed.
#[must_use]
pub fn demangle(name: &str) -> Cow<'_, str> {
    if name.len() > MAX_BYTES {
        return Cow::Borrowed(name);
    }
    let found = rust(name).or_else(|| cpp(name));
    found.filter(|found| !found.is_empty()).map_or(Cow::Borrowed(name), Cow::Owned)
}

fn rust(name: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(name).ok()?;
    let mut text = Bounded::default();
    write!(text, "{name:#}").ok()?;
    Some(text.text)
}

fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let options = ParseOptions::default().recursion_limit(MAX_DEPTH);
    let symbol = Symbol::new_with_options(name, &options).ok()?;
    let options = DemangleOptions::new().recursion_limit(MAX_DEPTH).no_params().no_return_type();
    let mut text = Bounded::default();
    symbol.structured_demangle(&mut text, &options).ok()?;
    Some(text.text)
}

/// A text that fails when it exceeds its maximum length.
#[derive(Default)]
struct Bounded {
    text: String,
}

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.text.len().saturating_add(part.len()) > MAX_BYTES {
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        for (mangled, name) in [
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_ZN3foo3barEv", "foo::bar"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back",
            ),
            ("main", "main"),
            ("_Zwhatever", "_Zwhatever"),
            ("", ""),
        ] {
            assert_eq!(demangle(mangled), name);
        }
    }

    #[test]
    fn names_that_grow_stay_as_they_are() {
        // Each of these contains the previous one twice.
        let mut name = "_Z1fI1AIiiE".to_owned();
        for at in 0..40_u32 {
            let back = char::from_digit(at % 36, 36).unwrap().to_ascii_uppercase();
            name += &format!("1BIS{back}_S{back}_E");
        }
        name += "EvT_";
        assert!(demangle(&name).len() <= MAX_BYTES);
        let deep = format!("_Z1f{}i", "P".repeat(4000));
        assert!(demangle(&deep).len() <= MAX_BYTES);
    }
}
