//! Templates of the lines that kernels and trace-cmd print for an event, and the fields that they
//! capture.
//!
//! `vcpu {vcpu_id} reason {reason:r} rip {guest_rip}` captures three fields of a line. A space
//! matches any number of spaces; text after the end of the template is ignored.

/// A captured value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Captured<'t> {
    /// A number, and its text in the line.
    Number(i128, &'t str),
    /// The name of an exit reason, without a number.
    Reason(&'t str),
    /// A thread name.
    Comm(&'t str),
    /// A function name, for which a synthetic address is stored.
    Function(&'t str),
    Text(&'t str),
}

/// Maximum bytes of a name in a line: thread names have 15, reasons about 30.
const MAX_NAME_BYTES: usize = 64;

/// The values in a line's body, in template order; `None` if the template does not match.
pub(super) fn matched<'t, 'p>(
    template: &'p str,
    body: &'t str,
) -> Option<Vec<(&'p str, Captured<'t>)>> {
    let mut captures = Vec::new();
    follow(template, body, &mut captures).then_some(captures)
}

/// Matches the rest of a template; appends its captures to `out`.
fn follow<'t, 'p>(
    template: &'p str,
    body: &'t str,
    out: &mut Vec<(&'p str, Captured<'t>)>,
) -> bool {
    let Some((literal, rest)) = template.split_once('{') else {
        return after_literal(template, body).is_some();
    };
    let Some(body) = after_literal(literal, body) else { return false };
    let Some((capture, rest)) = rest.split_once('}') else { return false };
    // `{name=1}`: the literal text implies this value.
    if let Some((name, value)) = capture.split_once('=') {
        out.push((name, Captured::Number(value.parse().unwrap_or(0), "")));
        return follow(rest, body, out);
    }
    let (name, kind) = capture.split_once(':').unwrap_or((capture, ""));
    match kind {
        "r" | "c" => follow_name((name, kind), rest, body, out),
        "w" => {
            let end = body.find(char::is_whitespace).unwrap_or(body.len());
            let Some((word, behind)) = body.split_at_checked(end) else { return false };
            out.push((name, Captured::Reason(word)));
            !word.is_empty() && word.len() <= MAX_NAME_BYTES && follow(rest, behind, out)
        }
        _ => {
            let value_and_rest = match kind {
                "s" => task_state(body),
                "x" => number(body, true),
                _ => number(body, false),
            };
            let Some((value, behind)) = value_and_rest else { return false };
            let shown = body.get(..body.len() - behind.len()).unwrap_or("");
            out.push((name, Captured::Number(value, shown)));
            follow(rest, behind, out)
        }
    }
}

/// A name extends to the first place where the rest of the template matches.
fn follow_name<'t, 'p>(
    (name, kind): (&'p str, &str),
    rest: &'p str,
    body: &'t str,
    out: &mut Vec<(&'p str, Captured<'t>)>,
) -> bool {
    if rest.is_empty() {
        out.push((name, Captured::Comm(body.trim())));
        return !body.trim().is_empty();
    }
    let at = out.len();
    let ends = body.char_indices().map(|(at, _)| at).chain([body.len()]);
    for end in ends.take_while(|end| *end <= MAX_NAME_BYTES).filter(|end| *end > 0) {
        let Some((text, behind)) = body.split_at_checked(end) else { continue };
        let text = text.trim();
        out.truncate(at);
        out.push((name, if kind == "r" { Captured::Reason(text) } else { Captured::Comm(text) }));
        if !text.is_empty() && follow(rest, behind, out) {
            return true;
        }
    }
    false
}

/// The text after a literal; a space matches any number of spaces.
fn after_literal<'t>(literal: &str, body: &'t str) -> Option<&'t str> {
    let mut rest = body;
    for (at, word) in literal.split(' ').enumerate() {
        if at > 0 {
            rest = rest.trim_start();
        }
        rest = rest.strip_prefix(word)?;
    }
    Some(rest)
}

/// The number at the start of a text: decimal, `0x` hexadecimal, or always hexadecimal.
pub(super) fn number(text: &str, hex: bool) -> Option<(i128, &str)> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (radix, digits) = match digits.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (if hex { 16 } else { 10 }, digits),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at_checked(end)?;
    let value = i128::from(u64::from_str_radix(digits, radix).ok()?);
    Some((if negative { value.checked_neg()? } else { value }, rest))
}

/// Converts the letters of a task state (`TASK_STATE_TO_CHAR_STR` of `include/linux/sched.h`) to
/// its bits; `+` sets the bit above them: the task was preempted.
fn task_state(text: &str) -> Option<(i128, &str)> {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (letters, rest) = text.split_at_checked(end)?;
    let bit = |letter: u8| match letter {
        b'R' | b'|' => Some(0),
        b'S' => Some(1),
        b'D' => Some(2),
        b'T' => Some(4),
        b't' => Some(8),
        b'X' => Some(16),
        b'Z' | b'x' => Some(32),
        b'P' => Some(64),
        b'I' | b'K' | b'W' | b'N' => Some(128),
        b'+' => Some(256),
        _ => None,
    };
    let bits = letters.bytes().map(bit).try_fold(0, |bits, bit| Some(bits | bit?))?;
    (!letters.is_empty()).then_some((bits, rest))
}

/// `name=value` pairs of a body: a value extends to the next pair.
pub(super) fn pairs(body: &str) -> impl Iterator<Item = (&str, Captured<'_>)> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let (name, from) = next_pair(rest)?;
        let end = next_name(from).unwrap_or(from.len());
        let (value, behind) = from.split_at_checked(end)?;
        rest = behind;
        let value = value.trim().trim_end_matches(',');
        Some((name, value_of(value)))
    })
}

fn value_of(value: &str) -> Captured<'_> {
    let first = value.split_whitespace().next().unwrap_or("").trim_end_matches([',', ';']);
    match number(first, false) {
        Some((number, "")) => Captured::Number(number, first),
        _ => Captured::Text(value),
    }
}

/// The arguments of a system call: `fd: d, cmd: ae80`, whose numbers are hexadecimal with or
/// without `0x`; a type can precede a name.
pub(super) fn arguments(body: &str) -> impl Iterator<Item = (&str, Captured<'_>)> {
    body.split(", ").filter_map(|argument| {
        let (name, value) = argument.split_once(": ")?;
        let name = name.rsplit([' ', '*']).next().filter(|name| is_field(name))?;
        let first = value.split_whitespace().next().unwrap_or("");
        Some((
            name,
            match number(first, true) {
                Some((number, "")) => Captured::Number(number, first),
                _ => Captured::Text(value),
            },
        ))
    })
}

/// A hexadecimal number with or without `0x`, in lower case as kernels print it.
pub(super) fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_hex = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    let is_such = !digits.is_empty() && digits.bytes().all(is_hex);
    is_such.then(|| u64::from_str_radix(digits, 16).ok())?
}

/// The fields that templates capture as hexadecimal numbers: raw output also prints them without
/// `0x`.
pub(super) fn hexadecimal_fields(templates: &[&'static str]) -> Vec<&'static str> {
    let captures = templates.iter().flat_map(|template| template.split('{').skip(1));
    captures.filter_map(|capture| capture.split_once(":x}").map(|(name, _)| name)).collect()
}

/// Whether the captures of a template have the form of pairs.
pub(super) fn has_pairs(template: &str) -> bool {
    template.split('{').next().is_some_and(|literal| literal.ends_with('='))
}

/// Whether a body starts with a `name=value` pair.
pub(super) fn begins_with_pair(body: &str) -> bool {
    next_name(body) == Some(0)
}

/// The next pair's name, and the text after its `=`.
fn next_pair(text: &str) -> Option<(&str, &str)> {
    let at = next_name(text)?;
    text.get(at..)?.split_once('=')
}

/// Position of the next `name=`, at the start of a word.
fn next_name(text: &str) -> Option<usize> {
    let mut begin = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        let name = word.split_once('=').map(|(name, _)| name);
        if name.is_some_and(is_field) {
            return Some(begin);
        }
        begin += word.len();
    }
    None
}

/// Whether it can be a field name.
fn is_field(name: &str) -> bool {
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let goes_on = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    begins && goes_on && name.len() <= MAX_NAME_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_take_fields_of_lines() {
        let exit = "vcpu {vcpu_id} reason {reason:r} rip {rip}";
        let found = matched(exit, "vcpu 3 reason EPT VIOLATION rip 0xff info1 0x0").unwrap();
        let expected = [
            ("vcpu_id", Captured::Number(3, "3")),
            ("reason", Captured::Reason("EPT VIOLATION")),
            ("rip", Captured::Number(255, "0xff")),
        ];
        assert_eq!(found, expected);
        assert_eq!(matched(exit, "vcpu x reason HLT rip 0x1"), None);
        let switch = "{comm:c}:{pid} [{prio}] {state:s} ==>";
        let found = matched(switch, "kworker/0:1:77 [120] R+ ==> a:1 [2]").unwrap();
        let captured: Vec<Captured<'_>> = found.iter().map(|(_, captured)| *captured).collect();
        assert_eq!(captured.first(), Some(&Captured::Comm("kworker/0:1")));
        assert_eq!(captured.get(1), Some(&Captured::Number(77, "77")));
        assert_eq!(captured.get(3), Some(&Captured::Number(256, "R+")));
        assert_eq!(matched("load{load=1}", "load"), Some(vec![("load", Captured::Number(1, ""))]));
    }

    #[test]
    fn values_of_pairs_go_up_to_the_next_pair() {
        let found: Vec<_> =
            pairs("comm=CPU 0/KVM pid=12, runtime=5 [ns] state=0x10 a=-4 x").collect();
        let number = Captured::Number;
        let expected = [
            ("comm", Captured::Text("CPU 0/KVM")),
            ("pid", number(12, "12")),
            ("runtime", number(5, "5")),
            ("state", number(16, "0x10")),
            ("a", number(-4, "-4")),
        ];
        assert_eq!(found, expected);
        assert_eq!(pairs("== ==> = 1=2 a==").count(), 1);
    }

    #[test]
    fn hexadecimal_numbers_and_fields_are_known() {
        assert_eq!(hexadecimal("756e6547"), Some(0x756e_6547));
        assert_eq!(hexadecimal("0x10"), Some(16));
        for other in ["", "0x", "D", "12g", "11112222333344445"] {
            assert_eq!(hexadecimal(other), None, "{other}");
        }
        let templates = ["func {function:x} idx {index:x} a {a}", "func {function:x}"];
        assert_eq!(hexadecimal_fields(&templates), ["function", "index", "function"]);
    }

    #[test]
    fn arguments_of_system_calls_are_hexadecimal() {
        let number = Captured::Number;
        let found: Vec<_> = arguments("fd: d, cmd: ae80, unsigned long arg: 0").collect();
        let expected =
            [("fd", number(13, "d")), ("cmd", number(0xae80, "ae80")), ("arg", number(0, "0"))];
        assert_eq!(found, expected);
        let found: Vec<_> =
            arguments("const char * filename: 0x7f \"/a, b\", flags: 0x10").collect();
        assert_eq!(found, [("filename", number(0x7f, "0x7f")), ("flags", number(16, "0x10"))]);
    }
}
