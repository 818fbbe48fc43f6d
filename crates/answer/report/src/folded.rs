//! Stacks as lines of text, for other tools: `frame;frame;frame N`.

/// A name as a frame: without the characters that separate frames and lines.
pub(crate) fn frame(name: &str) -> String {
    printable::line(name).replace(';', ":")
}
