//! Sends a mark to the host by hypercall, like `hyperscope mark`, which is too large for the lab's machines.

use std::io;

/// Makes a hypercall for each piece of the text, and prints their number as a line of JSON. KVM refuses hypercalls of
/// programs, but traces them before.
#[cfg(target_arch = "x86_64")]
pub(crate) fn run(text: &str) -> io::Result<()> {
    use labguest::wire::{Key, Truth};

    let pieces = hypertrace::mark_words(1, text);
    for words in &pieces {
        let _refused = sys::guest_instructions::hypercall(hypertrace::MARK_NUMBER, *words);
    }
    let truth = Truth {
        what: format!("hypercalls of the mark {text:?}"),
        by: "hypercall".into(),
        key: Key::Number(hypertrace::MARK_NUMBER),
        count: pieces.len() as u64,
        at_least: false,
        level: None,
        task: None,
    };
    println!("{}", serde_json::to_string(&truth)?);
    Ok(())
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn run(_: &str) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "these hypercalls are not available here"))
}
