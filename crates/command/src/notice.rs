//! Lines on standard error that say what the program does.

use printable::print_message;

/// Says something in a line of its own, after the program's name.
pub fn say(text: &str) {
    print_message(format_args!("hyperscope: {text}"));
}
