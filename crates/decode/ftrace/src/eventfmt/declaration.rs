//! Parses C declarations of fields: `unsigned char insn[15]`, `__data_loc char[] name`, `void
//! (*f)(int)`.

/// A parsed declaration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Declaration<'a> {
    /// The field's name.
    pub(crate) name: &'a str,
    /// The type before the name, without marks and array lengths.
    pub(crate) base: &'a str,
    /// Array lengths as written, with their brackets; empty for other fields.
    pub(crate) lengths: &'a str,
    /// `__data_loc` or `__rel_loc`, if the field holds only the position of its data.
    pub(crate) mark: Option<Mark>,
    /// Whether the type is a pointer.
    pub(crate) pointer: bool,
}

/// The base of a dynamic field's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// `__data_loc`: offsets count from the start of the record.
    FromRecord,
    /// `__rel_loc`: offsets count from the end of the field.
    FromField,
}

/// Parses a declaration; `None` if it has no name.
pub(crate) fn parse(text: &str) -> Option<Declaration<'_>> {
    let text = text.trim();
    if let Some((before, after)) = text.split_once("(*") {
        let name = after.split(|c: char| !is_name(c)).next().filter(|name| !name.is_empty())?;
        let base = before.trim();
        return Some(Declaration { name, base, lengths: "", mark: None, pointer: true });
    }
    let (declared, lengths) = split_lengths(text);
    let name_at = declared.trim_end_matches(is_name).len();
    let (kind, name) = declared.split_at_checked(name_at)?;
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (mark, base) = split_mark(kind.trim());
    let (base, marked_lengths) = if mark.is_some() { split_lengths(base) } else { (base, "") };
    let lengths = if lengths.is_empty() { marked_lengths } else { lengths };
    Some(Declaration { name, base: base.trim(), lengths, mark, pointer: base.contains('*') })
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Splits `char comm[16]` before the first of its trailing brackets.
fn split_lengths(text: &str) -> (&str, &str) {
    let mut end = text.len();
    while let Some(open) = text.get(..end).filter(|rest| rest.trim_end().ends_with(']')) {
        let Some(at) = open.rfind('[') else { break };
        end = at;
    }
    let (head, lengths) = text.split_at_checked(end).unwrap_or((text, ""));
    (head.trim_end(), lengths.trim())
}

fn split_mark(kind: &str) -> (Option<Mark>, &str) {
    for (word, mark) in [("__data_loc", Mark::FromRecord), ("__rel_loc", Mark::FromField)] {
        if let Some(base) = kind.strip_prefix(word) {
            return (Some(mark), base.trim_start());
        }
    }
    (None, kind)
}

impl Declaration<'_> {
    /// The product of the array lengths, if all are numbers.
    pub(crate) fn count(&self) -> Option<u32> {
        let mut product = 1u32;
        for length in self.lengths.split('[').skip(1) {
            let number = length.trim_end().strip_suffix(']')?.trim();
            product =
                product.checked_mul(crate::eventfmt::text::number(number)?.try_into().ok()?)?;
        }
        (!self.lengths.is_empty()).then_some(product)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (&str, &str, &str, Option<Mark>, bool) {
        let declaration = parse(text).unwrap();
        (
            declaration.name,
            declaration.base,
            declaration.lengths,
            declaration.mark,
            declaration.pointer,
        )
    }

    #[test]
    fn names_types_and_lengths_are_told_apart() {
        assert_eq!(parts("unsigned char insn[15]"), ("insn", "unsigned char", "[15]", None, false));
        assert_eq!(parts("const char * x"), ("x", "const char *", "", None, true));
        assert_eq!(parts("const char *x"), ("x", "const char *", "", None, true));
        assert_eq!(parts("u8 a[2][3]"), ("a", "u8", "[2][3]", None, false));
        assert_eq!(
            parts("char comm[TASK_COMM_LEN]"),
            ("comm", "char", "[TASK_COMM_LEN]", None, false)
        );
        assert_eq!(parts("struct foo bar"), ("bar", "struct foo", "", None, false));
        assert_eq!(parts("int (*fn)(void *)"), ("fn", "int", "", None, true));
        assert_eq!(
            parts("__data_loc char[] name"),
            ("name", "char", "[]", Some(Mark::FromRecord), false)
        );
        assert_eq!(
            parts("__rel_loc unsigned long[] mask"),
            ("mask", "unsigned long", "[]", Some(Mark::FromField), false)
        );
    }

    #[test]
    fn lengths_multiply() {
        assert_eq!(parse("u8 a[2][0x3]").unwrap().count(), Some(6));
        assert_eq!(parse("u8 a[N]").unwrap().count(), None);
        assert_eq!(parse("u8 a").unwrap().count(), None);
        assert_eq!(parse("u8 a[65536][65536]").unwrap().count(), None);
    }

    #[test]
    fn a_nameless_field_is_none() {
        for text in ["", "int ", "[3]", "int 7", "int (*)(void)", "a]"] {
            assert!(parse(text).is_none_or(|declaration| !declaration.name.is_empty()), "{text}");
        }
        assert_eq!(parse(""), None);
        assert_eq!(parse("int 7"), None);
    }
}
