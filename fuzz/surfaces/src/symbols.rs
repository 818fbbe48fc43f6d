//! Kernel texts with the names of addresses and threads, and the page layout.

use ftrace::eventfmt::{Coverage, HeaderPage, Kallsyms, PrintkFormats};
use tracedat::Cmdlines;

/// Reads `text` in each of these formats.
pub fn run(text: &[u8]) {
    kallsyms(text);
    let printk = PrintkFormats::parse(text);
    assert!(printk.len() <= text.len());
    let cmdlines = Cmdlines::parse(text);
    assert!(cmdlines.iter().all(|(thread, name)| cmdlines.name(thread) == Some(name)));
    if let Err(error) = HeaderPage::parse(text) {
        assert!(!error.to_string().is_empty());
    }
}

fn kallsyms(text: &[u8]) {
    let symbols = Kallsyms::parse(text);
    assert!(symbols.len() <= text.len());
    let edges = [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX];
    for address in edges.into_iter().chain(words(text)) {
        let Some(symbol) = symbols.lookup(address) else { continue };
        let start = address.wrapping_sub(symbol.offset);
        assert!(!symbol.name.is_empty() && start <= address);
        let again = symbols.lookup(start);
        assert!(again.is_some_and(|again| again.offset == 0), "no symbol begins at {start:#x}");
        let function = symbols.function(address);
        let is_complete = symbols.coverage() == Coverage::Whole;
        assert_eq!(function, Some(symbol).filter(|symbol| is_complete || symbol.offset == 0));
    }
}

/// Addresses near those in the text.
fn words(text: &[u8]) -> impl Iterator<Item = u64> {
    let words = text.split(u8::is_ascii_whitespace).take(64);
    let hex =
        words.filter_map(|word| u64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok());
    hex.flat_map(|address| [address, address.wrapping_add(1), address.wrapping_sub(1)])
}
