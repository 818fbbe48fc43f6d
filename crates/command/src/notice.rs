//! Messages on standard error about the program's work.

use printable::print_message;

/// Prints a line after the program's name.
pub fn say(text: &str) {
    print_message(format_args!("hyperscope: {text}"));
}
