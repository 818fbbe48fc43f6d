//! Parses numbers in format texts.

/// A C number: decimal, `0x` or octal, with any of the suffixes `u` and `l`.
pub(crate) fn number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).ok();
    }
    if let Some(binary) = digits.strip_prefix("0b") {
        return u64::from_str_radix(binary, 2).ok();
    }
    if digits.len() > 1 && digits.starts_with('0') {
        return u64::from_str_radix(digits, 8).ok();
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn every_base_is_read() {
        assert_eq!(number("0"), Some(0));
        assert_eq!(number("0x1fUL"), Some(31));
        assert_eq!(number("017"), Some(15));
        assert_eq!(number("1000L"), Some(1000));
        assert_eq!(number("0xffffffffffffffffull"), Some(u64::MAX));
        assert_eq!(number("0x10000000000000000"), None);
        assert_eq!(number("x"), None);
    }
}
