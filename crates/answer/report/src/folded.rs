//! Stacks as lines of text, for other tools: `frame;frame;frame N`.

/// A name as a frame: without what sets frames and lines apart.
pub(crate) fn frame(name: &str) -> String {
    printable::line(name).replace(';', ":")
}
